// SPDX-License-Identifier: Apache-2.0
#include "edge/gpu.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>

#include "edge/recording.h"

namespace warpcache::edge_sim {
namespace {

// Addresses of code and lines of data: one space for each kernel.
constexpr uint64_t kCodeSpace = uint64_t{1} << 24, kCodeBase = uint64_t{1} << 46;
constexpr uint64_t kLineSpace = uint64_t{1} << 34;
enum Place : uint64_t { kOfKernel = 0, kOfEvents = 1, kOfRoutine = 2 };
constexpr uint64_t kEventPlacesMax = 16;  // instances of an event kernel with data of their own

class Gpu {
 public:
  Gpu(const KernelTrace* kernel, const RunOptions& options)
      : kernel_(kernel), options_(options), below_(options.machine) {
    const uint32_t delay = options.interrupts.delay;
    routine_.saving = record_isr({.delay = delay, .saves = true}, &routine_.chip_from);
    routine_.at_once = record_isr({.delay = delay, .saves = false}, &routine_.chip_from);
    routine_.code_base = kCodeBase + kOfRoutine * kCodeSpace;
    routine_.line_base = kOfRoutine * kLineSpace;
    for (uint32_t i = 0; i < options.machine.sms; ++i) {
      sms_.push_back(std::make_unique<Sm>(options.machine, options.preempt, &below_));
      if (options.machine.code_is_warm && kernel != nullptr)
        sms_.back()->warm_code(*kernel->kernel, kCodeBase);
    }
    next_interrupt_ = options.interrupts.period == 0 ? kNever : options.interrupts.period;
    if (kernel != nullptr) start_kernel(0);
  }

  bool run(const RunProgress& progress, RunResult* out, std::string* why) {
    std::vector<Cycle> wakes(sms_.size(), 0);
    Cycle now = 0;
    while (!ended(now)) {
      if (now > options_.cycles_max) {
        *why = fmt::format("the run was given up after {} cycles", options_.cycles_max);
        return false;
      }
      const bool raised = raise(now, &wakes);
      if (launches_) launch(now, &wakes);
      bool any = raised || launches_;
      Cycle next = next_interrupt_;
      for (size_t i = 0; i < sms_.size(); ++i) {
        if (wakes[i] <= now) {
          any |= sms_[i]->step(now, &wakes[i]);
          collect(*sms_[i], now);
        }
        next = std::min(next, wakes[i]);
      }
      next = any || launches_ ? now + 1 : std::max(next, now + 1);
      if (next == kNever) {
        *why = "no SM can go on";  // a kernel whose barriers never open
        return false;
      }
      for (const auto& sm : sms_) sm->pass(now, next - now);
      if (progress && (steps_++ & 0xffff) == 0) progress(now, blocks_ended_);
      now = next;
    }
    finish(now, out);
    return true;
  }

 private:
  void start_kernel(Cycle now) {
    grids_.push_back({});
    Grid& grid = grids_.back();
    grid.trace = kernel_;
    grid.code_base = kCodeBase + kOfKernel * kCodeSpace;
    grid.line_base = kOfKernel * kLineSpace;
    grid.arrived = now;
    current_ = &grid;
    ++started_;
    launches_ = true;
  }

  void start_event(Cycle now) {
    grids_.push_back({});
    Grid& grid = grids_.back();
    grid.trace = options_.interrupts.event;
    grid.is_event = true;
    grid.code_base = kCodeBase + kOfEvents * kCodeSpace;
    grid.line_base = (kOfRoutine + 1 + events_started_ % kEventPlacesMax) * kLineSpace;
    grid.arrived = now;
    events_.push_back(&grid);
    ++events_started_;
    launches_ = true;
  }

  bool ended(Cycle) const {
    if (kernel_ == nullptr) return served() >= options_.runs;
    return kernel_ended_ != kNever;
  }

  uint64_t served() const {
    uint64_t sum = 0;
    for (const auto& sm : sms_) sum += sm->interrupts().served;
    return sum;
  }

  bool raise(Cycle now, std::vector<Cycle>* wakes) {
    if (next_interrupt_ > now) return false;
    const size_t to = next_sm_++ % sms_.size();
    sms_[to]->interrupt(&routine_, now);
    (*wakes)[to] = now;
    next_interrupt_ += options_.interrupts.period;
    return true;
  }

  // At most one block an SM and cycle.
  void launch(Cycle now, std::vector<Cycle>* wakes) {
    launches_ = false;
    for (size_t i = 0; i < sms_.size(); ++i) {
      Grid* const grid = choose_grid(i);
      if (grid == nullptr) continue;
      sms_[i]->launch(grid, now);
      (*wakes)[i] = now;
      launches_ = true;
    }
  }

  Grid* choose_grid(size_t sm) {
    bool event_waits = false, event_runs = false;
    for (Grid* const grid : events_) {
      event_runs = true;
      if (grid->next_block == grid->trace->ctas.size()) continue;
      event_waits = true;
      if (sms_[sm]->fits(*grid->trace, nullptr, 0)) return grid;
    }
    const InterruptOptions& how = options_.interrupts;
    const bool blocked = how.priority == Priority::kP1 ? event_waits : event_runs;
    if (blocked || sm < how.sms_reserved || current_ == nullptr ||
        current_->next_block == kernel_->ctas.size())
      return nullptr;
    return sms_[sm]->fits(*kernel_, how.event, how.blocks_reserved) ? current_ : nullptr;
  }

