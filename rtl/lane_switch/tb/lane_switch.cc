// SPDX-License-Identifier: Apache-2.0
//
// Two fronts with operations for two stores, flushes among them. The bench is the stores: each
// answers its operations in order, with a key and a value now and then.
#include <Vlane_switch.h>

#include "layouts.h"
#include "testbench.h"

namespace warpcache::rtl {
namespace {

constexpr int kLanes = 2;

struct Answer {
  Record result{kResult};
  std::vector<Bits> key, value;
};

struct Store {
  Stream *op, *key, *value;  // what it gets
  Stream *result, *result_key, *result_value;
  std::deque<Record> keyed;    // operations whose key and value are to come
  uint32_t next[kLanes] = {};  // of each front's operations for it, the next one's number
};

struct Front {
  Stream *op, *key, *value;
  Stream *result, *result_key, *result_value;
};

// An operation's number, unlike all others; the front is its lowest bit.
uint32_t id_of(const Record& record) { return static_cast<uint32_t>(record.get("opaque").low()); }

void run(const Setup& setup) {
  Model<Vlane_switch> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  Store stores[kLanes];
  Front fronts[kLanes];
  // What every operation carries, and the answer to it, by front and number.
  struct Asked {
    Record op{kMeta};
    Bits hashed;
    Answer answer;
    int home = 0;  // kLanes: all
  };
  std::vector<Asked> asked[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    const auto lane = static_cast<size_t>(i);
    const std::string number = std::to_string(i);
    const auto in = [&](const char* name, Port valid, Port ready, Port data) {
      return &bench.input(name + number, valid.bit(i), ready.bit(i), {data});
    };
    const auto out = [&](const char* name, Port valid, Port ready, Port data) {
      return &bench.output(name + number, valid.bit(i), ready.bit(i), {data});
    };
    fronts[i] = {
        in("op", model->op_valid, model->op_ready, model->op[lane]),
        in("key", model->key_valid, model->key_ready, model->key_data[lane]),
        in("value", model->value_valid, model->value_ready, model->value_data[lane]),
        out("f", model->f_valid, model->f_ready, model->f_result[lane]),
        out("f_key", model->f_key_valid, model->f_key_ready, model->f_key_data[lane]),
        out("f_value", model->f_value_valid, model->f_value_ready, model->f_value_data[lane])};
    Store& store = stores[i];
    store.op = out("s_op", model->s_op_valid, model->s_op_ready, model->s_op[lane]);
    store.key = out("s_key", model->s_key_valid, model->s_key_ready, model->s_key_data[lane]);
    store.value =
        out("s_value", model->s_value_valid, model->s_value_ready, model->s_value_data[lane]);
    store.result = in("r", model->r_valid, model->r_ready, model->r[lane]);
    store.result_key = in("r_key", model->r_key_valid, model->r_key_ready, model->r_key_data[lane]);
    store.result_value =
        in("r_value", model->r_value_valid, model->r_value_ready, model->r_value_data[lane]);
  }
  // The first word of a result's key comes with the result, or later.
  int64_t keys_owed[kLanes] = {};
  for (int i = 0; i < kLanes; ++i) {
    fronts[i].result->on_beat = [&, i](const Beat& beat) {
      keys_owed[i] += static_cast<int64_t>(Record(kResult, beat[0]).get("kbeats").low());
    };
    fronts[i].result_key->on_beat = [&, i](const Beat&) { --keys_owed[i]; };
  }
  bench.after = [&] {
    for (const int64_t owed : keys_owed) bench.check(owed >= 0, "a key comes before its result");
  };
  uint64_t flushes = 0;
  for (int i = 0; i < kLanes; ++i) {
    Store& store = stores[i];
    store.op->unchecked = store.key->unchecked = store.value->unchecked = true;
    // Keys and values may come before their operation: they are compared when all have come.
    struct Arrived {
      std::deque<Bits> keys, values;
    };
    auto arrived = std::make_shared<Arrived>();
    store.key->on_beat = [arrived](const Beat& beat) { arrived->keys.push_back(beat[0]); };
    store.value->on_beat = [arrived](const Beat& beat) { arrived->values.push_back(beat[0]); };
    const auto settle = [&bench, &store, arrived] {
      while (!store.keyed.empty()) {
        const Record& op = store.keyed.front();
        if (arrived->keys.size() < op.get("kbeats").low() ||
            arrived->values.size() < op.get("vbeats").low())
          return;
        for (uint64_t at = 0; at < op.get("kbeats").low(); ++at) {
          bench.check(arrived->keys.front() == Bits(uint64_t{id_of(op)} << 32 | at),
                      "a key goes to another store");
          arrived->keys.pop_front();
        }
        for (uint64_t at = 0; at < op.get("vbeats").low(); ++at) {
          bench.check(arrived->values.front() == Bits(uint64_t{id_of(op)} << 32 | at),
                      "a value goes to another store");
          arrived->values.pop_front();
        }
        store.keyed.pop_front();
      }
    };
    store.op->on_beat = [&, i, settle](const Beat& beat) {
      const Record hashed(kHashed, beat[0]);
      const Record op(kMeta, hashed.get("op"));
      const uint32_t id = id_of(op);
      const Asked& ask = asked[id % kLanes][id / kLanes];
      bench.check(beat[0] == ask.hashed, "another operation");
      bench.check(ask.home == i || ask.home == kLanes, "the key belongs to another store");
      // In the order of its front: those between are for other stores.
      uint32_t& next = store.next[id % kLanes];
      bench.check(id / kLanes >= next, "the order of a front changes");
      for (uint32_t n = next; n < id / kLanes; ++n)
        bench.check(asked[id % kLanes][n].home != i && asked[id % kLanes][n].home != kLanes,
                    "an operation is left out");
      next = id / kLanes + 1;
      store.keyed.push_back(op);
      store.result->push({ask.answer.result.bits()});
      for (const Bits& word : ask.answer.key) store.result_key->push({word});
      for (const Bits& word : ask.answer.value) store.result_value->push({word});
      settle();
    };
    bench.after = [&bench, settle, previous = bench.after] {
      if (previous) previous();
      settle();
    };
  }
  for (uint64_t n = bench.count(4000); n > 0; --n) {
    const int from = static_cast<int>(random.below(kLanes));
    std::vector<Asked>& own = asked[from];
    const auto id = static_cast<uint32_t>(own.size() * kLanes + static_cast<size_t>(from));
    static constexpr Op kOps[] = {kOpGet, kOpGet, kOpSet, kOpSet, kOpDelete, kOpNoop, kOpError};
    Asked ask;
    ask.op = Record(kMeta, random_bits(kMeta, random));
    const Op op = random.below(40) == 0 ? kOpFlush : kOps[random.below(7)];
    const uint64_t kbeats = has_key(op) ? 1 + random.below(4) : 0;
    const uint64_t vbeats = op == kOpSet ? random.below(6) : 0;
    ask.op.set("op", op).set("opaque", id).set("kbeats", kbeats).set("vbeats", vbeats);
    Record hashed(kHashed, random_bits(kHashed, random));
    ask.hashed = hashed.set("op", ask.op.bits()).bits();
    ask.home = op == kOpFlush ? kLanes
               : has_key(op)  ? static_cast<int>(hashed.get("row_hash").low() >> 31)
                              : from;
    if (op == kOpFlush) ++flushes;
    const auto words = [&](uint64_t beats) {
      std::vector<Bits> some;
      for (uint64_t at = 0; at < beats; ++at) some.emplace_back(uint64_t{id} << 32 | at);
      return some;
    };
    ask.answer.result = Record(kResult, random_bits(kResult, random));
    const bool hit = op == kOpGet && random.below(2) != 0;
    ask.answer.key = words(hit && random.below(2) != 0 ? kbeats : 0);
    ask.answer.value = words(hit ? random.below(6) : 0);
    ask.answer.result.set("op", op)
        .set("opaque", id)
        .set("kbeats", ask.answer.key.size())
        .set("vbeats", ask.answer.value.size());
    Front& front = fronts[from];
    front.op->push({ask.hashed});
    for (const Bits& word : words(kbeats)) front.key->push({word});
    for (const Bits& word : words(vbeats)) front.value->push({word});
    front.result->push({ask.answer.result.bits()});
    for (const Bits& word : ask.answer.key) front.result_key->push({word});
    for (const Bits& word : ask.answer.value) front.result_value->push({word});
    own.push_back(std::move(ask));
  }
  bench.run();
  bench.check(model->idle != 0, "it is not idle at the end");
  for (const Store& store : stores) bench.check(store.keyed.empty(), "keys or values are missing");
  bench.check(flushes > 10, "too few flushes");
}

const Registered registered("lane_switch", run);

}  // namespace
}  // namespace warpcache::rtl
