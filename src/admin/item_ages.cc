// SPDX-License-Identifier: Apache-2.0
#include "admin/item_ages.h"

#include <algorithm>

#include "admin/stats_command.h"

namespace warpcache::admin {
namespace {

// Multiples of it, modulo 2^64, lie evenly between each other (the golden ratio).
constexpr uint64_t kStride = 0x9e3779b97f4a7c15;

// A place in the index, for a number of 64 bits that stands for a fraction.
uint64_t scaled(uint64_t fraction, uint64_t places) {
  return static_cast<uint64_t>(static_cast<double>(fraction >> 11) * 0x1p-53 *
                               static_cast<double>(places));
}

size_t step_of(uint64_t age_s) {
  const auto end = std::lower_bound(ItemAges::kUpToS.begin(), ItemAges::kUpToS.end(), age_s);
  return static_cast<size_t>(end - ItemAges::kUpToS.begin());
}

}  // namespace

ItemAges::Estimate ItemAges::look(StatsSource& source, const StatsSnapshot& snapshot) {
  const std::lock_guard lock(mutex_);
  if (made_ && made_at_ == snapshot.unix_time) return estimate_;
  estimate_ = make(source, snapshot, place_);
  place_ += kStride * kPartsMax;
  made_ = true;
  made_at_ = snapshot.unix_time;
  return estimate_;
}

// A small index is walked from its beginning to its end, a large one is looked at in parts that lie
// evenly in it.
ItemAges::Estimate ItemAges::make(StatsSource& source, const StatsSnapshot& snapshot,
                                  uint64_t place) {
  Estimate estimate;
  uint64_t items = 0;
  uint64_t bytes = 0;
  const auto see = [&](const DumpItem& item) {
    const int64_t age = std::max<int64_t>(snapshot.unix_time - item.accessed_unix, 0);
    estimate.bytes[step_of(static_cast<uint64_t>(age))] += item.item_bytes;
    estimate.oldest_s = std::max(estimate.oldest_s, static_cast<uint64_t>(age));
    bytes += item.item_bytes;
    ++items;
  };
  const bool is_small = snapshot.items <= kItemsEnough;
  uint64_t cursor = 0;
  for (uint32_t part = 0; part < kPartsMax && (is_small || items < kItemsEnough); ++part) {
    if (!is_small) cursor = scaled(place += kStride, snapshot.walk_places);
    if (source.walk(cursor, see) != Status::kOk) return {};
    if (is_small && cursor == kWalkEnd) break;
  }
  if (bytes == 0) return {};
  const double scale = static_cast<double>(snapshot.item_bytes) / static_cast<double>(bytes);
  for (uint64_t& of_step : estimate.bytes) {
    of_step = static_cast<uint64_t>(static_cast<double>(of_step) * scale);
  }
  return estimate;
}

}  // namespace warpcache::admin
