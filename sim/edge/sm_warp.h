// SPDX-License-Identifier: Apache-2.0
// The state of a warp and of a block in an SM.
#pragma once

#include <vector>

#include "edge/sm.h"

namespace warpcache::edge_sim {

struct Sm::Block {
  Grid* grid = nullptr;
  uint32_t live = 0;     // warps that have not ended
  uint32_t arrived = 0;  // of those, at the barrier
  std::vector<Warp*> warps;
};

struct Sm::Warp {
  const KernelTrace* trace = nullptr;
  const WarpTrace* steps = nullptr;
  Block* block = nullptr;  // null: a service routine
  uint64_t code_base = 0, line_base = 0;
  uint32_t number = 0;    // among the SM's warps; its scheduler follows from it
  uint32_t issued = 0;    // steps
  uint32_t fetched = 0;   // steps; those between lie in the i-buffer
  Cycle buffer_from = 0;  // the i-buffer's newest entries can issue from here on
  Cycle fetch_from = 0;   // the next fetch, after a branch or a miss
  bool fetch_missed = false;
  bool behind_branch = false;  // the last fetched step is a branch that has not issued
  bool at_barrier = false;
  bool at_fence = false;
  bool stopped = false;  // preempted
  bool must_issue =
      false;        // before it can be a victim again, so that it goes on at any rate of interrupts
  Cycle ready = 0;  // of the step to issue
  bool ready_known = false;
  Cycle alu_until = 0, load_until = 0, store_until = 0;
  std::vector<Cycle> done;        // per step
  std::vector<uint32_t> loads;    // steps issued whose values may be under way
  std::vector<uint32_t> replays;  // dropped, to be issued again

  bool has_step() const { return issued < fetched; }
  bool ended() const { return issued == steps->size() && replays.empty(); }
  const Instruction& instruction(uint32_t step) const {
    return trace->kernel->code[(*steps)[step].instruction];
  }
  uint64_t code_address(uint32_t step, uint32_t instruction_bytes) const {
    return code_base +
           uint64_t{trace->kernel->slot[(*steps)[step].instruction]} * instruction_bytes;
  }
};

struct Sm::Pending {
  const Routine* routine;
  Cycle raised;
};

}  // namespace warpcache::edge_sim
