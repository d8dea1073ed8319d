// SPDX-License-Identifier: Apache-2.0
// One streaming multiprocessor, cycle by cycle: warps that fetch, wait and issue.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "edge/machine.h"
#include "edge/memory.h"
#include "edge/preempt.h"
#include "edge/trace.h"

namespace warpcache::edge_sim {

struct SmCounts {
  uint64_t instructions = 0;       // machine instructions of blocks' warps
  uint64_t lane_instructions = 0;  // the same by active lanes
  uint64_t isr_instructions = 0;
  uint64_t busy_cycles = 0;          // with a block
  uint64_t free_context_cycles = 0;  // of those, with a context and registers for a service routine
  double register_cycles = 0;        // of those, times registers in use
  double context_cycles = 0;         // likewise warp contexts
  uint64_t code_accesses = 0, code_misses = 0;
};

// A running instance of a kernel, owned by the GPU.
struct Grid {
  const KernelTrace* trace = nullptr;
  uint64_t code_base = 0;  // address of its first instruction
  uint64_t line_base = 0;  // added to the numbers of the lines that its loads and stores touch
  uint32_t next_block = 0;
  uint32_t blocks_done = 0;
  bool is_event = false;
  Cycle arrived = 0, ended = kNever;
  uint64_t instructions = 0;
};

// The interrupt service routine.
struct Routine {
  KernelTrace saving;   // in a victim's context
  KernelTrace at_once;  // in a free one
  uint64_t code_base = 0, line_base = 0;
  uint32_t chip_from =
      0;  // sectors from here on are the interrupt controller's and the event table's
};

class Sm {
 public:
  Sm(const Machine& machine, const PreemptOptions& preempt, SharedMemory* below);
  ~Sm();

  // Whether a block of the trace fits now. `reserve`: leave room for `reserved` more of `for_whom`.
  bool fits(const KernelTrace& trace, const KernelTrace* for_whom, uint32_t reserved) const;
  void launch(Grid* grid, Cycle now);
  // `routine` outlives it.
  void interrupt(const Routine* routine, Cycle now);
  // The kernel's code is in the instruction cache.
  void warm_code(const Kernel& kernel, uint64_t code_base);

  // Works through one cycle. False: nothing happened, and nothing will before *next.
  bool step(Cycle now, Cycle* next);
  // Adds `cycles` without events, from `now` on, to what is counted by time.
  void pass(Cycle now, Cycle cycles);

  // Blocks and service routines that ended in the last step.
  std::vector<Grid*> ended_blocks;
  uint32_t ended_isrs = 0;

  bool idle() const;
  const SmCounts& counts() const { return counts_; }
  const InterruptCounts& interrupts() const { return interrupts_; }
  const L1Counts& l1() const { return l1_.counts; }

 private:
  struct Block;
  struct Warp;
  struct Pending;
  enum class Service : uint8_t { kNone, kFlushing, kRunning };

  bool retire(Cycle now);
  void retire_warp(Warp* warp, Cycle now);
  void release_barrier(Block* block, Cycle now);
  bool serve(Cycle now);
  bool start_service(Cycle now);
  void begin_isr(bool saves, Cycle now);
  void end_isr(Cycle now);
  Warp* choose_victim() const;
  bool is_flushed(const Warp& warp, Cycle now) const;
  void flush(Warp* warp, Cycle now);
  bool fetch(Cycle now);
  bool fetch_for(Warp* warp, Cycle now);
  bool wants_fetch(const Warp& warp, Cycle now) const;
  bool issue(uint32_t scheduler, Cycle now);
  Warp* choose_warp(uint32_t scheduler, Cycle now);
  bool can_issue(const Warp& warp, uint32_t scheduler, Cycle now) const;
  void issue_step(Warp* warp, uint32_t scheduler, Cycle now);
  void issue_replay(Warp* warp, uint32_t scheduler, Cycle now);
  Cycle execute(Warp* warp, const Step& step, uint32_t scheduler, Cycle now);
  bool is_on_chip(const Warp& warp, const Access* access) const;
  void find_ready(Warp* warp) const;
  Cycle next_event(Cycle now) const;
  uint32_t registers_of(const KernelTrace& trace) const;
  bool has_free_context() const;

  const Machine& machine_;
  const PreemptOptions& preempt_;
  SharedMemory* below_;
  L1 l1_;
  TagArray code_;
  uint32_t contexts_;  // that blocks may use
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::unique_ptr<Warp>> warps_;  // in the order of launch; null: none
  uint32_t warps_used_ = 0, registers_used_ = 0, shared_used_ = 0;
  uint64_t launches_ = 0;
  std::vector<Cycle> alu_free_, special_free_;
  std::vector<Warp*> greedy_;
  std::vector<size_t> rotation_;
  size_t fetch_rotation_ = 0;
  std::vector<Pending> pending_;
  Service service_ = Service::kNone;
  Warp* victim_ = nullptr;
  std::unique_ptr<Warp> isr_;
  Cycle chosen_at_ = 0, isr_began_ = 0;
  uint32_t chip_from_ = 0;
  SmCounts counts_;
  InterruptCounts interrupts_;
};

}  // namespace warpcache::edge_sim
