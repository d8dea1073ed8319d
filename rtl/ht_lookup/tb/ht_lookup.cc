// SPDX-License-Identifier: Apache-2.0
//
// A small index under random operations. The bench is key_check, which changes the index, and the
// memory, which ends writes; its own index is a list of ways a row.
#include <Vht_lookup.h>
#include <Vht_lookup_16.h>
#include <Vht_lookup_2.h>

#include <algorithm>
#include <set>
#include <vector>

#include "layouts.h"
#include "testbench.h"

namespace warpcache::rtl {
namespace {

constexpr uint32_t kRows = 8;
constexpr uint32_t kHazards = 8;
constexpr uint32_t kNumbers = 4 * kHazards;  // of writers, then from 0 on
constexpr uint64_t kFollowMax = 32;          // words of an item
// A touch is in the row this number of cycles later, at the latest.
constexpr uint64_t kTouchCycles = 3;

// The pseudo-LRU of a row: each node names the half in which a way is replaced next.
template <uint32_t kWays>
struct Tree {
  bool node[kWays - 1] = {};

  void touch(uint32_t way) {
    for (uint32_t half = kWays / 2, at = 0; half != 0; half /= 2) {
      const bool right = (way & half) != 0;
      node[at] = !right;
      at = 2 * at + 1 + (right ? 1 : 0);
    }
  }
  uint32_t oldest() const {
    uint32_t at = 0;
    while (at < kWays - 1) at = 2 * at + 1 + (node[at] ? 1 : 0);
    return at - (kWays - 1);
  }
};

// The tree since a cycle.
template <uint32_t kWays>
struct TreeSince {
  uint64_t cycle = 0;
  Tree<kWays> tree;
};

struct Way {
  bool live = false;
  uint32_t tag = 0;
  uint32_t half = 0;
  uint32_t beats = 0;
};

template <uint32_t kWays>
struct Row {
  Way ways[kWays];
  uint32_t writers = 0;  // that have come out and have not finished
  // The last one that has come out.
  uint32_t newest = 0;  // its number
  uint32_t tag = 0;
  bool followable = false;  // it stores, and others may follow it
  std::vector<TreeSince<kWays>> trees = {{}};
};

struct Asked {
  Record op;
  uint32_t row;
  uint32_t tag;
  uint64_t taken_at;
};

struct Writer {
  uint32_t row;
  uint32_t hazard;
};

template <typename Block, uint32_t kWays, uint32_t kTags>
void run(const Setup& setup) {
  Model<Block> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  Row<kWays> rows[kRows];
  std::deque<Asked> asked;
  std::vector<Writer> writers;                        // whose writes are under way
  std::deque<std::pair<uint32_t, uint32_t>> touches;  // that are to come: row, way
  // A change of the index that has been decided on, given in the next cycle.
  struct Update {
    uint32_t row, way;
    Way to;
  };
  std::deque<Update> updates;
  uint64_t found_count = 0;
  uint64_t replaced = 0;
  uint64_t replaced_surely = 0;  // the ways that it may replace were one
  uint32_t number = 0;           // of the next writer
  uint64_t followers = 0;        // of writers that have not finished
  uint64_t followers_write = 0;
  uint64_t last_touch = 0;

  Stream& in = bench.input("op", model->op_valid, model->op_ready,
                           {model->op, model->row_hash, model->tag_hash});
  Stream& out =
      bench.output("out", model->out_valid, model->out_ready,
                   {model->out_op, model->out_row, model->out_tag, model->out_found, model->out_way,
                    model->out_half, model->out_beats, model->out_hazard});
  Stream& read =
      bench.output("read", model->read_valid, model->read_ready,
                   {model->read_slot, model->read_beats, model->read_follows, model->read_from});
  struct Read {
    Bits slot, beats;
    bool follows;  // or else it may
    bool may_follow;
    uint32_t from;
  };
  std::deque<Read> reads;
  read.unchecked = true;
  read.on_beat = [&](const Beat& beat) {
    bench.check(!reads.empty(), "a read too many");
    const Read& one = reads.front();
    bench.check(beat[0] == one.slot && beat[1] == one.beats, "another item is read");
    bench.check(beat[2].zero() ? !one.follows : one.may_follow && beat[3].low() == one.from,
                "a read follows another writer");
    reads.pop_front();
  };
  // An operation and the request to read its item go on together.
  out.may_withdraw = read.may_withdraw = true;
  out.unchecked = true;
  in.on_beat = [&](const Beat& beat) {
    asked.push_back({Record(kMeta, beat[0]), static_cast<uint32_t>(beat[1].low()) % kRows,
                     static_cast<uint32_t>(beat[2].low()) % kTags, bench.cycles()});
  };
  out.on_beat = [&](const Beat& beat) {
    bench.check(!asked.empty(), "an operation too many");
    const Asked ask = asked.front();
    asked.pop_front();
    bench.check(beat[0] == ask.op.bits(), "another operation comes out");
    const uint64_t op = ask.op.get("op").low();
    if (!has_key(op)) return bench.check(beat[3].zero(), "something is found without a key");
    Row<kWays>& row = rows[ask.row];
    bench.check(beat[1].low() == ask.row && beat[2].low() == ask.tag, "row or tag is wrong");
    const bool in_place = op == kOpTouch || (op == kOpGet && !ask.op.get("touch").zero());
    const bool writer = op != kOpGet || in_place;
    const bool may_follow = row.followable && row.tag == ask.tag && !in_place;
    const bool follows = row.writers != 0;
    bench.check(!follows || may_follow, "an operation goes on before a write to its row is over");
    bench.check(!writer || row.writers <= 1, "a third write to a row begins");
    if (follows) {
      ++followers;
      if (writer) ++followers_write;
    }
    const bool plain = op == kOpSet && ask.op.get("cas_cmp").zero();
    const auto way = static_cast<uint32_t>(beat[4].low());
    const Way* held = std::find_if(row.ways, row.ways + kWays,
                                   [&](const Way& one) { return one.live && one.tag == ask.tag; });
    const bool found = held != row.ways + kWays;
    bench.check(!beat[3].zero() == found, "found or not, wrongly");
    if (found) {
      ++found_count;
      bench.check(
          held == row.ways + way && beat[5].low() == held->half && beat[6].low() == held->beats,
          "the item is another one");
      if (!plain)
        reads.push_back({(uint64_t{ask.row} * kWays + way) << 1 | held->half, held->beats, follows,
                         may_follow, row.newest});
    } else {
      const bool has_free =
          std::any_of(row.ways, row.ways + kWays, [](const Way& one) { return !one.live; });
      bench.check(!has_free || !row.ways[way].live, "an item is replaced although a way is free");
      if (!has_free) {
        ++replaced;
        // The row was read at a time since the operation was taken, which the bench does not see:
        // it may not have got the touches after it.
        std::set<uint32_t> allowed;
        for (size_t i = 0; i < row.trees.size(); ++i) {
          const bool over =
              i + 1 < row.trees.size() && row.trees[i + 1].cycle + kTouchCycles < ask.taken_at;
          if (!over) allowed.insert(row.trees[i].tree.oldest());
        }
        if (allowed.size() == 1) ++replaced_surely;
        bench.check(allowed.count(way) != 0, "another item is replaced than the pseudo-LRU names");
      }
    }
    // What key_check would do, and in which order. No operation learns of a change before it
    // happens, but of a plain set's, which is sure to happen.
    if (!writer) {
      if (found) touches.emplace_back(ask.row, way);
      return;
    }
    bench.check(beat[7].low() == number % kHazards, "a writer has another's entry");
    ++row.writers;
    row.newest = number;
    row.tag = ask.tag;
    number = (number + 1) % kNumbers;
    const uint64_t words = 3 + ask.op.get("kbeats").low() + ask.op.get("vbeats").low();
    row.followable = plain && words <= kFollowMax;
    writers.push_back({ask.row, static_cast<uint32_t>(beat[7].low())});
    const uint32_t what = random.below(4);
    Update update = {ask.row, way, row.ways[way]};
    if (plain || what > 1) {
      update.to = {true, ask.tag, 1 - row.ways[way].half,
                   plain ? static_cast<uint32_t>(words) : 4 + random.below(200)};
      touches.emplace_back(ask.row, way);
    } else if (what == 0 && found) {
      update.to.live = false;
    } else {
      return;
    }
    row.ways[way] = update.to;
    updates.push_back(update);
  };
  bench.before = [&] {
    const bool updates_now = !updates.empty() && random.below(8) == 0;
    set(model->update_valid, updates_now);
    if (updates_now) {
      const Update& update = updates.front();
      set(model->update_row, update.row);
      set(model->update_way, update.way);
      set(model->update_live, update.to.live);
      set(model->update_tag, update.to.tag);
      set(model->update_half, update.to.half);
      set(model->update_beats, update.to.beats);
      updates.pop_front();
    }
    // Touches that follow each other closely may be lost; that is no fault.
    const bool touches_now = !touches.empty() && bench.cycles() > last_touch + 3;
    set(model->touch_valid, touches_now);
    if (touches_now) {
      const auto [row, way] = touches.front();
      set(model->touch_row, row);
      set(model->touch_way, way);
      rows[row].trees.push_back({bench.cycles(), rows[row].trees.back().tree});
      rows[row].trees.back().tree.touch(way);
      last_touch = bench.cycles();
      touches.pop_front();
    }
    // Writes end in any order, after their changes of the index.
    for (const bool a : {true, false}) {
      const bool frees = !writers.empty() && updates.empty() && random.below(16) == 0;
      set(a ? Port(model->free_a_valid) : Port(model->free_b_valid), frees);
      if (!frees) continue;
      const auto which = writers.begin() + random.below(static_cast<uint32_t>(writers.size()));
      set(a ? Port(model->free_a_id) : Port(model->free_b_id), which->hazard);
      --rows[which->row].writers;
      writers.erase(which);
    }
  };
  bench.after = [&] { bench.check(writers.size() <= kHazards, "more writers than entries"); };
  static const Op kOps[] = {kOpGet, kOpGet,    kOpGet,    kOpSet,  kOpSet,   kOpSet,  kOpSet,
                            kOpAdd, kOpAppend, kOpDelete, kOpIncr, kOpTouch, kOpNoop, kOpFlush};
  uint64_t hashes[2] = {};
  for (uint64_t i = bench.count(10000); i > 0; --i) {
    Record op(kMeta, random_bits(kMeta, random));
    op.set("op", kOps[random.below(14)]);
    if (random.below(4) != 0) op.set("touch", 0);
    if (random.below(4) != 0) op.set("cas_cmp", 0);
    op.set("kbeats", random.below(8));
    op.set("vbeats", random.below(26));
    // Often the same key twice in a row, or nearly so.
    for (uint64_t& hash : hashes)
      if (random.below(2) == 0) hash = random.next() >> 32;
    in.push({op.bits(), hashes[0], hashes[1]});
  }
  bench.run(400);
  bench.check(asked.empty() && writers.empty() && reads.empty(), "operations are left");
  bench.check(bench.count(10000) < 10000 || (followers > 200 && followers_write > 100),
              "too few follow others: " + std::to_string(followers) + ", " +
                  std::to_string(followers_write));
  bench.check(found_count > 100 && replaced > 100 && replaced_surely > replaced / 2,
              "too little was found or replaced");
}

const Registered registered("ht_lookup", run<Vht_lookup, 8, 16>);
const Registered two_ways("ht_lookup_2", run<Vht_lookup_2, 2, 16>);
const Registered sixteen_ways("ht_lookup_16", run<Vht_lookup_16, 16, 32>);

}  // namespace
}  // namespace warpcache::rtl
