// SPDX-License-Identifier: Apache-2.0
#include "edge/machine.h"

#include <fmt/core.h>

#include <bit>

namespace warpcache::edge_sim {
namespace {

// The dissertation's table 5.2: 16 SMs share 1 MB of L2. The latencies are those of
// GPGPU-Sim's configurations of that time, since the dissertation gives none.
Machine gem5(uint32_t sms) {
  Machine machine;
  machine.name = "gem5";
  machine.sms = sms;
  machine.warps = 64;
  machine.blocks = 64;
  machine.l1 = {65536, 128, 4};
  machine.l2 = {sms * 65536, 128, 16};
  machine.l2_bytes = 8.0 * sms;
  machine.dram_bytes = 2.0 * sms;
  return machine;
}

// Table 3.3: 30 SMs of 8 lanes at 1300 MHz; memory's share of one SM.
Machine gpgpu_sim() {
  Machine machine;
  machine.name = "gpgpu-sim";
  machine.warps = 32;
  machine.blocks = 8;
  machine.registers = 65536;  // table 3.3 has 16384; our GET needs 60 a thread
  machine.shared_bytes = 16384;
  machine.scheduler = Scheduler::kRoundRobin;
  machine.lanes = 8;
  machine.l1 = {32768, 128, 8};
  machine.l2 = {16384, 128, 8};
  machine.l2_bytes = 16;
  machine.dram_bytes = 64.0 * 800 / 1300 / 30;
  machine.clock_mhz = 1300;
  return machine;
}

// An H100. Latencies and bandwidths are what edge-sim-gpu measures.
Machine h100() {
  Machine machine;
  machine.name = "h100";
  machine.sms = 132;
  machine.warps = 64;
  machine.blocks = 32;
  machine.shared_bytes = 227 * 1024;
  machine.schedulers = 4;
  machine.scheduler = Scheduler::kGreedyThenOldest;
  machine.buffer_entries = 8;
  machine.fetch_width = 8;
  machine.fetches = 4;
  machine.instruction_bytes = 16;
  machine.code_lines = 1024;  // 128 KB: L0 and L1.5 together
  machine.code_is_warm = true;
  machine.special_latency = 36;
  machine.special_interval = 2;
  machine.shared_latency = 23;
  machine.barrier_latency = 15;
  machine.branch_latency = 6;
  machine.sector_bytes = 32;
  machine.l1 = {192 * 1024, 128, 16};
  machine.l1_latency = 32;
  machine.misses = 512;
  machine.l2 = {50u * 1024 * 1024, 128, 16};
  machine.l2_latency = 276;
  machine.sm_bytes = 64;
  machine.l2_bytes = 3000;
  machine.dram_latency = 418;
  machine.dram_bytes = 1700;
  machine.clock_mhz = 1980;
  return machine;
}

bool is_power_of_two(uint32_t value) { return std::has_single_bit(value); }

std::string check_cache(const char* name, const CacheShape& shape, bool is_needed) {
  if (shape.bytes == 0) return is_needed ? fmt::format("no {}", name) : "";
  if (!is_power_of_two(shape.line_bytes) || shape.line_bytes < 32 || shape.line_bytes > 128) {
    return fmt::format("lines of {} bytes in the {} are not 32, 64 or 128", shape.line_bytes, name);
  }
  const uint32_t lines = shape.bytes / shape.line_bytes;
  if (lines == 0 || lines * shape.line_bytes != shape.bytes)
    return fmt::format("{} bytes of {} are not whole lines", shape.bytes, name);
  if (shape.ways > 0 && lines % shape.ways != 0)
    return fmt::format("{} lines of {} do not fill sets of {}", lines, name, shape.ways);
  return "";
}

}  // namespace

const std::vector<std::string>& machine_names() {
  static const std::vector<std::string> names = {"gem5", "gem5-4", "gem5-16", "gpgpu-sim", "h100"};
  return names;
}

bool find_machine(const std::string& name, Machine* out, std::string* why) {
  if (name == "gem5") {
    *out = gem5(1);
  } else if (name == "gem5-4") {
    *out = gem5(4);
  } else if (name == "gem5-16") {
    *out = gem5(16);
  } else if (name == "gpgpu-sim") {
    *out = gpgpu_sim();
  } else if (name == "h100") {
    *out = h100();
  } else {
    *why = "no machine " + name;
    return false;
  }
  out->name = name;
  return true;
}

std::string check_machine(const Machine& machine) {
  if (machine.sms < 1 || machine.sms > 256)
    return fmt::format("{} SMs are not 1 to 256", machine.sms);
  if (machine.warps < 1 || machine.warps > 256)
    return fmt::format("{} warp contexts are not 1 to 256", machine.warps);
  if (machine.blocks < 1) return "no block fits into an SM";
  if (machine.schedulers < 1 || machine.schedulers > 16)
    return fmt::format("{} schedulers are not 1 to 16", machine.schedulers);
  if (machine.buffer_entries < 1 || machine.fetch_width < 1 || machine.fetches < 1)
    return "an SM that fetches no instruction";
  if (machine.instruction_bytes < 4 || machine.instruction_bytes > 32)
    return fmt::format("instructions of {} bytes are not 4 to 32", machine.instruction_bytes);
  if (machine.code_lines < 4)
    return fmt::format("{} lines of instruction cache are less than 4", machine.code_lines);
  if (machine.code_line_bytes < machine.instruction_bytes)
    return "a line of the instruction cache holds no instruction";
  if (machine.alu_interval < 1 || machine.special_interval < 1 || machine.l1_interval < 1)
    return "an interval of 0 cycles";
  if (machine.misses < 1) return "an SM that waits for no miss";
  if (!(machine.sm_bytes > 0) || !(machine.l2_bytes > 0) || !(machine.dram_bytes > 0))
    return "memory without bandwidth";
  std::string l1 = check_cache("L1", machine.l1, false);
  if (!l1.empty()) return l1;
  if (machine.sector_bytes != 32 && machine.sector_bytes != machine.l1.line_bytes) {
    return fmt::format("sectors of {} bytes are neither 32 nor a line", machine.sector_bytes);
  }
  return check_cache("L2", machine.l2, true);
}

}  // namespace warpcache::edge_sim
