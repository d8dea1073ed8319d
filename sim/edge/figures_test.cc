// SPDX-License-Identifier: Apache-2.0
// The key points of each figure, on small inputs: what must stay true of the model.
#include <algorithm>

#include "edge/lanes.h"
#include "edge/options.h"
#include "edge/recording.h"
#include "edge/test_support.h"

namespace warpcache::edge_sim {
namespace {

constexpr PreemptOptions kAll = {.always = true,
                                 .barrier_skip = true,
                                 .victim_priority = true,
                                 .flush_buffer = true,
                                 .replay_loads = true};

class Figures : public testing::Test {
 protected:
  static const KernelTrace& trace(const std::string& name, double scale, uint32_t warp_size = 32) {
    static std::map<std::string, KernelTrace> traces;
    KernelTrace& one = traces[name + std::to_string(scale) + " " + std::to_string(warp_size)];
    if (one.kernel != nullptr) return one;
    bool differs = false;
    std::string why;
    RecordOptions how;
    how.warp_size = warp_size;
    EXPECT_TRUE(record_case(name, {.scale = scale}, how, &one, &differs, &why)) << why;
    return one;
  }

  static RunOptions on(const char* machine) {
    RunOptions options;
    std::string why;
    EXPECT_TRUE(find_machine(machine, &options.machine, &why)) << why;
    return options;
  }

  static RunResult run_it(const KernelTrace* kernel, const RunOptions& options) {
    RunResult result;
    std::string why;
    EXPECT_TRUE(run(kernel, options, {}, &result, &why)) << why;
    return result;
  }

