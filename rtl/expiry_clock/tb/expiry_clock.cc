// SPDX-License-Identifier: Apache-2.0
//
// Seconds, clocks that are set, and flushes with all kinds of times, in any cycle.
#include <Vexpiry_clock.h>

#include "testbench.h"

namespace warpcache::rtl {
namespace {

constexpr uint32_t kMonth = 30 * 24 * 3600;

void run(const Setup& setup) {
  Model<Vexpiry_clock> model;
  Testbench bench(*model, setup);
  Random& random = bench.random();
  uint32_t now = 2;
  uint32_t before = 2;  // `now` a cycle ago: what a delay counts from
  uint32_t start = 0;
  uint32_t start_before = 0;
  uint64_t generation = 0;
  bool waits = false;
  uint32_t when = 0;
  uint64_t delayed = 0;
  uint64_t at_once = 0;
  const auto exptime = [&]() -> uint32_t {
    switch (random.below(8)) {
      case 0:
        return 0;
      case 1:
        return 0x80000000u | random.below(1000);
      case 2:
        return kMonth + random.below(2);
      case 3:
        return start + now - 3 + random.below(8);  // Unix times, where the clock has them
      default:
        return 1 + random.below(5);
    }
  };
  uint32_t next = exptime();
  bool held = false;  // the same exptime as in the cycle before
  bench.before = [&] {
    const uint64_t shown = model->generation;
    bench.check(model->now == now && model->unix_start == start && shown == generation,
                "now " + std::to_string(model->now) + ", generation " + std::to_string(shown) +
                    "; expected " + std::to_string(now) + ", " + std::to_string(generation));
    const bool tick = random.below(4) == 0;
    const bool sets = random.below(200) == 0;
    const bool flush = held && random.below(6) == 0;
    const uint32_t set_now = 2 + random.below(200);
    const uint32_t set_start = random.below(2) != 0 ? 0 : 1000000000u + random.below(100);
    set(model->tick, tick);
    set(model->set_valid, sets);
    set(model->set_now, set_now);
    set(model->set_unix_start, set_start);
    set(model->flush_valid, flush);
    set(model->flush_exptime, next);
    // The second at which the items die that are older than the flush.
    uint32_t second = 0;
    if (next != 0 && next <= kMonth)
      second = before + next - 1;
    else if (next != 0 && next < 0x80000000u && next > start_before)
      second = next - start_before - 1;
    const bool later = second > now;
    const uint32_t then = sets ? set_now : now + (tick ? 1 : 0);
    if (flush) {
      waits = later;
      when = second;
      ++(later ? delayed : at_once);
      if (!later) ++generation;
    } else if (waits && then >= when) {
      waits = false;
      ++generation;
    }
    before = now;
    start_before = start;
    now = then;
    if (sets) start = set_start;
    held = !flush && random.below(3) != 0;
    if (!held) next = exptime();
  };
  for (uint64_t i = bench.count(50000); i > 0; --i) bench.step();
  bench.check(delayed > 100 && at_once > 100, "too few flushes");
}

const Registered registered("expiry_clock", run);

}  // namespace
}  // namespace warpcache::rtl
