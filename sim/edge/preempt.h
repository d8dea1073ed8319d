// SPDX-License-Identifier: Apache-2.0
// How an interrupt gets a warp context, and what that has cost (dissertation, section 5.3).
#pragma once

#include <cstdint>
#include <vector>

#include "edge/memory.h"

namespace warpcache::edge_sim {

enum class Victim : uint8_t {
  kDedicated,  // a context of its own beside the SM's
  kReserved,   // one of the SM's contexts, which no block gets
  kFree,       // a free context; waits until there is one
  kOldest,     // a free one, else that of the warp that was launched first
  kNewest,     // or last
};

struct PreemptOptions {
  Victim victim = Victim::kOldest;
  // Preempts even where a context is free.
  bool always = false;
  // What shortens the victim's way out (section 5.3.3).
  bool barrier_skip = false;
  bool victim_priority = false;
  bool flush_buffer = false;
  bool replay_loads = false;
  // The service routine (5.3.4).
  bool isr_priority = true;
  uint32_t code_lines_reserved = 0;  // of the instruction cache, for the routine's code
  uint32_t pending_max = 64;         // interrupts that wait; others are counted as lost
};

// Why a victim could not leave, in cycles; several may hold at a time.
struct StallCauses {
  uint64_t pipeline = 0;    // an instruction is in a pipeline or in the i-buffer
  uint64_t scoreboard = 0;  // a register waits for its value
  uint64_t load = 0;
  uint64_t code_miss = 0;
  uint64_t barrier = 0;
  uint64_t fence = 0;
};

struct InterruptCounts {
  uint64_t raised = 0, lost = 0, served = 0;
  uint64_t preemptions = 0;     // served in the context of a running warp
  uint64_t preempt_cycles = 0;  // from the choice of a victim until its context is free; sum
  uint64_t preempt_max = 0;
  uint64_t wait_cycles = 0;  // from the interrupt until the routine begins; sum over served
  uint64_t isr_cycles = 0;   // from there until its end; sum
  uint64_t replayed_loads = 0;
  StallCauses causes;
};

}  // namespace warpcache::edge_sim
