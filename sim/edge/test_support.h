// SPDX-License-Identifier: Apache-2.0
// Kernels of a few lines for tests.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "edge/gpu.h"
#include "edge/interpret.h"

namespace warpcache::edge_sim {

// A kernel `test` with a pointer and a number as parameters: `body` with registers %r, %rd, %p, %f.
inline std::string ptx_of(const std::string& body, const std::string& shared = "") {
  return ".visible .entry test(\n.param .u64 test_0,\n.param .u32 test_1\n)\n{\n.reg .pred "
         "%p<8>;\n.reg .b32 %r<32>;\n"
         ".reg .b64 %rd<16>;\n.reg .f32 %f<16>;\n" +
         shared + body + "\nret;\n}\n";
}

class KernelTest : public testing::Test {
 protected:
  // Reads `body` as a kernel; a failure is the test's.
  const Kernel& read(const std::string& body, const std::string& shared = "") {
    kernels_.clear();
    std::string why;
    EXPECT_TRUE(read_ptx(ptx_of(body, shared), &kernels_, &why)) << why;
    return kernels_["test"];
  }

  // Runs it on `data`, with `blocks` of `threads`.
  bool record_it(const Kernel& kernel, uint32_t blocks, uint32_t threads, int number = 0) {
    Regions regions;
    regions.add(data_, sizeof data_);
    Launch launch;
    launch.grid_x = blocks;
    launch.block_x = threads;
    launch.push(&data_[0]);
    launch.push(number);
    trace_ = KernelTrace{};
    return record(kernel, launch, regions, how_, &trace_, &why_);
  }

  std::map<std::string, Kernel> kernels_;
  alignas(128) uint32_t data_[4096] = {};
  RecordOptions how_;
  KernelTrace trace_;
  std::string why_;
};

// One SM whose every number is small: one scheduler, a fetch of two instructions, latencies of 4
// (ALU), 10 (L1), 30 (L2) and 100 more (DRAM), no limits of bandwidth.
inline Machine small_machine() {
  Machine machine;
  machine.name = "small";
  machine.warps = 4;
  machine.blocks = 4;
  machine.alu_latency = 4;
  machine.l1_latency = 10;
  machine.l2_latency = 30;
  machine.dram_latency = 100;
  machine.sm_bytes = machine.l2_bytes = machine.dram_bytes = 1e9;
  machine.shared_latency = 6;
  machine.barrier_latency = 3;
  machine.branch_latency = 2;
  machine.code_is_warm = true;
  return machine;
}

}  // namespace warpcache::edge_sim
