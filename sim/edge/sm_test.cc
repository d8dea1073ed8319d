// SPDX-License-Identifier: Apache-2.0
// Cycles of small kernels and of interrupts, by hand. A block is launched in cycle 0; its warps
// fetch from cycle 1 and issue from cycle 2 on.
#include "edge/recording.h"
#include "edge/test_support.h"

namespace warpcache::edge_sim {
namespace {

class SmTest : public KernelTest {
 protected:
  SmTest() { options_.machine = small_machine(); }

  RunResult run_it() {
    RunResult result;
    EXPECT_TRUE(run(&trace_, options_, {}, &result, &why_)) << why_;
    return result;
  }

  // Four additions, each of the last one's result.
  void record_chain(uint32_t threads) {
    ASSERT_TRUE(record_it(read("mov.u32 %r1, %tid.x;\nadd.s32 %r1, %r1, 1;\nadd.s32 %r1, %r1, "
                               "1;\nadd.s32 %r1, %r1, 1;"),
                          1, threads))
        << why_;
  }

  // One load from DRAM, and an addition that needs it.
  const char* load_ =
      "ld.param.u64 %rd1, [test_0];\nld.global.u32 %r1, [%rd1];\nadd.s32 %r2, %r1, 1;";

  RunOptions options_;
};

TEST_F(SmTest, AChainOfDependentInstructions) {
  record_chain(32);
  const RunResult result = run_it();
  // Issued at 2, 6, 10 and 14, the end at 15: it leaves the pipeline at 19.
  EXPECT_EQ(result.cycles, 19u);
  EXPECT_EQ(result.instructions, 5u);
}

TEST_F(SmTest, AnotherWarpFillsTheGaps) {
  record_chain(64);
  // The second warp at 3, 7 and 11. At 15 the first goes on with its end, so 16, and 17 its own
  // end.
  EXPECT_EQ(run_it().cycles, 21u);
}

TEST_F(SmTest, TheFetchUnitTakesOneWarpACycle) {
  record_chain(128);
  options_.machine.fetch_width = options_.machine.buffer_entries = 8;
  // The warps begin at 2, 3, 4 and 5. From 14 on each does its last two instructions at a time,
  // the fourth at 20 and 21.
  EXPECT_EQ(run_it().cycles, 25u);
}

TEST_F(SmTest, ALoadFromDram) {
  ASSERT_TRUE(record_it(read(load_), 1, 32)) << why_;
  const RunResult result = run_it();
  // The load at 2, the addition at 132, the end at 133.
  EXPECT_EQ(result.cycles, 137u);
  EXPECT_EQ(result.l1.misses, 1u);
}

TEST_F(SmTest, BlocksThatDoNotFitWait) {
  ASSERT_TRUE(record_it(read(load_), 5, 32)) << why_;  // four contexts
  // The first leaves at 137. The fifth is launched at 138, loads at 140 from the L1, adds at 150.
  EXPECT_EQ(run_it().cycles, 155u);
}

TEST_F(SmTest, ABarrierWaitsForTheLastWarp) {
  ASSERT_TRUE(record_it(read("bar.sync 0;"), 1, 64)) << why_;
  // The barriers issue at 2 and 3; the ends at 3 + 3 and 7.
  EXPECT_EQ(run_it().cycles, 11u);
}

TEST_F(SmTest, BothSchedulersFillEveryCycle) {
  std::string body = "mov.u32 %r1, %tid.x;\n";
  for (int i = 2; i < 8; ++i)
    body += "add.s32 %r" + std::to_string(i) + ", %r20, 1;\n";  // independent
  ASSERT_TRUE(record_it(read(body), 1, 64)) << why_;
  options_.machine.fetch_width = options_.machine.buffer_entries = 8;
  EXPECT_EQ(run_it().cycles, 21u);  // 16 instructions from 2 on
  options_.machine.scheduler = Scheduler::kRoundRobin;
  EXPECT_EQ(run_it().cycles, 21u);  // who goes first does not matter
}

TEST_F(SmTest, MemoryWithoutLatencyAndWithoutStalls) {
  ASSERT_TRUE(record_it(read(load_), 1, 32)) << why_;
  // The load at 2, the addition at 3, the end at 4.
  options_.machine.memory = MemoryModel::kNoLatency;
  EXPECT_EQ(run_it().cycles, 8u);
  options_.machine.memory = MemoryModel::kNoStalls;
  EXPECT_EQ(run_it().cycles, 8u);
}

// --- Interrupts

// The first interrupt comes at 10, while the warp waits for a load that is back at 132.
TEST_F(SmTest, WithoutShortCutsAVictimWaitsForItsLoad) {
  ASSERT_TRUE(record_it(read(load_), 1, 32)) << why_;
  options_.interrupts.period = 10;
  options_.preempt.pending_max = 1;
  options_.preempt.always = true;
  options_.machine.buffer_entries = options_.machine.fetch_width = 1;
  const RunResult result = run_it();
  EXPECT_GE(result.interrupts.preemptions, 1u);
  // The addition lies in the i-buffer: it issues at 132 and is done at 136.
  EXPECT_EQ(result.interrupts.preempt_max, 126u);
  EXPECT_EQ(result.interrupts.replayed_loads, 0u);
}

TEST_F(SmTest, AReplayedLoadIsDroppedAtOnce) {
  ASSERT_TRUE(record_it(read(load_), 1, 32)) << why_;
  options_.interrupts.period = 10;
  options_.preempt.pending_max = 1;
  options_.preempt.always = true;
  options_.preempt.replay_loads = true;
  const RunResult result = run_it();
  EXPECT_EQ(result.interrupts.preempt_max, 4u);  // an addition that is under way is waited for
  EXPECT_GE(result.interrupts.replayed_loads, 1u);
  EXPECT_EQ(result.instructions, 3u);  // a replay is not counted again
}

TEST_F(SmTest, ABarrierHoldsAVictimUnlessItIsSkipped) {
  // Warp 1 (the newest) reaches the barrier at once, warp 0 after its load.
  const char* const body = R"(
ld.param.u64 %rd1, [test_0];
mov.u32 %r3, %tid.x;
setp.ge.u32 %p1, %r3, 32;
@%p1 bra WAIT;
ld.global.u32 %r1, [%rd1];
add.s32 %r2, %r1, 1;
st.global.u32 [%rd1], %r2;
WAIT:
bar.sync 0;
)";
  ASSERT_TRUE(record_it(read(body), 1, 64)) << why_;
  options_.interrupts.period = 60;
  options_.preempt.victim = Victim::kNewest;
  options_.preempt.always = true;
  const RunResult waits = run_it();
  EXPECT_GT(waits.interrupts.preempt_max, 70u);
  EXPECT_GT(waits.interrupts.causes.barrier, 70u);
  options_.preempt.barrier_skip = true;
  const RunResult skips = run_it();
  EXPECT_LE(skips.interrupts.preempt_max, 1u);
  EXPECT_EQ(skips.instructions, waits.instructions);
}

TEST_F(SmTest, OwnContextsAreNeverWaitedFor) {
  ASSERT_TRUE(record_it(read(load_), 400, 32)) << why_;
  options_.interrupts.period = 400;
  for (const Victim victim : {Victim::kDedicated, Victim::kReserved}) {
    options_.preempt.victim = victim;
    const RunResult result = run_it();
    EXPECT_EQ(result.interrupts.preemptions, 0u);
    EXPECT_GE(result.interrupts.served, 1u);
  }
  options_.preempt.victim = Victim::kFree;
  EXPECT_EQ(run_it().interrupts.preemptions, 0u);
}

TEST_F(SmTest, AReservedContextIsOneLessForBlocks) {
  ASSERT_TRUE(record_it(read(load_), 4, 32)) << why_;
  EXPECT_EQ(run_it().cycles, 143u);  // the fourth adds at 138
  options_.preempt.victim = Victim::kReserved;
  EXPECT_EQ(run_it().cycles, 155u);  // the fourth block comes after the first, as above
}

TEST_F(SmTest, InterruptsWithoutEndDoNotStopAKernel) {
  ASSERT_TRUE(record_it(read(load_), 4, 128)) << why_;
  options_.interrupts.period = 1;
  options_.preempt = {.always = true,
                      .barrier_skip = true,
                      .victim_priority = true,
                      .flush_buffer = true,
                      .replay_loads = true};
  options_.cycles_max = 1'000'000;
  const RunResult result = run_it();
  EXPECT_GT(result.interrupts.lost, 0u);
}

TEST_F(SmTest, ReservedCodeLinesNeverMiss) {
  options_.machine.code_is_warm = false;
  options_.machine.code_lines = 8;
  options_.interrupts.period = 1000;
  options_.runs = 1;
  RunResult cold, reserved;
  ASSERT_TRUE(run(nullptr, options_, {}, &cold, &why_)) << why_;
  options_.preempt.code_lines_reserved = 3;
  ASSERT_TRUE(run(nullptr, options_, {}, &reserved, &why_)) << why_;
  // Without a victim's registers the routine takes one line and a part of the next.
  EXPECT_GE(cold.interrupts.isr_cycles, reserved.interrupts.isr_cycles + 130);
}

TEST(Routine, FitsIntoThreeLines) {
  uint32_t chip_from = 0;
  const KernelTrace trace = record_isr({}, &chip_from);
  EXPECT_LE(trace.kernel->slots * 8, 3u * 128);
  EXPECT_EQ(trace.kernel->name, "isr");
}

TEST_F(SmTest, WhatMakesNoSenseIsASentence) {
  record_chain(32);
  const auto expect_refused = [&](auto change, const char* reason) {
    RunOptions options = options_;
    change(&options);
    RunResult result;
    EXPECT_FALSE(run(&trace_, options, {}, &result, &why_));
    EXPECT_NE(why_.find(reason), std::string::npos) << why_;
  };
  expect_refused([](RunOptions* o) { o->machine.sms = 0; }, "0 SMs");
  expect_refused([](RunOptions* o) { o->machine.warps = 100000; }, "warp contexts");
  expect_refused([](RunOptions* o) { o->machine.schedulers = 0; }, "schedulers");
  expect_refused([](RunOptions* o) { o->machine.fetch_width = 0; }, "fetches no instruction");
  expect_refused([](RunOptions* o) { o->machine.l1.bytes = 100; }, "whole lines");
  expect_refused([](RunOptions* o) { o->machine.l1.line_bytes = 48; }, "not 32, 64 or 128");
  expect_refused([](RunOptions* o) { o->machine.l1.ways = 3; }, "do not fill sets");
  expect_refused([](RunOptions* o) { o->machine.l2.bytes = 0; }, "no L2");
  expect_refused([](RunOptions* o) { o->machine.dram_bytes = 0; }, "without bandwidth");
  expect_refused([](RunOptions* o) { o->machine.misses = 0; }, "no miss");
  expect_refused([](RunOptions* o) { o->machine.alu_interval = 0; }, "interval of 0");
  expect_refused([](RunOptions* o) { o->preempt.code_lines_reserved = 16; }, "reserved");
  expect_refused([](RunOptions* o) { o->interrupts.sms_reserved = 1; }, "none is left");
  expect_refused([](RunOptions* o) { o->runs = 0; }, "no run");
  expect_refused([](RunOptions* o) { o->machine.registers = 10; }, "does not fit");
  expect_refused([](RunOptions* o) { o->cycles_max = 3; }, "given up");
}

}  // namespace
}  // namespace warpcache::edge_sim