  void collect(const Sm& sm, Cycle now) {
    for (Grid* const grid : sm.ended_blocks) {
      ++blocks_ended_;
      launches_ = true;
      if (++grid->blocks_done == grid->trace->ctas.size()) end_grid(grid, now);
    }
    for (uint32_t i = 0; i < sm.ended_isrs; ++i) {
      if (options_.interrupts.event != nullptr) start_event(now);
    }
  }

  void end_grid(Grid* grid, Cycle now) {
    grid->ended = now;
    if (grid->is_event) {
      std::erase(events_, grid);
    } else if (started_ < options_.runs) {
      start_kernel(now);
    } else {
      kernel_ended_ = now;
      current_ = nullptr;
    }
  }

  void finish(Cycle now, RunResult* out) const {
    out->cycles = kernel_ == nullptr ? now : kernel_ended_;
    for (const auto& sm : sms_) {
      add(sm->counts(), &out->sm);
      add(sm->interrupts(), &out->interrupts);
      const L1Counts& l1 = sm->l1();
      out->l1.requests += l1.requests, out->l1.sectors += l1.sectors, out->l1.hits += l1.hits,
          out->l1.misses += l1.misses;
    }
    out->l2_sectors = below_.accesses, out->l2_misses = below_.misses;
    for (const Grid& grid : grids_) {
      if (!grid.is_event) {
        out->instructions += grid.instructions;
      } else if (grid.ended != kNever) {
        ++out->events;
        out->event_instructions += grid.instructions;
        out->event_cycles += static_cast<double>(grid.ended - grid.arrived);
      }
    }
    if (out->events > 0) out->event_cycles /= out->events;
    const double sm_cycles = static_cast<double>(now) * static_cast<double>(sms_.size());
    out->ipc = static_cast<double>(out->sm.instructions) / sm_cycles;
    out->lane_ipc = static_cast<double>(out->sm.lane_instructions) / sm_cycles;
    if (out->l1.sectors > 0)
      out->l1_hit_ratio = static_cast<double>(out->l1.hits) / static_cast<double>(out->l1.sectors);
  }

  static void add(const SmCounts& from, SmCounts* to) {
    to->instructions += from.instructions, to->lane_instructions += from.lane_instructions;
    to->isr_instructions += from.isr_instructions;
    to->busy_cycles += from.busy_cycles, to->free_context_cycles += from.free_context_cycles;
    to->register_cycles += from.register_cycles, to->context_cycles += from.context_cycles;
    to->code_accesses += from.code_accesses, to->code_misses += from.code_misses;
  }

  static void add(const InterruptCounts& from, InterruptCounts* to) {
    to->raised += from.raised, to->lost += from.lost, to->served += from.served;
    to->preemptions += from.preemptions, to->preempt_cycles += from.preempt_cycles;
    to->preempt_max = std::max(to->preempt_max, from.preempt_max);
    to->wait_cycles += from.wait_cycles, to->isr_cycles += from.isr_cycles;
    to->replayed_loads += from.replayed_loads;
    to->causes.pipeline += from.causes.pipeline, to->causes.scoreboard += from.causes.scoreboard;
    to->causes.load += from.causes.load, to->causes.code_miss += from.causes.code_miss;
    to->causes.barrier += from.causes.barrier, to->causes.fence += from.causes.fence;
  }

  const KernelTrace* kernel_;
  const RunOptions& options_;
  SharedMemory below_;
  Routine routine_;
  std::vector<std::unique_ptr<Sm>> sms_;
  std::deque<Grid> grids_;  // their addresses stay
  std::vector<Grid*> events_;
  Grid* current_ = nullptr;
  Cycle next_interrupt_ = kNever, kernel_ended_ = kNever;
  uint64_t steps_ = 0, blocks_ended_ = 0, next_sm_ = 0;
  uint32_t started_ = 0, events_started_ = 0;
  bool launches_ = false;
};

bool fits_alone(const KernelTrace& trace, const RunOptions& options, std::string* why) {
  SharedMemory below(options.machine);
  if (Sm(options.machine, options.preempt, &below)
          .fits(trace, options.interrupts.event, options.interrupts.blocks_reserved))
    return true;
  *why =
      fmt::format("a block of {} does not fit into an SM of {}", trace.name, options.machine.name);
  return false;
}

}  // namespace

bool run(const KernelTrace* kernel, const RunOptions& options, const RunProgress& progress,
         RunResult* out, std::string* why) {
  *why = check_machine(options.machine);
  if (!why->empty()) return false;
  const InterruptOptions& how = options.interrupts;
  if (options.runs == 0) *why = "no run";
  if (how.sms_reserved >= options.machine.sms)
    *why = fmt::format("{} of {} SMs reserved: none is left for the kernel", how.sms_reserved,
                       options.machine.sms);
  if (kernel == nullptr && how.period == 0) *why = "neither a kernel nor interrupts";
  if (options.preempt.code_lines_reserved >= options.machine.code_lines) {
    *why = fmt::format("{} of {} lines of the instruction cache reserved",
                       options.preempt.code_lines_reserved, options.machine.code_lines);
  }
  if (!why->empty()) return false;
  if (kernel != nullptr && !fits_alone(*kernel, options, why)) return false;
  if (how.event != nullptr && !fits_alone(*how.event, options, why)) return false;
  return Gpu(kernel, options).run(progress, out, why);
}

}  // namespace warpcache::edge_sim
