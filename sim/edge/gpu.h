// SPDX-License-Identifier: Apache-2.0
// A GPU of SMs that run one kernel, interrupts, and the event kernels that their routines launch.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "edge/machine.h"
#include "edge/preempt.h"
#include "edge/sm.h"
#include "edge/trace.h"

namespace warpcache::edge_sim {

// How event kernels take precedence (section 5.4.1): blocks of the other kernel are not launched
// until the event kernel has launched all of its own (P1) or has ended (P2).
enum class Priority : uint8_t { kP1, kP2 };

struct InterruptOptions {
  Cycle period = 0;    // cycles from one to the next; 0: none. They go to one SM after the other
  uint32_t delay = 0;  // iterations of the routine's loop
  const KernelTrace* event = nullptr;  // a kernel that each routine launches; null: none
  Priority priority = Priority::kP1;
  uint32_t sms_reserved = 0;     // for event kernels
  uint32_t blocks_reserved = 0;  // of every other SM, in blocks of the event kernel
};

struct RunOptions {
  Machine machine;
  PreemptOptions preempt;
  InterruptOptions interrupts;
  uint32_t runs = 1;               // of the kernel, one after the other
  Cycle cycles_max = 200'000'000;  // then the run is given up
};

struct RunResult {
  Cycle cycles = 0;  // until the kernel's last run ended
  SmCounts sm;       // sums over the SMs
  InterruptCounts interrupts;
  L1Counts l1;
  uint64_t l2_sectors = 0, l2_misses = 0;
  uint64_t instructions = 0;  // of the kernel
  uint32_t events = 0;        // event kernels that ended
  uint64_t event_instructions = 0;
  double event_cycles = 0;  // mean, from the routine's end until the kernel's
  double ipc = 0;           // machine instructions a cycle and SM, by warps, without routines
  double lane_ipc = 0;      // by lanes
  double l1_hit_ratio = 0;
};

// Called now and then with the cycle and the blocks that have ended.
using RunProgress = std::function<void(Cycle now, uint64_t blocks)>;

// `kernel` may be null: the machine serves interrupts alone, `runs` of them. False: `why` says that
// the options make no sense, that a block does not fit, or that the run was given up.
bool run(const KernelTrace* kernel, const RunOptions& options, const RunProgress& progress,
         RunResult* out, std::string* why);

}  // namespace warpcache::edge_sim
