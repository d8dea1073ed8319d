// SPDX-License-Identifier: Apache-2.0
//
// Gets begin, are settled and overtaken, replies and seconds come: in any cycle. The bench keeps a
// list of the gets.
#include <Vfill_table.h>

#include <algorithm>

#include "layouts.h"
#include "testbench.h"

namespace warpcache::rtl {
namespace {

constexpr uint32_t kSlots = 8;
constexpr uint32_t kRows = 4;

struct Get {
  Bits asker;
  uint32_t row_hash, tag_hash;
  enum { kLookedUp, kPassed } state;
  bool dead = false;
  int ticks = 0;  // since it was passed
};

void run(const Setup& setup) {
  Model<Vfill_table> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  std::vector<Get> slots[kSlots];  // none or one
  std::vector<Get> seen;           // whose reply may come, whatever has become of them
  uint64_t alive_count = 0;
  uint64_t dead_count = 0;
  for (uint64_t i = bench.count(40000); i > 0; --i) {
    // A get begins, or a write kills.
    const bool kills = random.below(8) == 0;
    const bool all = random.below(8) == 0;
    const bool begins = !kills && random.below(3) == 0;
    const uint32_t begin_slot = random.below(kSlots);
    const Get get = {random_bits(kAsker, random), static_cast<uint32_t>(random.next() >> 32),
                     static_cast<uint32_t>(random.next() >> 32), Get::kLookedUp};
    const auto kill_row = static_cast<uint32_t>(random.next() >> 32);
    set(model->begin_valid, begins);
    set(model->begin_slot, begin_slot);
    set(model->begin_asker, get.asker);
    set(model->begin_row_hash, get.row_hash);
    set(model->begin_tag_hash, get.tag_hash);
    set(model->kill_valid, kills);
    set(model->kill_all, all);
    set(model->kill_row_hash, kill_row);
    // One is settled that has begun before.
    std::vector<uint32_t> looked_up;
    for (uint32_t s = 0; s < kSlots; ++s)
      if (!slots[s].empty() && slots[s][0].state == Get::kLookedUp) looked_up.push_back(s);
    const bool settles = !looked_up.empty() && random.below(3) == 0;
    const uint32_t settled =
        looked_up.empty() ? 0 : looked_up[random.below(static_cast<uint32_t>(looked_up.size()))];
    const bool passed = random.below(4) != 0;
    set(model->settle_valid, settles);
    set(model->settle_slot, settled);
    set(model->settle_passed, passed);
    // A reply: to a get, to one of before, with another hash or another asker.
    const uint32_t reply_slot = random.below(kSlots);
    Get reply = !slots[reply_slot].empty() ? slots[reply_slot][0]
                : seen.empty()             ? get
                                           : seen[random.below(static_cast<uint32_t>(seen.size()))];
    const uint32_t other = random.below(10);
    if (other == 0) reply.asker.flip(static_cast<int>(random.below(161)));
    if (other == 1) reply.row_hash ^= 1u << random.below(32);
    if (other == 2) reply.tag_hash ^= 1u << random.below(32);
    set(model->reply_slot, reply_slot);
    set(model->reply_asker, reply.asker);
    set(model->reply_row_hash, reply.row_hash);
    set(model->reply_tag_hash, reply.tag_hash);
    const bool known = !slots[reply_slot].empty() && slots[reply_slot][0].state == Get::kPassed &&
                       slots[reply_slot][0].asker == reply.asker;
    const bool alive = known && !slots[reply_slot][0].dead &&
                       slots[reply_slot][0].row_hash == reply.row_hash &&
                       slots[reply_slot][0].tag_hash == reply.tag_hash;
    const bool done = known && random.below(3) == 0;
    set(model->reply_done, done);
    const bool tick = random.below(20) == 0;
    set(model->tick, tick);
    bench.after = [&] {
      bench.check((model->begin_ok != 0) == slots[begin_slot].empty(), "begin_ok is wrong");
      bench.check((model->known != 0) == known, "known is wrong");
      bench.check((model->alive != 0) == alive, "alive is wrong");
    };
    bench.step();
    if (alive) ++alive_count;
    if (known && !alive) ++dead_count;
    // What the cycle has changed.
    const bool free_before = slots[begin_slot].empty();
    for (uint32_t s = 0; s < kSlots; ++s) {
      if (slots[s].empty()) continue;
      Get& one = slots[s][0];
      if (kills && (all || one.row_hash % kRows == kill_row % kRows)) one.dead = true;
      const bool over = (done && s == reply_slot) ||
                        (tick && one.state == Get::kPassed && ++one.ticks == 2) ||
                        (settles && s == settled && !passed);
      if (over)
        slots[s].clear();
      else if (settles && s == settled)
        one.state = Get::kPassed;
    }
    if (begins && free_before) {
      slots[begin_slot] = {get};
      seen.push_back(get);
      if (seen.size() > 16) seen.erase(seen.begin());
    }
  }
  bench.check(alive_count > 200 && dead_count > 200, "too few replies");
}

const Registered registered("fill_table", run);

}  // namespace
}  // namespace warpcache::rtl
