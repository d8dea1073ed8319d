// SPDX-License-Identifier: Apache-2.0
// What kernels compute and what their traces hold, by hand.
#include "edge/interpret.h"

#include "edge/cases.h"
#include "edge/lanes.h"
#include "edge/own_kernel.h"
#include "edge/recording.h"
#include "edge/test_support.h"

namespace warpcache::edge_sim {
namespace {

const char* const kStoreOwnIndex = R"(
ld.param.u64 %rd1, [test_0];
cvta.to.global.u64 %rd2, %rd1;
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd4, %rd2, %rd3;
st.global.u32 [%rd4], %r1;
)";

TEST_F(KernelTest, OneStoreOfAWarpTouchesFourSectors) {
  ASSERT_TRUE(record_it(read(kStoreOwnIndex), 1, 32)) << why_;
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(data_[i], i);
  ASSERT_EQ(trace_.accesses.size(), 1u);
  EXPECT_EQ(trace_.accesses[0].count, 4);  // 128 bytes
  // What is left of it on a machine: the special register, the address, the store, the end.
  ASSERT_EQ(trace_.ctas[0][0].size(), 4u);
  EXPECT_EQ(trace_.machine_instructions(), 4u);
  EXPECT_EQ(trace_.ctas[0][0][2].waits[0], 2u);  // the store waits for its address
}

TEST_F(KernelTest, TheAddressesOfATraceAreItsOwn) {
  ASSERT_TRUE(record_it(read(kStoreOwnIndex), 1, 32)) << why_;
  const std::vector<uint32_t> first = trace_.sectors;
  std::vector<uint32_t> other(4096);
  Regions regions;
  regions.add(other.data(), other.size() * 4);
  Launch launch;
  launch.push(other.data());
  launch.push(0);
  KernelTrace trace;
  ASSERT_TRUE(record(kernels_["test"], launch, regions, {}, &trace, &why_)) << why_;
  EXPECT_EQ(trace.sectors, first);
}

// Lanes 0 to 7 go one way, the others the other; they meet again for the store.
TEST_F(KernelTest, LanesPartAndMeet) {
  const Kernel& kernel = read(R"(
ld.param.u64 %rd1, [test_0];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd4, %rd1, %rd3;
setp.lt.u32 %p1, %r1, 8;
@%p1 bra LOW;
add.s32 %r2, %r1, 100;
bra.uni BOTH;
LOW:
add.s32 %r2, %r1, 200;
BOTH:
st.global.u32 [%rd4], %r2;
)");
  how_.paths = true;
  ASSERT_TRUE(record_it(kernel, 1, 32)) << why_;
  EXPECT_EQ(data_[7], 207u);
  EXPECT_EQ(data_[8], 108u);
  std::vector<uint32_t> lanes;
  for (const Step& step : trace_.ctas[0][0]) lanes.push_back(step.lanes);
  EXPECT_EQ(lanes, (std::vector<uint32_t>{32, 32, 32, 32, 8, 24, 24, 32, 32}));
  EXPECT_EQ(trace_.paths[7].size(), 3u);
  EXPECT_EQ(trace_.paths[7][1], 2u);
  EXPECT_EQ(trace_.paths[8][1], 1u);
}

// A loop whose lanes leave one after the other: 32 + 31 + ... + 1 lanes in 32 iterations.
TEST_F(KernelTest, ALoopThatLanesLeaveOneByOne) {
  const Kernel& kernel = read(R"(
mov.u32 %r1, %tid.x;
mov.u32 %r2, 0;
LOOP:
add.s32 %r2, %r2, 1;
setp.le.u32 %p1, %r2, %r1;
@%p1 bra LOOP;
)");
  ASSERT_TRUE(record_it(kernel, 1, 32)) << why_;
  EXPECT_EQ(trace_.ctas[0][0].size(), 1u + 32 * 3 + 1);
  EXPECT_EQ(trace_.lane_instructions(), 32u + 3 * (32 * 33 / 2) + 32);
}

TEST_F(KernelTest, SharedMemoryCountsConflicts) {
  const Kernel& kernel = read(R"(
mov.u32 %r1, %tid.x;
shl.b32 %r2, %r1, 3;
mov.u32 %r3, buffer;
add.s32 %r4, %r3, %r2;
st.shared.u32 [%r4], %r1;
bar.sync 0;
ld.shared.u32 %r5, [buffer+4];
)",
                              ".shared .align 4 .b8 buffer[256];\n");
  ASSERT_TRUE(record_it(kernel, 1, 32)) << why_;
  ASSERT_EQ(trace_.accesses.size(), 2u);
  EXPECT_EQ(trace_.accesses[0].degree, 2);  // every second bank, each twice
  EXPECT_EQ(trace_.accesses[1].degree, 1);  // one word for all
}

