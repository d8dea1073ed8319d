// SPDX-License-Identifier: Apache-2.0
// Launching, retiring, time. sm_pipeline.cc fetches and issues, sm_interrupt.cc serves interrupts.
#include "edge/sm.h"

#include <algorithm>

#include "edge/sm_warp.h"

namespace warpcache::edge_sim {
namespace {

constexpr uint32_t kIsrRegistersUsed = 8;  // a thread

CacheShape code_shape(const Machine& machine, uint32_t reserved) {
  const uint32_t lines = machine.code_lines > reserved ? machine.code_lines - reserved : 1;
  return {lines * machine.code_line_bytes, machine.code_line_bytes, 0};
}

}  // namespace

Sm::Sm(const Machine& machine, const PreemptOptions& preempt, SharedMemory* below)
    : machine_(machine),
      preempt_(preempt),
      below_(below),
      l1_(machine, below),
      code_(code_shape(machine, preempt.code_lines_reserved)),
      contexts_(machine.warps - (preempt.victim == Victim::kReserved ? 1 : 0)),
      alu_free_(machine.schedulers, 0),
      special_free_(machine.schedulers, 0),
      greedy_(machine.schedulers, nullptr),
      rotation_(machine.schedulers, 0) {}

Sm::~Sm() = default;

uint32_t Sm::registers_of(const KernelTrace& trace) const {
  const uint32_t a_warp = trace.kernel->machine_registers * trace.warp_size;
  const uint32_t unit = machine_.register_unit;
  return (a_warp + unit - 1) / unit * unit;
}

bool Sm::fits(const KernelTrace& trace, const KernelTrace* for_whom, uint32_t reserved) const {
  const auto warps = static_cast<uint32_t>(trace.ctas.front().size());
  uint32_t more_warps = 0, more_registers = 0, more_shared = 0;
  if (for_whom != nullptr) {
    more_warps = reserved * static_cast<uint32_t>(for_whom->ctas.front().size());
    more_registers = more_warps * registers_of(*for_whom);
    more_shared = reserved * for_whom->kernel->shared_bytes;
  }
  return blocks_.size() + reserved < machine_.blocks &&
         warps_used_ + warps + more_warps <= contexts_ &&
         registers_used_ + warps * registers_of(trace) + more_registers <= machine_.registers &&
         shared_used_ + trace.kernel->shared_bytes + more_shared <= machine_.shared_bytes;
}

void Sm::launch(Grid* grid, Cycle now) {
  const KernelTrace& trace = *grid->trace;
  const CtaTrace& cta = trace.ctas[grid->next_block++];
  auto block = std::make_unique<Block>();
  block->grid = grid;
  block->live = static_cast<uint32_t>(cta.size());
  for (const WarpTrace& steps : cta) {
    auto warp = std::make_unique<Warp>();
    warp->trace = &trace;
    warp->steps = &steps;
    warp->block = block.get();
    warp->code_base = grid->code_base;
    warp->line_base = grid->line_base;
    warp->number = static_cast<uint32_t>(launches_++);
    warp->fetch_from = now + 1;
    warp->done.assign(steps.size(), kNever);
    block->warps.push_back(warp.get());
    warps_.push_back(std::move(warp));
  }
  warps_used_ += static_cast<uint32_t>(cta.size());
  registers_used_ += static_cast<uint32_t>(cta.size()) * registers_of(trace);
  shared_used_ += trace.kernel->shared_bytes;
  blocks_.push_back(std::move(block));
}

void Sm::warm_code(const Kernel& kernel, uint64_t code_base) {
  const uint64_t end = code_base + uint64_t{kernel.slots} * machine_.instruction_bytes;
  for (uint64_t line = code_base / machine_.code_line_bytes; line * machine_.code_line_bytes < end;
       ++line) {
    if (code_.find(line) == nullptr) code_.insert(line)->ready[0] = 0;
  }
}

bool Sm::idle() const { return blocks_.empty() && pending_.empty() && service_ == Service::kNone; }

bool Sm::has_free_context() const {
  return warps_used_ < machine_.warps &&
         registers_used_ + kIsrRegistersUsed * 32 <= machine_.registers;
}

// Warps that have issued everything leave; a block leaves with its last.
bool Sm::retire(Cycle now) {
  bool any = false;
  for (auto& warp : warps_) {
    const bool leaves = warp->ended() && !warp->stopped && warp.get() != victim_ &&
                        std::max(warp->alu_until, warp->load_until) <= now;
    if (!leaves) continue;
    retire_warp(warp.get(), now);
    warp.reset();
    any = true;
  }
  if (any) std::erase(warps_, nullptr);
  return any;
}

void Sm::retire_warp(Warp* warp, Cycle now) {
  Block* const block = warp->block;
  for (Warp*& greedy : greedy_) {
    if (greedy == warp) greedy = nullptr;
  }
  --warps_used_;
  registers_used_ -= registers_of(*warp->trace);
  std::erase(block->warps, warp);
  --block->live;
  if (block->live > 0) return release_barrier(block, now);
  shared_used_ -= warp->trace->kernel->shared_bytes;
  ended_blocks.push_back(block->grid);
  std::erase_if(blocks_, [&](const auto& one) { return one.get() == block; });
}

void Sm::release_barrier(Block* block, Cycle now) {
  if (block->arrived < block->live || block->arrived == 0) return;
  block->arrived = 0;
  for (Warp* const warp : block->warps) {
    if (!warp->at_barrier) continue;
    warp->at_barrier = false;
    warp->ready = std::max(warp->ready, now + machine_.barrier_latency);
    warp->buffer_from = std::max(warp->buffer_from, now + machine_.barrier_latency);
  }
}

bool Sm::step(Cycle now, Cycle* next) {
  ended_blocks.clear();
  ended_isrs = 0;
  bool any = retire(now);
  any |= serve(now);
  for (uint32_t s = 0; s < machine_.schedulers; ++s) any |= issue(s, now);
  for (uint32_t i = 0; i < machine_.fetches; ++i) any |= fetch(now);
  *next = any ? now + 1 : next_event(now);
  return any;
}

Cycle Sm::next_event(Cycle now) const {
  Cycle next = kNever;
  const auto at = [&](Cycle when) {
    if (when > now) next = std::min(next, when);
  };
  const auto of_warp = [&](const Warp& warp) {
    at(warp.alu_until), at(warp.load_until), at(warp.store_until);
    at(warp.fetch_from), at(warp.buffer_from);
    if (warp.ready_known) at(warp.ready);
  };
  for (const auto& warp : warps_) of_warp(*warp);
  if (isr_) of_warp(*isr_);
  for (uint32_t s = 0; s < machine_.schedulers; ++s) at(alu_free_[s]), at(special_free_[s]);
  at(l1_.free_at());
  return next;
}

void Sm::pass(Cycle now, Cycle cycles) {
  if (!blocks_.empty()) {
    counts_.busy_cycles += cycles;
    if (has_free_context()) counts_.free_context_cycles += cycles;
    counts_.register_cycles += static_cast<double>(cycles) * registers_used_;
    counts_.context_cycles += static_cast<double>(cycles) * warps_used_;
  }
  if (service_ != Service::kFlushing) return;
  StallCauses& causes = interrupts_.causes;
  const Warp& warp = *victim_;
  const bool waits_load = warp.load_until > now;
  if (warp.has_step() || warp.alu_until > now) causes.pipeline += cycles;
  if (warp.alu_until > now || waits_load) causes.scoreboard += cycles;
  if (waits_load) causes.load += cycles;
  if (warp.fetch_missed && warp.fetch_from > now) causes.code_miss += cycles;
  if (warp.at_barrier) causes.barrier += cycles;
  if (warp.at_fence) causes.fence += cycles;
}

}  // namespace warpcache::edge_sim