  static double stall(const RunResult& result) {
    return static_cast<double>(result.interrupts.preempt_cycles) /
           static_cast<double>(std::max<uint64_t>(1, result.interrupts.preemptions));
  }
};

TEST_F(Figures, TheSameRunTwiceIsTheSame) {
  RunOptions options = on("gem5");
  options.interrupts.period = 3000;
  options.preempt.victim = Victim::kNewest;
  const RunResult a = run_it(&trace("bfs", 0.2), options), b = run_it(&trace("bfs", 0.2), options);
  EXPECT_EQ(a.cycles, b.cycles);
  EXPECT_EQ(a.interrupts.preempt_cycles, b.interrupts.preempt_cycles);
  EXPECT_EQ(a.l1.hits, b.l1.hits);
  EXPECT_EQ(a.interrupts.isr_cycles, b.interrupts.isr_cycles);
}

// 5.9, 5.10: contexts and registers follow from what a block takes.
TEST_F(Figures, ContextsAndRegisters) {
  const RunResult matmul = run_it(&trace("matmul", 1), on("gem5"));
  const double registers = matmul.sm.register_cycles / static_cast<double>(matmul.sm.busy_cycles);
  EXPECT_GT(registers, 0.9 * 65536);  // 32 registers in 64 warps are all
  const RunResult needle = run_it(&trace("needle", 0.2), on("gem5"));
  EXPECT_EQ(needle.sm.free_context_cycles,
            needle.sm.busy_cycles);  // shared memory is what limits it
}

// 5.11, 5.12: the newest waits longer than the oldest, and the short cuts take most of it away.
TEST_F(Figures, PreemptionAndItsShortCuts) {
  for (const Victim victim : {Victim::kOldest, Victim::kNewest}) {
    double base = 0, all = 0;
    for (const char* const name : {"matmul", "conv", "reduce"}) {
      RunOptions options = on("gem5");
      options.interrupts.period = 10000;
      options.preempt = {.victim = victim, .always = true};
      base += stall(run_it(&trace(name, 0.5), options));
      options.preempt = kAll;
      options.preempt.victim = victim;
      all += stall(run_it(&trace(name, 0.5), options));
    }
    EXPECT_GT(base / 3, 300);
    EXPECT_LT(all / 3, 50);
    EXPECT_GT(base / all, 20);
  }
}

TEST_F(Figures, EachShortCutAloneIsNoWorseThanTwiceNone) {
  RunOptions options = on("gem5");
  options.interrupts.period = 5000;
  options.preempt = {.victim = Victim::kNewest, .always = true};
  const double base = stall(run_it(&trace("conv", 0.5), options));
  for (bool PreemptOptions::*one : {&PreemptOptions::barrier_skip, &PreemptOptions::victim_priority,
                                    &PreemptOptions::flush_buffer, &PreemptOptions::replay_loads}) {
    options.preempt = {.victim = Victim::kNewest, .always = true};
    options.preempt.*one = true;
    EXPECT_LT(stall(run_it(&trace("conv", 0.5), options)), 2 * base);
  }
}

// 5.13: short routines cost little, long ones more; 5.14: SMs that are reserved cost.
TEST_F(Figures, WhatRoutinesCost) {
  RunOptions options = on("gem5");
  const double alone = run_it(&trace("conv", 0.5), options).ipc;
  options.preempt = kAll;
  options.preempt.always = false;
  options.preempt.code_lines_reserved = 3;
  options.interrupts.period = 24000;
  options.interrupts.delay = 73;
  const double with_short = run_it(&trace("conv", 0.5), options).ipc;
  options.interrupts.delay = 1093;
  const double with_long = run_it(&trace("conv", 0.5), options).ipc;
  EXPECT_GT(with_short, 0.95 * alone);
  EXPECT_LT(with_long, with_short);
}

TEST_F(Figures, ReservedSmsAndBlocks) {
  RunOptions options = on("gem5-4");
  options.interrupts.event = &trace("get", 0.125);
  const KernelTrace& conv = trace("conv", 1);
  const Cycle all = run_it(&conv, options).cycles;
  options.interrupts.sms_reserved = 2;
  EXPECT_GT(run_it(&conv, options).cycles, all * 5 / 4);
  options.interrupts.sms_reserved = 0;
  options.interrupts.blocks_reserved = 1;
  EXPECT_LT(run_it(&conv, options).cycles, all * 3 / 2);
}

// 5.15, 5.16: reserved lines shorten the routine; with P2 event kernels end sooner and the other
// kernel later.
TEST_F(Figures, EventKernelsAndPriorities) {
  RunOptions options = on("gem5-4");
  options.interrupts.event = &trace("get", 0.03);
  options.interrupts.period = 20000;
  options.preempt = kAll;
  options.preempt.always = false;
  const KernelTrace& conv = trace("conv", 1);
  const RunResult p1 = run_it(&conv, options);
  options.interrupts.priority = Priority::kP2;
  const RunResult p2 = run_it(&conv, options);
  EXPECT_GT(p1.events, 2u);
  EXPECT_LT(p2.event_cycles, p1.event_cycles);
  EXPECT_GE(p2.cycles, p1.cycles);
  options.preempt.code_lines_reserved = 3;
  const RunResult reserved = run_it(&conv, options);
  EXPECT_LT(
      static_cast<double>(reserved.interrupts.isr_cycles) /
          static_cast<double>(reserved.interrupts.served),
      static_cast<double>(p2.interrupts.isr_cycles) / static_cast<double>(p2.interrupts.served));
}

// 3.11, 3.12: a larger L1 misses less and is faster; no latency is faster still, no stalls most.
TEST_F(Figures, TheL1AndIdealMemories) {
  const KernelTrace& get = trace("get-mixed", 0.25);
  uint64_t misses = ~uint64_t{0};
  double speed = 0;
  for (const uint32_t bytes : {8192u, 32768u, 1048576u}) {
    RunOptions options = on("gpgpu-sim");
    options.machine.l1.bytes = bytes;
    options.machine.l1.ways = bytes == 1048576 ? 0 : 8;
    const RunResult result = run_it(&get, options);
    EXPECT_LT(result.l1.misses, misses);
    EXPECT_GE(result.lane_ipc, speed);
    misses = result.l1.misses;
    speed = result.lane_ipc;
  }
  for (const MemoryModel model : {MemoryModel::kNoLatency, MemoryModel::kNoStalls}) {
    RunOptions options = on("gpgpu-sim");
    options.machine.memory = model;
    const double ideal = run_it(&get, options).lane_ipc;
    EXPECT_GT(ideal, speed);
    speed = ideal;
  }
}

// 3.10: what branches say one by one is far less than what warps do.
TEST_F(Figures, EqualBranchesAreFarTooLow) {
  RecordOptions how;
  how.paths = true;
  KernelTrace rays;
  bool differs = false;
  std::string why;
  ASSERT_TRUE(record_case("rays", {.scale = 0.1}, how, &rays, &differs, &why)) << why;
  Lanes lanes;
  ASSERT_TRUE(measure_lanes(rays, 2000, 1, &lanes, &why)) << why;
  EXPECT_GT(lanes.actual.efficiency, 2 * lanes.equal.efficiency);
  EXPECT_GT(lanes.augmented.efficiency, lanes.equal.efficiency);
}

// 3.14: warps of 64 lose to warps of 8 where lanes part.
TEST_F(Figures, WiderWarpsPart) {
  const KernelTrace &narrow = trace("get-mixed", 0.1, 8), &wide = trace("get-mixed", 0.1, 64);
  EXPECT_GT(wide.machine_instructions() * 64, narrow.machine_instructions() * 8);
}

}  // namespace
}  // namespace warpcache::edge_sim