TEST_F(KernelTest, ArithmeticAtItsEdges) {
  const Kernel& kernel = read(R"(
ld.param.u64 %rd1, [test_0];
mov.u32 %r1, -7;
mov.u32 %r2, 3;
div.s32 %r3, %r1, %r2;
st.global.u32 [%rd1], %r3;
rem.s32 %r4, %r1, %r2;
st.global.u32 [%rd1+4], %r4;
mul.hi.u32 %r5, %r1, %r1;
st.global.u32 [%rd1+8], %r5;
shr.s32 %r6, %r1, 40;
st.global.u32 [%rd1+12], %r6;
prmt.b32 %r7, 0x44332211, 0x88776655, 0x7530;
st.global.u32 [%rd1+16], %r7;
bfind.shiftamt.u32 %r8, 1;
st.global.u32 [%rd1+20], %r8;
bfi.b32 %r9, 5, -1, 8, 4;
st.global.u32 [%rd1+24], %r9;
shf.r.wrap.b32 %r10, 0x89abcdef, 0x01234567, 8;
st.global.u32 [%rd1+28], %r10;
div.u32 %r11, %r1, 0;
st.global.u32 [%rd1+32], %r11;
)");
  ASSERT_TRUE(record_it(kernel, 1, 1)) << why_;
  const uint32_t wanted[] = {static_cast<uint32_t>(-2),
                             static_cast<uint32_t>(-1),
                             0xfffffff2,
                             0xffffffff,
                             0x88664411,
                             31,
                             0xfffff5ff,
                             0x6789abcd,
                             0xffffffff};
  for (uint32_t i = 0; i < std::size(wanted); ++i) EXPECT_EQ(data_[i], wanted[i]) << i;
}

TEST_F(KernelTest, WhatAKernelMayNotDo) {
  const auto expect_refused = [&](const Kernel& kernel, const char* why) {
    EXPECT_FALSE(record_it(kernel, 1, 32));
    EXPECT_NE(why_.find(why), std::string::npos) << why_;
  };
  expect_refused(read("mov.u64 %rd1, 4096;\nld.global.u32 %r1, [%rd1];"), "not in its buffers");
  expect_refused(read("ld.param.u64 %rd1, [test_0];\nld.global.u32 %r1, [%rd1+2];"), "not aligned");
  expect_refused(read("ld.param.u64 %rd1, [test_0];\nld.global.u32 %r1, [%rd1+16384];"),
                 "not in its buffers");
  expect_refused(read("ld.shared.u32 %r1, [buffer+61];", ".shared .align 4 .b8 buffer[64];\n"),
                 "not in shared memory");
  expect_refused(read("ld.param.u64 %rd1, [test_1];"), "not in its parameters");
  expect_refused(read("trap;"), "traps");
  how_.steps_max = 1000;
  expect_refused(read("LOOP:\nadd.s32 %r1, %r1, 1;\nbra.uni LOOP;"), "no end");
  EXPECT_FALSE(record_it(read("ret;"), 1, 2048));
}

