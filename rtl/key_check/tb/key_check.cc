// SPDX-License-Identifier: Apache-2.0
//
// All operations, on items that have the key, another one, an old generation, or are over; what
// each does is written down as memcached's protocol has it.
#include <Vkey_check.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "layouts.h"
#include "testbench.h"

namespace warpcache::rtl {
namespace {

constexpr uint32_t kNow = 5000;
constexpr uint32_t kUnixStart = 1700000000;
constexpr uint64_t kGeneration = 77;
constexpr uint32_t kMonth = 30 * 24 * 3600;
constexpr size_t kValueMax = 1536;

struct Item {
  uint32_t flags = 0;
  uint32_t expiry = 0;
  uint64_t generation = kGeneration;
  uint64_t cas = 0;
  std::string key, value;

  std::vector<Bits> words() const {
    std::vector<Bits> out = {uint64_t{expiry} << 32 | flags,
                             generation << 24 | value.size() << 8 | key.size(), cas};
    for (const Bits& word : words_of(key)) out.push_back(word);
    for (const Bits& word : words_of(value)) out.push_back(word);
    return out;
  }
};

uint32_t expiry_of(uint32_t exptime) {
  if (exptime == 0) return 0;
  if (exptime >= 0x80000000u) return 1;
  if (exptime <= kMonth) return kNow + exptime;
  return exptime <= kUnixStart ? 1 : exptime - kUnixStart;
}

// As memcached's safe_strtoull.
std::optional<uint64_t> number_of(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const uint64_t number = std::strtoull(text.c_str(), &end, 10);
  if (errno == ERANGE || end == text.c_str()) return std::nullopt;
  if (*end != '\0' && std::isspace(static_cast<unsigned char>(*end)) == 0) return std::nullopt;
  if (static_cast<int64_t>(number) < 0 && text.find('-') < static_cast<size_t>(end - text.c_str()))
    return std::nullopt;
  return number;
}

// What an operation does.
struct Effect {
  Outcome outcome = kOutError;
  std::optional<Item> stored;
  bool touches = false;  // a new time in the item's place
  bool removes = false;
  uint64_t number = 0;
};

Effect effect_of(const Record& op, const Item* item, uint64_t generation, const std::string& key,
                 const std::string& value) {
  Effect effect;
  const auto what = static_cast<Op>(op.get("op").low());
  const uint64_t cas = op.get("cas").low();
  const bool compares = !op.get("cas_cmp").zero();
  const bool differs = item != nullptr && compares && item->cas != cas;
  const uint32_t expiry = expiry_of(static_cast<uint32_t>(op.get("exptime").low()));
  const Item fresh = {
      static_cast<uint32_t>(op.get("flags").low()), expiry, generation, 0, key, value};
  switch (what) {
    case kOpGet:
      effect.outcome = item != nullptr ? kOutHit : kOutMiss;
      effect.touches = item != nullptr && !op.get("touch").zero();
      break;
    case kOpSet:
      if (compares) {
        effect.outcome = item == nullptr       ? kOutNotFound
                         : differs || cas == 0 ? kOutExists
                                               : kOutStored;
      } else {
        effect.outcome = kOutStored;
      }
      break;
    case kOpAdd:
      effect.outcome = item == nullptr ? kOutStored : kOutNotStored;
      break;
    case kOpReplace:
      effect.outcome = item != nullptr ? kOutStored : kOutNotStored;
      break;
    case kOpAppend:
    case kOpPrepend: {
      if (item == nullptr)
        effect.outcome = kOutNotStored;
      else if (differs)
        effect.outcome = kOutExists;
      else if (item->value.size() + value.size() > kValueMax)
        effect.outcome = kOutNotStored;
      else
        effect.outcome = kOutStored;
      if (effect.outcome != kOutStored) break;
      effect.stored = *item;
      effect.stored->value = what == kOpAppend ? item->value + value : value + item->value;
      break;
    }
    case kOpDelete:
      effect.outcome = item == nullptr ? kOutNotFound : differs ? kOutExists : kOutDeleted;
      effect.removes = effect.outcome == kOutDeleted;
      break;
    case kOpTouch:
      effect.outcome = item != nullptr ? kOutTouched : kOutNotFound;
      effect.touches = item != nullptr;
      break;
    default: {  // incr, decr
      if (item == nullptr) {
        effect.outcome = op.get("vivify").zero() ? kOutNotFound : kOutNumber;
        if (effect.outcome != kOutNumber) break;
        effect.number = op.get("initial_value").low();
        effect.stored = fresh;
        effect.stored->flags = 0;
        effect.stored->value = std::to_string(effect.number);
        break;
      }
      const std::optional<uint64_t> old = number_of(item->value);
      if (item->value.empty()) break;
      if (differs) effect.outcome = kOutExists;
      if (differs || !old) break;
      const uint64_t delta = op.get("delta").low();
      effect.number = what == kOpIncr ? *old + delta : *old > delta ? *old - delta : 0;
      effect.outcome = kOutNumber;
      effect.stored = *item;
      std::string& text = effect.stored->value;
      const size_t size = text.size();
      text = std::to_string(effect.number);
      text.resize(std::max(size, text.size()), ' ');
      break;
    }
  }
  if (effect.outcome == kOutStored && !effect.stored) effect.stored = fresh;
  return effect;
}

std::string random_value(Random& random) {
  switch (random.below(6)) {
    case 0:
      return std::to_string(random.next() >> random.below(64)) + std::string(random.below(4), ' ');
    case 1: {
      static const char* const kNumbers[] = {
          "-5", "-0", "+7", " 12", "\t3 x", "18446744073709551615", "18446744073709551616",
          "x",  "1x", "-",  "",    "+ 1"};
      return kNumbers[random.below(12)];
    }
    case 2:
      return random_bytes(random, random.below(random.below(4) == 0 ? 1537 : 100));
    default:
      return random_bytes(random, random.below(30));
  }
}

// Fields of a result that have a meaning.
Bits kept(const Bits& bits) {
  const Record r(kResult, bits);
  Record out(kResult);
  for (const char* field : {"outcome", "op", "bin", "quiet", "ret_cas", "ret_key", "last_key",
                            "eod", "opcode", "opaque", "klen", "kbeats", "vlen", "vbeats"})
    out.set(field, r.get(field));
  const uint64_t outcome = r.get("outcome").low();
  if (outcome == kOutError) out.set("err", r.get("err"));
  if (outcome == kOutHit || outcome == kOutTouched) out.set("flags", r.get("flags"));
  if (outcome == kOutHit || outcome == kOutTouched || outcome == kOutStored ||
      outcome == kOutNumber)
    out.set("cas", r.get("cas"));
  if (outcome == kOutNumber) out.set("number", r.get("number"));
  return out.bits();
}

void run(const Setup& setup) {
  Model<Vkey_check> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  model->now = kNow;
  model->unix_start = kUnixStart;
  model->generation = kGeneration;
  Stream& in = bench.input("op", model->op_valid, model->op_ready,
                           {model->op, model->row, model->tag, model->reads, model->way,
                            model->half, model->beats, model->hazard});
  Stream& key_in = bench.input("key", model->key_valid, model->key_ready, {model->key_data});
  Stream& value_in =
      bench.input("value", model->value_valid, model->value_ready, {model->value_data});
  Stream& item_in = bench.input("item", model->item_valid, model->item_ready,
                                {model->item_data, model->item_two});
  Stream& result =
      bench.output("result", model->result_valid, model->result_ready, {model->result});
  Stream& key_out =
      bench.output("key_out", model->key_out_valid, model->key_out_ready, {model->key_out_data});
  Stream& value_out = bench.output("value_out", model->value_out_valid, model->value_out_ready,
                                   {model->value_out_data});
  Stream& write = bench.output("write", model->write_valid, model->write_ready,
                               {model->write_slot, model->write_beats, model->write_hazard});
  Stream& data = bench.output("data", model->data_valid, model->data_ready, {model->data});
  Stream& update = bench.pulses(
      "update", {model->update_valid, model->update_live, model->update_beats, model->update_half,
                 model->change_row, model->change_tag, model->change_way});
  Stream& events = bench.pulses("events", {model->free_valid, model->flush_valid,
                                           model->change_hazard, model->flush_exptime});
  Stream& counts =
      bench.pulses("counts", {model->counts_hit, model->counts_miss, model->counts_store,
                              model->counts_other_key, model->touch_valid, model->change_row,
                              model->change_way});
  // All words of a writer have been given when it ends.
  Stream& ends = bench.pulses("ends", {model->writer_ends});
  std::deque<uint64_t> words_by_end;
  uint64_t words_written = 0;
  ends.on_beat = [&](const Beat&) {
    bench.check(!words_by_end.empty() && data.passed() >= words_by_end.front(),
                "a writer ends too early");
    words_by_end.pop_front();
  };
  result.normalize = [](Beat& beat) { beat[0] = kept(beat[0]); };
  update.normalize = [](Beat& beat) {
    if (beat[0].zero()) beat[1] = beat[4] = beat[5] = beat[6] = 0;
    if (beat[1].zero()) beat[2] = beat[3] = 0;
  };
  events.normalize = [](Beat& beat) {
    if (beat[0].zero()) beat[2] = 0;
    if (beat[1].zero()) beat[3] = 0;
  };
  counts.normalize = [](Beat& beat) {
    if (beat[4].zero()) beat[5] = beat[6] = 0;
  };
  // A flush ends the generation, and with it what is there before the next operation.
  bool flushes = false;
  bench.after = [&] { flushes = model->flush_valid != 0; };
  bench.before = [&] {
    if (flushes) ++model->generation;
  };
  uint64_t generation = kGeneration;
  uint64_t next_cas = 1;
  uint64_t alive_count = 0;
  for (uint64_t i = bench.count(3000); i > 0; --i) {
    static constexpr Op kOthers[] = {kOpNop,  kOpEnd, kOpFlush, kOpVersion,
                                     kOpNoop, kOpOk,  kOpError};
    Record op(kMeta, random_bits(kMeta, random));
    const bool keyed = random.below(10) != 0;
    const auto what = keyed ? static_cast<Op>(kOpGet + random.below(kOpTouch - kOpGet + 1))
                            : kOthers[random.below(7)];
    const bool stores = what >= kOpSet && what <= kOpPrepend;
    const bool binary = random.below(2) != 0;
    std::string key;
    if (keyed) key = random_bytes(random, 1 + random.below(random.below(8) == 0 ? 250 : 20));
    std::string value;
    if (stores) value = random_value(random);
    // Of a refused command the key and the value come, too.
    if (what == kOpError && random.below(2) != 0) {
      key = random_bytes(random, 1 + random.below(20));
      value = random_bytes(random, random.below(40));
    }
    op.set("op", what)
        .set("bin", binary)
        .set("klen", key.size())
        .set("kbeats", beats_of(key.size()));
    op.set("vlen", value.size())
        .set("vbeats", beats_of(value.size()))
        .set("own_cas", random.below(20) == 0);
    op.set("exptime", random.below(3) == 0 ? random.next() >> 32 : random.below(100));
    op.set("delta", random.next() >> random.below(64))
        .set("initial_value", random.next() >> random.below(64));
    if (!binary) op.set("vivify", 0).set("ret_key", 0);
    if (what != kOpGet) op.set("touch", 0);

    // The item that has the tag.
    Item item = {static_cast<uint32_t>(random.next() >> 32), 0,   generation,
                 random.next() >> random.below(64),          key, random_value(random)};
    const uint32_t other = random.below(10);
    if (other == 0) item.key = random_bytes(random, key.size());
    if (other == 1) item.key = random_bytes(random, 1 + random.below(40));
    if (other == 2) item.generation -= 1;
    if (other == 3) item.expiry = kNow - random.below(3);
    if (other == 4) item.expiry = kNow + 1 + random.below(3);
    if (other == 5 && !key.empty()) item.key.back() ^= 1;
    const bool may_compare = what != kOpGet && what != kOpTouch && keyed;
    const bool compares = may_compare && random.below(3) == 0;
    op.set("cas_cmp", compares)
        .set("cas", compares && random.below(2) != 0 ? item.cas
                    : random.below(2) != 0           ? random.next()
                                                     : 0);
    if (binary || what != kOpSet) op.set("cas_cmp", compares && !op.get("cas").zero());
    if (!compares && what != kOpSet) op.set("cas", 0);
    if (what == kOpAdd || what == kOpReplace) op.set("cas_cmp", 0);
    const bool found = keyed && random.below(5) != 0;
    const bool blind = what == kOpSet && op.get("cas_cmp").zero();
    const bool reads = found && !blind;
    const bool same_key = reads && item.key == key;
    const bool alive =
        same_key && item.generation == generation && (item.expiry == 0 || item.expiry > kNow);
    alive_count += alive;
    const uint64_t row = random.below(2048);
    const uint64_t tag = random.below(65536);
    const uint64_t way = random.below(8);
    const uint64_t half = random.below(2);
    const uint64_t hazard = random.below(32);
    const std::vector<Bits> words = item.words();
    in.push({op.bits(), row, tag, reads, way, half, words.size(), hazard});
    for (const Bits& word : words_of(key)) key_in.push({word});
    for (const Bits& word : words_of(value)) value_in.push({word});
    for (size_t at = 0; reads && at < words.size(); at += 2) {
      Bits both = words[at];
      if (at + 1 < words.size()) both.place(64, 64, words[at + 1]);
      item_in.push({both, at + 1 < words.size()});
    }

    Record r(kResult);
    for (const char* field : {"op", "bin", "quiet", "ret_cas", "ret_key", "last_key", "eod",
                              "opcode", "opaque", "klen"})
      r.set(field, op.get(field));
    if (!keyed) {
      static constexpr Outcome kOutcomes[] = {kOutNone, kOutEnd, kOutOk,   kOutVersion,
                                              kOutNoop, kOutOk,  kOutError};
      r.set("outcome", kOutcomes[std::find(kOthers, kOthers + 7, what) - kOthers])
          .set("err", op.get("err"));
      result.push({kept(r.bits())});
      if (what == kOpFlush) {
        events.push({0, 1, 0, op.get("exptime")});
        ++generation;
      }
      continue;
    }
    const Effect effect = effect_of(op, alive ? &item : nullptr, generation, key, value);
    r.set("outcome", effect.outcome).set("err", kErrNonnum).set("number", effect.number);
    if (alive) r.set("flags", item.flags).set("cas", item.cas);
    if (effect.outcome == kOutHit)
      r.set("vlen", item.value.size()).set("vbeats", beats_of(item.value.size()));
    // A key that the reply may show is passed on as soon as it can be the item's; a miss that shows
    // it has it, too.
    const bool shows = what == kOpGet && (!binary || !op.get("ret_key").zero());
    const bool passes = shows && ((reads && item.key.size() == key.size()) || binary);
    if (passes) {
      r.set("kbeats", beats_of(key.size()));
      for (const Bits& word : words_of(key)) key_out.push({word});
    }
    if (effect.outcome == kOutHit)
      for (const Bits& word : words_of(item.value)) value_out.push({word});
    const uint64_t place = (row << 3 | way) << 1;
    if (effect.stored) {
      Item to = *effect.stored;
      to.cas = op.get("own_cas").zero() ? next_cas : op.get("cas").low();
      r.set("cas", next_cas++);
      const std::vector<Bits> stored = to.words();
      write.push({place | (1 - half), stored.size(), hazard});
      for (const Bits& word : stored) data.push({word});
      words_written += stored.size();
      update.push({1, 1, stored.size(), 1 - half, row, tag, way});
    } else if (effect.touches) {
      write.push({place | half, 1, hazard});
      ++words_written;
      data.push(
          {uint64_t{expiry_of(static_cast<uint32_t>(op.get("exptime").low()))} << 32 | item.flags});
    } else if (effect.removes) {
      update.push({1, 0, 0, 0, row, tag, way});
    }
    // A writer that writes nothing is over at once.
    const bool writer = what != kOpGet || !op.get("touch").zero();
    if (writer && !effect.stored && !effect.touches) events.push({1, 0, hazard, 0});
    if (writer) {
      ends.push({1});
      words_by_end.push_back(words_written);
    }
    if (reads && !same_key) counts.push({0, 0, 0, 1, 0, 0, 0});
    if (effect.outcome == kOutHit) counts.push({1, 0, 0, 0, 1, row, way});
    if (effect.outcome == kOutMiss) counts.push({0, 1, 0, 0, 0, 0, 0});
    if (effect.stored) counts.push({0, 0, 1, 0, 1, row, way});
    result.push({kept(r.bits())});
  }
  bench.run();
  bench.check(model->idle != 0, "not idle");
  bench.check(alive_count > 500, "too few items");
}

const Registered registered("key_check", run);

}  // namespace
}  // namespace warpcache::rtl
