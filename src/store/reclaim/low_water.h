// SPDX-License-Identifier: Apache-2.0
//
// How many segments maintenance keeps free: a share of the limit. Where one batch of a device takes
// more than that, requests wait until maintenance has freed segments. So the share grows while they
// do, and falls back to where it was when they do not.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "store/layout/shared.h"

namespace warpcache::store {

// The low-water mark of a store whose requests find space: the least that there is for a limit.
WC_HD inline uint32_t low_water_for(const Shared& shared, uint32_t limit) {
  const uint32_t share = limit / shared.low_water_share;
  return shared.copy_reserve + (share > 2 ? share : 2);
}

// The free segments that maintenance refills to: half of those that are kept free more, so that it
// is not woken for each. A store with fewer than four refills one by one: it evicts no more than it
// must.
WC_HD inline uint32_t refill_target(const Shared& shared) {
  const uint32_t low = load_relaxed(&shared.low_water);
  return low + (low - shared.copy_reserve) / 4 * 2;
}

// For maintenance alone: one thread at a time. Sets shared.low_water, under the segment lock.
class LowWater {
 public:
  // A request has found no space. Not with keep_all: such a store fills up to its last segment.
  WC_HD void raise(Shared& shared);
  // Once a second or more often: halves what was added, a second after the last raise() or relax()
  // that did something.
  WC_HD void relax(Shared& shared);
  // The limit has changed. REQUIRES: the segment lock is held.
  WC_HD void follow_limit(Shared& shared) const;

 private:
  WC_HD void set(Shared& shared) const {
    const SpinGuard lock(&shared.segment_lock);
    follow_limit(shared);
  }
  WC_HD static uint32_t added_max(const Shared& shared, uint32_t least);

  uint32_t added_ = 0;       // segments
  uint32_t changed_at_ = 0;  // server second
};

// Segments that may be added to `least`. low_water_share_max bounds both together.
WC_HD inline uint32_t LowWater::added_max(const Shared& shared, uint32_t least) {
  if (shared.low_water_share_max == 0 || shared.keep_all) return 0;
  const uint32_t most = shared.copy_reserve + shared.segment_limit / shared.low_water_share_max;
  return most > least ? most - least : 0;
}

WC_HD inline void LowWater::raise(Shared& shared) {
  constexpr uint32_t kStepShare = 4;  // of what there is at least
  const uint32_t least = low_water_for(shared, load_relaxed(&shared.segment_limit));
  const uint32_t most = added_max(shared, least);
  if (most == 0) return;
  const uint32_t step = (least - shared.copy_reserve) / kStepShare + 1;
  added_ = added_ + step < most ? added_ + step : most;  // the limit may have shrunk since
  changed_at_ = load_relaxed(&shared.now);
  set(shared);
}

WC_HD inline void LowWater::relax(Shared& shared) {
  const uint32_t now = load_relaxed(&shared.now);
  if (added_ == 0 || now == changed_at_) return;
  added_ /= 2;
  changed_at_ = now;
  set(shared);
}

WC_HD inline void LowWater::follow_limit(Shared& shared) const {
  const uint32_t least = low_water_for(shared, shared.segment_limit);
  const uint32_t most = added_max(shared, least);
  store_relaxed(&shared.low_water, least + (added_ < most ? added_ : most));
}

}  // namespace warpcache::store
