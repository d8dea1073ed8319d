// SPDX-License-Identifier: Apache-2.0
#include "admin/hot_keys.h"

#include <algorithm>
#include <new>
#include <random>

namespace warpcache::admin {
namespace {

thread_local bool takes_this_batch = false;

}  // namespace

void HotKeys::set_enabled(bool enabled) {
  if (enabled) reset();
  enabled_.store(enabled, std::memory_order_relaxed);
}

void HotKeys::reset() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  places_.clear();
}

bool HotKeys::takes_batch() {
  thread_local std::minstd_rand random{std::random_device{}()};
  return takes_this_batch = random() % kBatchesPerSample == 0;
}

bool HotKeys::takes_this() { return takes_this_batch; }

void HotKeys::saw(std::string_view key, bool hit) {
  const std::lock_guard lock(mutex_);
  try {
    Entry* const entry = place_for(key);
    ++entry->count;
    entry->hits += static_cast<uint64_t>(hit);
  } catch (const std::bad_alloc&) {
    return;
  }
}

HotKeys::Entry* HotKeys::place_for(std::string_view key) {
  std::string text(key);
  const auto found = places_.find(text);
  if (found != places_.end()) return &entries_[found->second];
  if (entries_.size() < kKeysMax) {
    entries_.reserve(kKeysMax);
    places_.emplace(text, entries_.size());
    return &entries_.emplace_back(Entry{std::move(text), 0, 0, 0});
  }
  const auto rarest =
      std::min_element(entries_.begin(), entries_.end(),
                       [](const Entry& a, const Entry& b) { return a.count < b.count; });
  const auto place = static_cast<size_t>(rarest - entries_.begin());
  places_.emplace(text, place);
  places_.erase(rarest->key);
  *rarest = {std::move(text), rarest->count, rarest->count, 0};
  return &*rarest;
}

std::vector<HotKey> HotKeys::top() const {
  std::vector<HotKey> keys;
  {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_) {
      keys.push_back({entry.key, entry.count * kBatchesPerSample,
                      (entry.count - entry.error) * kBatchesPerSample,
                      entry.hits * kBatchesPerSample});
    }
  }
  std::sort(keys.begin(), keys.end(),
            [](const HotKey& a, const HotKey& b) { return a.requests > b.requests; });
  if (keys.size() > kShownMax) keys.resize(kShownMax);
  return keys;
}

}  // namespace warpcache::admin