TEST(ReadPtx, SaysWhatItCannotRead) {
  const auto expect_refused = [](const std::string& text, const std::string& reason) {
    std::map<std::string, Kernel> kernels;
    std::string why;
    EXPECT_FALSE(read_ptx(text, &kernels, &why)) << text;
    EXPECT_NE(why.find(reason), std::string::npos) << why;
  };
  expect_refused(ptx_of("tex.2d.v4.f32.s32 {%f1}, [t, {%r1}];"), "not supported");
  expect_refused(ptx_of("add.f64 %rd1, %rd2, %rd3;"), "double precision");
  expect_refused(ptx_of("bra NOWHERE;"), "no label NOWHERE");
  expect_refused(ptx_of("add.s32 %r99, %r1, %r2;"), "destination");
  expect_refused(ptx_of("add.s32 %r1, %r1, %q2;"), "operand");
  expect_refused(ptx_of("mov.u32 %r1, 1"), "several lines");
  expect_refused(ptx_of("add.s32;"), "operands are missing");
  expect_refused(ptx_of("st.param.u32 [test_1], %r1;"), "not supported");
  expect_refused(ptx_of("ld.global.pred %p1, [%rd1];"), "not supported");
  expect_refused(ptx_of("@%p1;"), "without an instruction");
  expect_refused(ptx_of("@%q1 bra X;"), "predicate");
  expect_refused(ptx_of("mov.u32 {%r1, %r2, %r3, %r4, %r5}, 1;"), "destination");
  expect_refused(ptx_of("", ".shared .align 4 .b8 big[999999];\n"), "too much shared memory");
  expect_refused(ptx_of("", ".reg .b32 %x<99999999>;\n"), "too many registers");
  expect_refused(".visible .entry open(\n)\n{\n.reg .b32 %r<2>;\n", "no end");
}

// Every named kernel computes what its reference does, and its warps take the same ways as those
// of cfg-sim's machine.
class NamedKernel : public testing::TestWithParam<const char*> {};

TEST_P(NamedKernel, IsRightAndItsWarpsMeetAsCfgSimSays) {
  KernelTrace trace;
  bool differs = false;
  std::string why;
  RecordOptions how;
  how.paths = true;
  ASSERT_TRUE(record_case(GetParam(), {.scale = 0.06}, how, &trace, &differs, &why)) << why;
  Lanes lanes;
  ASSERT_TRUE(measure_lanes(trace, 100, 1, &lanes, &why)) << why;
  EXPECT_DOUBLE_EQ(lanes.recorded.efficiency, lanes.actual.efficiency);
  EXPECT_EQ(lanes.recorded.shares.size(), 8u);
  for (size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(lanes.recorded.shares[i], lanes.actual.shares[i], 1e-12) << i;
}

INSTANTIATE_TEST_SUITE_P(All, NamedKernel,
                         testing::Values("matmul", "conv", "stencil", "reduce", "bfs", "kmeans",
                                         "needle", "strings", "rays", "get", "get-mixed"));

TEST(Cases, WhatDoesNotExistIsASentence) {
  Case one;
  std::string why;
  EXPECT_FALSE(make_case("nothing", {}, &one, &why));
  EXPECT_EQ(why, "no kernel nothing");
  EXPECT_FALSE(make_case("matmul", {.scale = 0}, &one, &why));
  EXPECT_FALSE(make_case("matmul", {.scale = 1e9}, &one, &why));
}

TEST(Cases, ADifferentSeedIsADifferentInput) {
  KernelTrace a, b, c;
  bool differs = false;
  std::string why;
  ASSERT_TRUE(record_case("bfs", {.scale = 0.05, .seed = 1}, {}, &a, &differs, &why));
  ASSERT_TRUE(record_case("bfs", {.scale = 0.05, .seed = 1}, {}, &b, &differs, &why));
  ASSERT_TRUE(record_case("bfs", {.scale = 0.05, .seed = 2}, {}, &c, &differs, &why));
  EXPECT_EQ(a.machine_instructions(), b.machine_instructions());
  EXPECT_NE(a.machine_instructions(), c.machine_instructions());
}

}  // namespace
}  // namespace warpcache::edge_sim
