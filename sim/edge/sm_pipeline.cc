// SPDX-License-Identifier: Apache-2.0
// Fetching and issuing.
#include <algorithm>

#include "edge/sm.h"
#include "edge/sm_warp.h"

namespace warpcache::edge_sim {

// --- Fetch

bool Sm::wants_fetch(const Warp& warp, Cycle now) const {
  const bool is_victim = &warp == victim_;
  return !warp.stopped && !is_victim && !warp.behind_branch && warp.fetch_from <= now &&
         warp.fetched < warp.steps->size() && warp.fetched - warp.issued < machine_.buffer_entries;
}

bool Sm::fetch(Cycle now) {
  if (isr_ && preempt_.isr_priority && wants_fetch(*isr_, now)) return fetch_for(isr_.get(), now);
  const size_t count = warps_.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t at = (fetch_rotation_ + i) % count;
    if (!wants_fetch(*warps_[at], now)) continue;
    fetch_rotation_ = at + 1;
    return fetch_for(warps_[at].get(), now);
  }
  if (isr_ && wants_fetch(*isr_, now)) return fetch_for(isr_.get(), now);
  return false;
}

// Instructions from one line, up to the i-buffer's room and to a branch.
bool Sm::fetch_for(Warp* warp, Cycle now) {
  const uint64_t line =
      warp->code_address(warp->fetched, machine_.instruction_bytes) / machine_.code_line_bytes;
  const bool reserved = warp->block == nullptr && preempt_.code_lines_reserved > 0;
  if (!reserved && !warp->fetch_missed) {
    ++counts_.code_accesses;
    TagArray::Line* found = code_.find(line);
    if (found == nullptr || found->ready[0] > now) {
      ++counts_.code_misses;
      if (found == nullptr) {
        found = code_.insert(line);
        const uint64_t address = line * machine_.code_line_bytes;
        found->ready[0] = machine_.memory == MemoryModel::kFull
                              ? below_->request(address / machine_.l2.line_bytes, 0xf, false, now)
                              : now + 1;
      }
      warp->fetch_from = found->ready[0];
      warp->fetch_missed = true;
      return true;
    }
  }
  warp->fetch_missed = false;
  for (uint32_t i = 0; i < machine_.fetch_width; ++i) {
    if (warp->fetched == warp->steps->size() ||
        warp->fetched - warp->issued >= machine_.buffer_entries)
      break;
    if (warp->code_address(warp->fetched, machine_.instruction_bytes) / machine_.code_line_bytes !=
        line)
      break;
    const Instruction& one = warp->instruction(warp->fetched);
    ++warp->fetched;
    if (one.unit != Unit::kControl) continue;
    warp->behind_branch = true;
    break;
  }
  warp->buffer_from = std::max(warp->buffer_from, now + 1);
  warp->fetch_from = now + 1;
  return true;
}

// --- Issue

void Sm::find_ready(Warp* warp) const {
  if (warp->ready_known) return;
  const Step& step = (*warp->steps)[warp->issued];
  Cycle ready = warp->ready;
  for (const uint32_t wait : step.waits) {
    if (wait != 0) ready = std::max(ready, warp->done[wait - 1]);
  }
  const Unit unit = warp->instruction(warp->issued).unit;
  if (unit == Unit::kFence) ready = std::max({ready, warp->load_until, warp->store_until});
  warp->at_fence = unit == Unit::kFence;
  warp->ready = ready;
  warp->ready_known = true;
}

bool Sm::can_issue(const Warp& warp, uint32_t scheduler, Cycle now) const {
  if (warp.stopped || warp.at_barrier || alu_free_[scheduler] > now) return false;
  if (!warp.replays.empty()) return &warp != victim_ && l1_.free_at() <= now;
  if (!warp.has_step() || warp.buffer_from > now || warp.ready > now) return false;
  switch (warp.instruction(warp.issued).unit) {
    case Unit::kSpecial:
      return special_free_[scheduler] <= now;
    case Unit::kGlobalLoad:
    case Unit::kGlobalStore:
    case Unit::kAtomic:
    case Unit::kShared:
      return l1_.free_at() <= now || machine_.memory == MemoryModel::kNoStalls;
    default:
      return true;
  }
}

