// SPDX-License-Identifier: Apache-2.0
#include "hitrate/two_generations.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace warpcache::sim {

TwoGenerations::TwoGenerations(uint64_t capacity, const Costs& costs, const Thresholds& thresholds)
    : costs_(costs),
      thresholds_(thresholds),
      segment_size_(capacity / kSegments),
      index_(costs.items_max(capacity)),
      segments_(kSegments),
      ghosts_(capacity * thresholds.ghost_percent / 100) {
  for (uint32_t id = kSegments; id-- > 0;) free_.push_back(id);
}

bool TwoGenerations::get(const Key& key, uint32_t* value) {
  const uint32_t node = index_.find(key);
  if (node == kNoNode) return false;
  if (index_[node].uses < thresholds_.counter_max) ++index_[node].uses;
  if (value != nullptr) *value = index_[node].value;
  return true;
}

void TwoGenerations::set(const Key& key, const Entry& entry) {
  const uint64_t cost = costs_.of(entry);
  uint32_t node = index_.find(key);
  if (cost * 2 > segment_size_) {
    if (node != kNoNode) erase(key);
    return;
  }
  // Space first, as the store does: a replaced item is there until the new one is.
  const uint32_t writer = open_[kWriter];
  if (writer == kNoSegment || segments_[writer].used + cost > segment_size_) {
    reclaim();
    open(kWriter, kCopyReserve);
    node = index_.find(key);  // freeing space may have evicted it
  }
  if (node == kNoNode) {
    node = index_.insert(key);
    const bool ghost = thresholds_.ghost_percent > 0 && ghosts_.take(key.id);
    index_[node].uses = static_cast<uint8_t>(ghost ? thresholds_.counter_min : 0);
  } else {
    segments_[index_[node].segment].live -= index_[node].cost;
    live_ -= index_[node].cost;
  }
  live_ += cost;
  index_[node].cost = static_cast<uint32_t>(cost);
  index_[node].value = entry.value;
  append(kWriter, node, kCopyReserve);
}

bool TwoGenerations::erase(const Key& key) {
  const uint32_t node = index_.find(key);
  if (node != kNoNode) forget(node);
  return node != kNoNode;
}

void TwoGenerations::forget(uint32_t node) {
  live_ -= index_[node].cost;
  segments_[index_[node].segment].live -= index_[node].cost;
  index_[node].segment = kNoSegment;
  index_.remove(node);
}

// Seals what was open and takes a free segment, unless only `reserve` are left.
bool TwoGenerations::open(Opened which, uint32_t reserve) {
  if (free_.size() <= reserve) return false;
  uint32_t& id = open_[which];
  if (id != kNoSegment) {
    segments_[id].state = State::kSealed;
    segments_[id].sealed_at = ++seals_;
  }
  id = free_.back();
  free_.pop_back();
  segments_[id] = {};
  segments_[id].state = State::kOpen;
  segments_[id].generation = which == kCopierMain ? kMain : kYoung;
  return true;
}

// False: there is no space.
bool TwoGenerations::append(Opened which, uint32_t node, uint32_t reserve) {
  ItemNode& item = index_[node];
  const uint32_t now = open_[which];
  if (now == kNoSegment || segments_[now].used + item.cost > segment_size_) {
    if (!open(which, reserve)) return false;
  }
  Segment& segment = segments_[open_[which]];
  item.segment = open_[which];
  item.place = static_cast<uint32_t>(segment.nodes.size());
  segment.nodes.push_back(node);
  segment.used += item.cost;
  segment.live += item.cost;
  return true;
}

void TwoGenerations::reclaim() {
  while (free_.size() <= kCopyReserve) step();
}

uint32_t TwoGenerations::oldest(Generation generation) const {
  uint32_t found = kNoSegment;
  for (uint32_t id = 0; id < kSegments; ++id) {
    const Segment& segment = segments_[id];
    if (segment.state != State::kSealed || segment.generation != generation) continue;
    if (found == kNoSegment || segment.sealed_at < segments_[found].sealed_at) found = id;
  }
  return found;
}

