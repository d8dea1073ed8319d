// SPDX-License-Identifier: Apache-2.0
// Interrupts: a context, the victim's way out of the pipeline, the service routine, the way back.
#include <algorithm>

#include "edge/sm.h"
#include "edge/sm_warp.h"

namespace warpcache::edge_sim {

void Sm::interrupt(const Routine* routine, Cycle now) {
  ++interrupts_.raised;
  if (pending_.size() >= preempt_.pending_max) {
    ++interrupts_.lost;
    return;
  }
  pending_.push_back({routine, now});
}

bool Sm::serve(Cycle now) {
  switch (service_) {
    case Service::kNone:
      return !pending_.empty() && start_service(now);
    case Service::kFlushing:
      if (!is_flushed(*victim_, now)) return false;
      interrupts_.preempt_cycles += now - chosen_at_;
      interrupts_.preempt_max = std::max(interrupts_.preempt_max, now - chosen_at_);
      victim_->stopped = true;
      begin_isr(true, now);
      return true;
    case Service::kRunning:
      if (!isr_->ended() || std::max(isr_->alu_until, isr_->load_until) > now) return false;
      end_isr(now);
      return true;
  }
  return false;
}

bool Sm::start_service(Cycle now) {
  const bool own = preempt_.victim == Victim::kDedicated || preempt_.victim == Victim::kReserved;
  if (own || (!preempt_.always && has_free_context())) {
    begin_isr(false, now);
    return true;
  }
  if (preempt_.victim == Victim::kFree) return false;
  victim_ = choose_victim();
  if (victim_ == nullptr) {  // with `always` nobody may be there to preempt
    if (!blocks_.empty() || !has_free_context()) return false;
    begin_isr(false, now);
    return true;
  }
  ++interrupts_.preemptions;
  chosen_at_ = now;
  service_ = Service::kFlushing;
  flush(victim_, now);
  return true;
}

// The first or the last that was launched, has not ended and has gone on since it was a victim.
Sm::Warp* Sm::choose_victim() const {
  const auto runs = [](const auto& warp) { return !warp->ended() && !warp->must_issue; };
  if (preempt_.victim == Victim::kOldest) {
    const auto found = std::find_if(warps_.begin(), warps_.end(), runs);
    return found == warps_.end() ? nullptr : found->get();
  }
  const auto found = std::find_if(warps_.rbegin(), warps_.rend(), runs);
  return found == warps_.rend() ? nullptr : found->get();
}

// What leaves at once: with replay the loads under way, and with them whatever waits for them in
// the i-buffer; with flush the i-buffer and a fetch.
void Sm::flush(Warp* warp, Cycle now) {
  bool empties = preempt_.flush_buffer;
  if (preempt_.replay_loads) {
    for (const uint32_t index : warp->loads) {
      if (warp->done[index] <= now) continue;
      warp->replays.push_back(index);
      warp->done[index] = kNever;
      ++interrupts_.replayed_loads;
      empties = true;
    }
    warp->loads.clear();
    std::sort(warp->replays.begin(), warp->replays.end());
    warp->load_until = std::min(warp->load_until, now);
    warp->ready_known = false;
    warp->ready = now;
  }
  if (!empties) return;
  warp->fetched = warp->issued;
  warp->behind_branch = false;
  warp->fetch_missed = false;
  warp->fetch_from = now;
}

bool Sm::is_flushed(const Warp& warp, Cycle now) const {
  if (warp.at_barrier && preempt_.barrier_skip) return true;
  const bool fetches = warp.fetch_missed && warp.fetch_from > now;
  return !warp.at_barrier && !warp.has_step() && !fetches &&
         std::max(warp.alu_until, warp.load_until) <= now;
}

void Sm::begin_isr(bool saves, Cycle now) {
  const Pending one = pending_.front();
  pending_.erase(pending_.begin());
  interrupts_.wait_cycles += now - one.raised;
  isr_ = std::make_unique<Warp>();
  isr_->trace = saves ? &one.routine->saving : &one.routine->at_once;
  isr_->steps = &isr_->trace->ctas.front().front();
  isr_->code_base = one.routine->code_base;
  isr_->line_base = one.routine->line_base;
  chip_from_ = one.routine->chip_from;
  isr_->number = saves ? victim_->number : 0;
  isr_->fetch_from = isr_->buffer_from = now + 1;
  isr_->done.assign(isr_->steps->size(), kNever);
  isr_began_ = now;
  service_ = Service::kRunning;
}

void Sm::end_isr(Cycle now) {
  ++interrupts_.served;
  interrupts_.isr_cycles += now - isr_began_;
  ++ended_isrs;
  if (victim_ != nullptr) {
    victim_->stopped = false;
    victim_->must_issue = !victim_->at_barrier;
    victim_->fetch_from = std::max(victim_->fetch_from, now + 1);
    victim_->ready_known = false;
  }
  victim_ = nullptr;
  isr_.reset();
  service_ = Service::kNone;
}

}  // namespace warpcache::edge_sim