Sm::Warp* Sm::choose_warp(uint32_t scheduler, Cycle now) {
  const auto usable = [&](Warp* warp) {
    if (warp == nullptr || warp->number % machine_.schedulers != scheduler) return false;
    if (warp->has_step() && warp->replays.empty()) find_ready(warp);
    return can_issue(*warp, scheduler, now);
  };
  if (service_ == Service::kFlushing && preempt_.victim_priority && usable(victim_)) return victim_;
  if (preempt_.isr_priority && usable(isr_.get())) return isr_.get();
  if (machine_.scheduler == Scheduler::kGreedyThenOldest) {
    if (usable(greedy_[scheduler])) return greedy_[scheduler];
    for (const auto& warp : warps_) {
      if (usable(warp.get())) return greedy_[scheduler] = warp.get();
    }
  } else {
    for (size_t i = 0; i < warps_.size(); ++i) {
      const size_t at = (rotation_[scheduler] + i) % warps_.size();
      if (!usable(warps_[at].get())) continue;
      rotation_[scheduler] = at + 1;
      return warps_[at].get();
    }
  }
  return usable(isr_.get()) ? isr_.get() : nullptr;
}

bool Sm::issue(uint32_t scheduler, Cycle now) {
  if (alu_free_[scheduler] > now) return false;
  Warp* const warp = choose_warp(scheduler, now);
  if (warp == nullptr) return false;
  if (!warp->replays.empty()) {
    issue_replay(warp, scheduler, now);
  } else {
    issue_step(warp, scheduler, now);
  }
  return true;
}

void Sm::issue_replay(Warp* warp, uint32_t scheduler, Cycle now) {
  const uint32_t index = warp->replays.front();
  warp->replays.erase(warp->replays.begin());
  warp->done[index] = execute(warp, (*warp->steps)[index], scheduler, now);
  warp->ready_known = false;
}

void Sm::issue_step(Warp* warp, uint32_t scheduler, Cycle now) {
  const uint32_t index = warp->issued;
  const Step& step = (*warp->steps)[index];
  const Instruction& one = warp->instruction(index);
  ++warp->issued;
  warp->ready_known = false;
  warp->at_fence = false;
  warp->must_issue = false;
  warp->ready = now;
  warp->done[index] = execute(warp, step, scheduler, now);
  const uint64_t slots = one.slots;
  if (warp->block == nullptr) {
    counts_.isr_instructions += slots;
  } else {
    counts_.instructions += slots;
    counts_.lane_instructions += slots * step.lanes;
    warp->block->grid->instructions += slots;
  }
  if (one.unit == Unit::kControl) {
    warp->behind_branch = false;
    warp->fetch_from = std::max(warp->fetch_from, now + machine_.branch_latency);
  }
  if (one.unit == Unit::kBarrier && warp->block != nullptr) {
    warp->at_barrier = true;
    ++warp->block->arrived;
    release_barrier(warp->block, now);
  }
}

// The interrupt controller and the event kernel table, at addresses of a service routine.
bool Sm::is_on_chip(const Warp& warp, const Access* access) const {
  return warp.block == nullptr && access != nullptr &&
         warp.trace->sectors[access->first] >= chip_from_;
}

// When the step's result can be used.
Cycle Sm::execute(Warp* warp, const Step& step, uint32_t scheduler, Cycle now) {
  const Instruction& one = warp->trace->kernel->code[step.instruction];
  alu_free_[scheduler] = now + Cycle{one.slots} * machine_.alu_interval;
  const Cycle last_slot = alu_free_[scheduler] - machine_.alu_interval;
  Cycle done = last_slot + machine_.alu_latency;
  const Access* access = step.access == kNoAccess ? nullptr : &warp->trace->accesses[step.access];
  L1::Sectors sectors{};
  if (access != nullptr)
    sectors = {warp->trace->sectors.data() + access->first, access->count, warp->line_base};
  switch (one.unit) {
    case Unit::kWide:
      done = last_slot + machine_.wide_latency;
      break;
    case Unit::kSpecial:
      done = last_slot + machine_.special_latency;
      special_free_[scheduler] = now + machine_.special_interval;
      break;
    case Unit::kShared:
      done = l1_.shared(access == nullptr ? 1 : access->degree, now);
      break;
    case Unit::kGlobalStore:
      if (is_on_chip(*warp, access)) return now + 1;
      if (access != nullptr) l1_.store(sectors, now);
      warp->store_until = std::max(warp->store_until, now + machine_.l2_latency);
      return now + 1;
    case Unit::kAtomic:
      if (access != nullptr) done = l1_.load(sectors, true, now);
      break;
    case Unit::kGlobalLoad:
      if (access == nullptr) return now + 1;  // no lane takes part
      if (is_on_chip(*warp, access)) {
        done = now + machine_.controller_latency;
        break;
      }
      done = l1_.load(sectors, one.bypass, now);
      warp->load_until = std::max(warp->load_until, done);
      std::erase_if(warp->loads, [&](uint32_t index) { return warp->done[index] <= now; });
      warp->loads.push_back(static_cast<uint32_t>(&step - warp->steps->data()));
      return done;
    default:
      break;
  }
  warp->alu_until = std::max(warp->alu_until, done);
  return done;
}

}  // namespace warpcache::edge_sim
