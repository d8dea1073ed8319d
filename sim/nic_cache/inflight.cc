// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/inflight.h"

#include "base/assert.h"

namespace warpcache::nic {

InflightMisses::InflightMisses(uint32_t capacity) : places_(capacity) {
  free_.reserve(capacity);
  for (uint32_t place = capacity; place > 0; --place) free_.push_back(place - 1);
}

uint32_t InflightMisses::start(uint32_t key) {
  if (free_.empty()) return kNone;
  const uint32_t place = free_.back();
  free_.pop_back();
  places_[place] = {key, true, true};
  return place;
}

uint32_t InflightMisses::kill(uint32_t key) {
  if (count() == 0) return 0;
  uint32_t killed = 0;
  for (Place& place : places_) {
    if (!place.used || !place.alive || place.key != key) continue;
    place.alive = false;
    ++killed;
  }
  return killed;
}

bool InflightMisses::finish(uint32_t place) {
  WC_ASSERT(place < places_.size() && places_[place].used);
  places_[place].used = false;
  free_.push_back(place);
  return places_[place].alive;
}

}  // namespace warpcache::nic
