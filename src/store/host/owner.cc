// SPDX-License-Identifier: Apache-2.0
#include "store/host/owner.h"

#include <algorithm>

namespace warpcache::store {

namespace {

int64_t seconds_since(std::chrono::steady_clock::time_point start) {
  using std::chrono::seconds;
  return std::chrono::duration_cast<seconds>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

// Both clocks are read once, one right after the other: items that are stored until a date expire
// at that date, and servers of one machine agree on it.
StoreOwner::StoreOwner(bool manual_clock) : manual_clock_(manual_clock) {
  using std::chrono::duration_cast;
  using std::chrono::seconds;
  const auto monotonic = std::chrono::steady_clock::now();
  const auto unix = std::chrono::system_clock::now().time_since_epoch();
  const auto second = duration_cast<seconds>(unix);
  unix_start_ = second.count() - kClockStart;
  start_ = monotonic - duration_cast<std::chrono::steady_clock::duration>(unix - second);
}

// The clock never goes back, even where the system's has.
void StoreOwner::continue_clock(int64_t unix_start, uint32_t now, uint32_t flush_at) {
  start_ -= std::chrono::seconds(unix_start_ - unix_start);
  unix_start_ = unix_start;
  const uint32_t read = read_clock();
  if (read < now) start_ -= std::chrono::seconds(now - read);
  flush_at_ = flush_at;
}

std::chrono::steady_clock::time_point StoreOwner::next_second() const {
  return start_ + std::chrono::seconds(seconds_since(start_) + 1);
}

void StoreOwner::flush_all(uint32_t delay) {
  const std::lock_guard guard(clock_mutex_);
  flush_at_ = delay == 0 ? 0 : clock().now + delay;
  if (delay <= 1) apply_flush();
}

Status StoreOwner::flush_prefix(Bytes prefix, uint32_t delay) {
  const std::lock_guard guard(clock_mutex_);
  return apply_prefix_flush(prefix, delay == 0 ? 0 : clock().now + delay);
}

void StoreOwner::cancel_flush() {
  const std::lock_guard guard(clock_mutex_);
  flush_at_ = 0;
}

void StoreOwner::move_clock() {
  bool flush = false;
  {
    const std::lock_guard guard(clock_mutex_);
    const uint32_t now = read_clock();
    apply_clock(now);
    flush = flush_at_ != 0 && flush_at_ <= now + 1;
    if (flush_at_ <= now) flush_at_ = 0;
  }
  if (flush) apply_flush();
  apply_expiry();
}

uint32_t StoreOwner::read_clock() const {
  if (manual_clock_) return manual_now_.load();
  const int64_t paused_at = paused_at_.load();
  const int64_t seconds = paused_at == kRuns ? seconds_since(start_) : paused_at;
  return static_cast<uint32_t>(
      std::max<int64_t>(kClockStart + seconds + shift_.load(), kClockStart));
}

void StoreOwner::tick() {
  if (!manual_clock_) move_clock();
}

void StoreOwner::shift_clock(int64_t seconds) {
  shift_ += seconds;
  tick();
}

// A tick() of before may be late: the time that is shown from now on is that at which it stands.
void StoreOwner::pause_clock(bool paused) {
  int64_t runs = kRuns;
  if (paused) paused_at_.compare_exchange_strong(runs, seconds_since(start_));
  if (!paused) paused_at_ = kRuns;
  tick();
}

void StoreOwner::set_clock(uint32_t now) {
  WC_ASSERT(manual_clock_);
  manual_now_ = now;
  move_clock();
}

}  // namespace warpcache::store
