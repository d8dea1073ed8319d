// SPDX-License-Identifier: Apache-2.0
// The machine that a trace runs on. Times are cycles of the SM's clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace warpcache::edge_sim {

enum class Scheduler : uint8_t { kGreedyThenOldest, kRoundRobin };

// What memory costs: all of it; a hit's port only, one request a cycle; or nothing at all.
enum class MemoryModel : uint8_t { kFull, kNoLatency, kNoStalls };

struct CacheShape {
  uint32_t bytes = 0;  // 0: no cache
  uint32_t line_bytes = 128;
  uint32_t ways = 4;  // 0: fully associative
};

struct Machine {
  std::string name;
  // --- What an SM holds
  uint32_t sms = 1;
  uint32_t warps = 64;  // contexts
  uint32_t blocks = 32;
  uint32_t registers = 65536;
  uint32_t register_unit = 256;  // allocated a warp in multiples of
  uint32_t shared_bytes = 49152;
  // --- Instructions
  uint32_t schedulers = 1;  // each issues at most one instruction a cycle
  Scheduler scheduler = Scheduler::kGreedyThenOldest;
  uint32_t buffer_entries = 2;  // i-buffer of a warp, instructions
  uint32_t fetch_width = 2;     // instructions that one fetch brings
  uint32_t fetches = 1;         // a cycle
  uint32_t instruction_bytes = 8;
  uint32_t code_lines = 16;  // of the instruction cache, line_bytes each, least recently used
  uint32_t code_line_bytes = 128;
  bool code_is_warm = false;  // the kernel's code is in the instruction cache at the start
  // --- Latencies until a result can be used, and cycles that a scheduler's pipeline is taken
  uint32_t alu_latency = 4, alu_interval = 1;
  uint32_t lanes =
      0;  // of a pipeline; then alu_interval follows from the warp's size. 0: all of a warp's
  uint32_t wide_latency = 8;  // a 64-bit product; several instructions
  uint32_t special_latency = 20, special_interval = 4;
  uint32_t shared_latency = 24;
  uint32_t barrier_latency = 4;
  uint32_t controller_latency = 16;  // a load from the SM's interrupt controller
  uint32_t branch_latency = 2;       // until the target can be fetched
  // --- Memory
  MemoryModel memory = MemoryModel::kFull;
  uint32_t sector_bytes = 128;  // that a miss brings: 32 or a whole line
  CacheShape l1{16384, 128, 4};
  uint32_t l1_latency = 20;
  uint32_t l1_interval = 1;      // cycles a line request takes in the load-store unit
  uint32_t misses = 64;          // lines that an SM waits for at a time
  CacheShape l2{65536, 128, 8};  // of all SMs
  uint32_t l2_latency = 120;
  double sm_bytes = 64;         // a cycle, from the L2 to one SM
  double l2_bytes = 64;         // a cycle, all SMs together
  uint32_t dram_latency = 220;  // beyond l2_latency
  double dram_bytes = 16;       // a cycle, all SMs together
  double clock_mhz = 700;
};

const std::vector<std::string>& machine_names();

// False: `why` says which names there are.
bool find_machine(const std::string& name, Machine* out, std::string* why);

// Empty, or a sentence about what makes no sense.
std::string check_machine(const Machine& machine);

}  // namespace warpcache::edge_sim
