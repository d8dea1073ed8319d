// SPDX-License-Identifier: Apache-2.0
//
// Datagrams of the wire, replies of the host and flushes at the same time. The bench is the store:
// it knows which writes came between a get and its copy, so it knows which copies must not be made.
#include <Vcopy_policy.h>

#include <algorithm>
#include <map>

#include "layouts.h"
#include "testbench.h"

namespace warpcache::rtl {
namespace {

constexpr uint32_t kRows = 2048;
constexpr size_t kWaiting = 40;  // operations

// A get that the host has.
struct Get {
  Bits asker;
  Record op{kHashed};
  bool killed = false;
  bool passed = false;
};

struct Asked {
  Record hashed{kHashed};
  Bits asker;
  bool sole = false;
};

uint32_t row_of(const Record& hashed) {
  return static_cast<uint32_t>(hashed.get("row_hash").low()) % kRows;
}

void run(const Setup& setup) {
  Model<Vcopy_policy> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  model->f_other = 0;
  Stream& askers = bench.command("asker", model->asker_valid, {model->asker});
  askers.always = true;
  Stream& w_op = bench.input("w_op", model->w_op_valid, model->w_op_ready, {model->w_op});
  Stream& w_key = bench.input("w_key", model->w_key_valid, model->w_key_ready, {model->w_key});
  Stream& w_value =
      bench.input("w_value", model->w_value_valid, model->w_value_ready, {model->w_value});
  Stream& f_op =
      bench.input("f_op", model->f_op_valid, model->f_op_ready, {model->f_op, model->f_asker});
  Stream& f_key = bench.input("f_key", model->f_key_valid, model->f_key_ready, {model->f_key});
  Stream& f_value =
      bench.input("f_value", model->f_value_valid, model->f_value_ready, {model->f_value});
  Stream& s_result =
      bench.input("s_result", model->s_result_valid, model->s_result_ready, {model->s_result});
  Stream& s_key = bench.input("s_key", model->s_key_valid, model->s_key_ready, {model->s_key});
  Stream& s_value =
      bench.input("s_value", model->s_value_valid, model->s_value_ready, {model->s_value});
  Stream& op = bench.output("op", model->op_valid, model->op_ready, {model->op});
  Stream& key = bench.output("key", model->key_valid, model->key_ready, {model->key});
  Stream& value = bench.output("value", model->value_valid, model->value_ready, {model->value});
  Stream& result =
      bench.output("result", model->result_valid, model->result_ready, {model->result});
  Stream& key_out =
      bench.output("key_out", model->key_out_valid, model->key_out_ready, {model->key_out});
  Stream& value_out =
      bench.output("value_out", model->value_out_valid, model->value_out_ready, {model->value_out});
  Stream& verdict = bench.pulses("verdict", {model->verdict_valid, model->verdict_answered});
  op.unchecked = true;
  verdict.normalize = [](Beat& beat) {
    if (beat[0].zero()) beat[1] = 0;
  };
  // Whoever takes results takes the first word of a key with its result, or later.
  uint64_t keys_owed = 0;
  result.on_beat = [&](const Beat& beat) {
    keys_owed += Record(kResult, beat[0]).get("kbeats").low();
  };
  key_out.on_beat = [&](const Beat&) { --keys_owed; };

  std::deque<Asked> wire, fills;  // that are offered to the block, in order
  std::map<uint32_t, Get> gets;   // by opaque
  std::deque<uint32_t> settling;  // gets whose result is under way; 0: of another operation
  uint32_t next_id = 1;
  uint64_t copied = 0;
  uint64_t overtaken = 0;
  uint64_t left = bench.count(4000);  // datagrams
  bool flushing = false;

  const auto words = [&](uint64_t beats) {
    std::vector<Bits> some;
    for (; beats > 0; --beats) some.emplace_back(random.next());
    return some;
  };
  const auto push_all = [](Stream& stream, const std::vector<Bits>& some) {
    for (const Bits& word : some) stream.push({word});
  };
  const auto find_passed = [&](bool newest) {
    auto found = gets.end();
    for (auto get = gets.begin(); get != gets.end() && (newest || found == gets.end()); ++get)
      if (get->second.passed) found = get;
    return found;
  };
  const auto kill = [&](bool all, uint32_t row) {
    for (auto& [id, get] : gets)
      if (all || row_of(get.op) == row) get.killed = true;
  };
  std::map<uint32_t, std::pair<std::vector<Bits>, std::vector<Bits>>>
      bytes;  // key and value, by opaque

  // The store gets an operation, and answers it.
  op.on_beat = [&](const Beat& beat) {
    const Record hashed(kHashed, beat[0]);
    const Record got(kMeta, hashed.get("op"));
    const auto id = static_cast<uint32_t>(got.get("opaque").low());
    Record answer(kResult);
    answer.set("opaque", id).set("outcome", kOutOk);
    const auto send = [&](uint32_t settles) {
      s_result.push({answer.bits()});
      settling.push_back(settles);
    };
    if (id == 0) {
      bench.check(
          flushing &&
              beat[0] == Record(kHashed).set("op", Record(kMeta).set("op", kOpFlush).bits()).bits(),
          "a flush that nobody has asked for");
      kill(true, 0);
      return send(0);
    }
    push_all(key, bytes[id].first);
    push_all(value, bytes[id].second);
    bytes.erase(id);
    if (!fills.empty() &&
        Record(kMeta, fills.front().hashed.get("op")).get("opaque") == got.get("opaque")) {
      Record want(kMeta, fills.front().hashed.get("op"));
      const auto of = std::find_if(gets.begin(), gets.end(), [&](const auto& one) {
        return one.second.asker == fills.front().asker;
      });
      if (got.get("op").low() == kOpSet) {
        bench.check(of != gets.end() && of->second.passed && !of->second.killed,
                    "a copy that a write has overtaken, or that nobody asked for");
        bench.check(of->second.op.get("row_hash") == hashed.get("row_hash") &&
                        of->second.op.get("tag_hash") == hashed.get("tag_hash"),
                    "a copy of another key");
        ++copied;
      } else {
        want.set("op", kOpNop);
        ++overtaken;
      }
      bench.check(got.bits() == want.bits(), "a copy has changed");
      bench.check(hashed.get("row_hash") == fills.front().hashed.get("row_hash") &&
                      hashed.get("tag_hash") == fills.front().hashed.get("tag_hash"),
                  "a copy of another key than the reply's");
      if (of != gets.end()) gets.erase(of);
      fills.pop_front();
      return send(0);
    }
    bench.check(!wire.empty(), "an operation too many");
    const Asked ask = wire.front();
    wire.pop_front();
    Record want(kMeta, ask.hashed.get("op"));
    const uint64_t what = want.get("op").low();
    const bool eod = !want.get("eod").zero();
    const bool writes = has_key(what) && (what != kOpGet || !want.get("touch").zero());
    const bool ends_all = what == kOpFlush || what == kOpError;
    if (!ask.sole)
      want.set("op", writes     ? kOpDelete
                     : ends_all ? kOpFlush
                                : kOpNop)
          .set("exptime", 0)
          .set("cas_cmp", 0)
          .set("touch", 0);
    bench.check(got.bits() == want.bits(), "an operation has become another one");
    bench.check(hashed.get("row_hash") == ask.hashed.get("row_hash") &&
                    hashed.get("tag_hash") == ask.hashed.get("tag_hash"),
                "an operation on another key");
    if (writes || ends_all) kill(ends_all, row_of(ask.hashed));
    bool answered = false;
    if (ask.sole) {
      const bool hit = random.below(2) != 0;
      const bool shows_cas = !want.get("bin").zero() || !want.get("ret_cas").zero();
      const uint64_t cas = random.below(3) == 0 ? 0 : random.next();
      const std::vector<Bits> s_keys =
          words(hit || random.below(2) != 0 ? want.get("kbeats").low() : 0);
      const std::vector<Bits> s_values = words(hit ? random.below(8) : 0);
      answer.set("outcome", hit ? kOutHit : kOutMiss)
          .set("bin", want.get("bin"))
          .set("ret_cas", want.get("ret_cas"))
          .set("cas", cas);
      answer.set("kbeats", s_keys.size()).set("vbeats", s_values.size()).set("eod", 1);
      push_all(s_key, s_keys);
      push_all(s_value, s_values);
      answered = hit && !(shows_cas && cas == 0);
      if (answered) {
        push_all(key_out, s_keys);
        push_all(value_out, s_values);
      } else {
        gets[id] = {ask.asker, ask.hashed};
      }
    }
    if (eod) {
      result.push({answered ? answer.bits() : Record(kResult).set("eod", 1).bits()});
      verdict.push({1, answered});
    }
    send(ask.sole && !answered ? id : 0);
  };
  s_result.on_beat = [&](const Beat&) {
    const auto get = gets.find(settling.front());
    settling.pop_front();
    if (get != gets.end()) get->second.passed = true;
  };
  bench.before = [&] {
    if (!flushing && random.below(2000) == 0 && left != 0) flushing = true;
    set(model->flush_valid, flushing);
    if (keys_owed == 0 && model->result_ready == 0) set(model->key_out_ready, 0);
    set(model->tick, random.below(3000) == 0);
    // A reply that is not copied, while none is offered that is.
    const bool other = model->f_op_valid == 0 && !gets.empty() && random.below(200) == 0;
    const auto get =
        std::find_if(gets.begin(), gets.end(), [](const auto& one) { return one.second.passed; });
    set(model->f_other, other && get != gets.end());
    if (other && get != gets.end()) {
      set(model->f_asker, get->second.asker);
      gets.erase(get);
    }
  };
  bench.after = [&] {
    if (model->flush_done != 0) {
      bench.check(flushing, "a flush is done that nobody has asked for");
      flushing = false;
    }
    // A reply of the host, to the oldest get or the newest.
    const bool replies = fills.empty() && random.below(10) == 0;
    const auto get = replies ? find_passed(random.below(2) != 0) : gets.end();
    if (get != gets.end()) {
      Asked fill;
      fill.asker = get->second.asker;
      if (random.below(12) == 0) fill.asker.flip(static_cast<int>(random.below(161)));
      Record set_op(kMeta);
      const uint32_t id = next_id++;
      const std::vector<Bits> keys =
          words(Record(kMeta, get->second.op.get("op")).get("kbeats").low());
      const std::vector<Bits> values = words(random.below(8));
      set_op.set("op", kOpSet)
          .set("own_cas", 1)
          .set("opaque", id)
          .set("kbeats", keys.size())
          .set("vbeats", values.size());
      fill.hashed = get->second.op;
      if (random.below(12) == 0) fill.hashed.set("tag_hash", random.next() >> 32);
      fill.hashed.set("op", set_op.bits());
      bytes[id] = {keys, values};
      push_all(f_key, keys);
      push_all(f_value, values);
      f_op.push({fill.hashed.bits(), fill.asker});
      fills.push_back(fill);
    }
    if (left == 0 || w_op.queued() > kWaiting) return;
    --left;
    const Bits asker = random_bits(kAsker, random);
    askers.push({asker});
    const uint32_t operations = random.below(3) != 0 ? 1 : 1 + random.below(4);
    for (uint32_t i = 0; i < operations; ++i) {
      static constexpr Op kOps[] = {kOpGet, kOpGet,    kOpGet,  kOpGet,     kOpGet, kOpGet,
                                    kOpSet, kOpDelete, kOpIncr, kOpVersion, kOpNop};
      Asked ask;
      ask.asker = asker;
      Record meta(kMeta, random_bits(kMeta, random));
      const Op what = random.below(400) == 0 ? (random.below(2) != 0 ? kOpFlush : kOpError)
                                             : kOps[random.below(11)];
      const uint32_t id = next_id++;
      const std::vector<Bits> keys = words(has_key(what) ? 1 + random.below(4) : 0);
      const std::vector<Bits> values = words(what == kOpSet ? random.below(8) : 0);
      meta.set("op", what)
          .set("opaque", id)
          .set("kbeats", keys.size())
          .set("vbeats", values.size())
          .set("eod", i + 1 == operations);
      meta.set("touch", what == kOpGet && random.below(10) == 0);
      ask.sole = operations == 1 && what == kOpGet && meta.get("touch").zero();
      ask.hashed.set("op", meta.bits())
          .set("row_hash", (random.next() >> 32 & ~uint64_t{kRows - 1}) | random.below(64))
          .set("tag_hash", random.next() >> 32);
      bytes[id] = {keys, values};
      push_all(w_key, keys);
      push_all(w_value, values);
      w_op.push({ask.hashed.bits()});
      wire.push_back(ask);
    }
  };
  while (left != 0) bench.step();
  bench.run(2000);
  bench.check(wire.empty(), "operations are missing");
  bench.check(copied > 50 && overtaken > 50,
              "too few copies: " + std::to_string(copied) + ", " + std::to_string(overtaken));
}

const Registered registered("copy_policy", run);

}  // namespace
}  // namespace warpcache::rtl