uint32_t TwoGenerations::most_wasteful() const {
  uint32_t found = kNoSegment;
  uint64_t most = 0;
  for (uint32_t id = 0; id < kSegments; ++id) {
    const Segment& segment = segments_[id];
    if (segment.state != State::kSealed) continue;
    if (segment.live == 0) return id;
    if (segment.used - segment.live <= most) continue;
    most = segment.used - segment.live;
    found = id;
  }
  return found;
}

uint32_t TwoGenerations::count(Generation generation) const {
  return static_cast<uint32_t>(
      std::count_if(segments_.begin(), segments_.end(), [&](const Segment& segment) {
        return segment.state == State::kSealed && segment.generation == generation;
      }));
}

void TwoGenerations::step() {
  const uint32_t wasteful = most_wasteful();
  if (wasteful != kNoSegment && compact(wasteful)) return;
  evict();
}

// Keeps all that is alive in a segment of which enough is not. False: it is not worth it.
bool TwoGenerations::compact(uint32_t victim) {
  const Segment& segment = segments_[victim];
  const uint64_t waste = segment.used - segment.live;
  if (segment.live != 0) {
    if (waste * 100 < segment_size_ * thresholds_.waste_percent) return false;
    const uint32_t fruitless_max = 2 * 100 / std::max(thresholds_.waste_percent, 1u);
    if (++fruitless_compactions_ > fruitless_max) {
      fruitless_compactions_ = 0;
      return false;
    }
  }
  const size_t before = free_.size();
  empty(victim, {0, segment.generation, false});
  if (free_.size() > before) fruitless_compactions_ = 0;
  return true;
}

void TwoGenerations::evict() {
  const uint32_t young = count(kYoung);
  const uint32_t main = count(kMain);
  const bool from_young = main == 0 || young * 100 > (young + main) * thresholds_.young_percent;
  const uint32_t victim = oldest(from_young && young > 0 ? kYoung : kMain);
  if (victim == kNoSegment) return;
  const bool spend = segments_[victim].generation == kMain;
  // Guaranteed to end: the more was copied without gain, the more use an item must have seen.
  const auto more = static_cast<uint32_t>(
      std::min<uint64_t>(fruitless_ / (4 * segment_size_), thresholds_.counter_max));
  const uint64_t before = copied_;
  empty(victim, {thresholds_.counter_min + more, kMain, spend});
  fruitless_ += copied_ - before;
  fruitless_ -= std::min(fruitless_, segment_size_ * 3 / 4);
}

// In the main generation no item stays without a use: it would never leave.
uint32_t TwoGenerations::uses_needed(uint64_t cost, const Keep& keep) const {
  if (thresholds_.by_size == 0 || keep.uses_min != thresholds_.counter_min) return keep.uses_min;
  const double mean = static_cast<double>(live_) / static_cast<double>(index_.items());
  const double more = std::log2(static_cast<double>(cost) / mean) / thresholds_.by_size;
  const double needed = std::round(keep.uses_min + more);
  return static_cast<uint32_t>(
      std::clamp<double>(needed, keep.spend ? 1 : 0, thresholds_.counter_max));
}

void TwoGenerations::empty(uint32_t id, const Keep& keep) {
  Segment& segment = segments_[id];
  const std::vector<uint32_t> nodes = std::move(segment.nodes);
  for (uint32_t place = 0; place < nodes.size(); ++place) {
    const uint32_t node = nodes[place];
    if (!here(node, id, place)) continue;
    const uint8_t uses = index_[node].uses;
    if (uses < uses_needed(index_[node].cost, keep)) {
      if (segment.generation == kYoung && thresholds_.ghost_percent > 0) {
        ghosts_.add(index_[node].id, index_[node].cost);
      }
      forget(node);
      continue;
    }
    segment.live -= index_[node].cost;
    if (!append(keep.to == kYoung ? kCopierYoung : kCopierMain, node, 0)) {
      segment.live += index_[node].cost;
      forget(node);
      continue;
    }
    copied_ += index_[node].cost;
    if (keep.spend && uses > 0) --index_[node].uses;
  }
  segment.state = State::kFree;
  free_.push_back(id);
}

}  // namespace warpcache::sim
