// SPDX-License-Identifier: Apache-2.0
#include "hitrate/stack_distance.h"

#include <algorithm>
#include <numeric>

namespace warpcache::sim {

void StackDistance::change(uint64_t time, int32_t by) {
  for (; time < tree_.size(); time += time & (~time + 1)) {
    tree_[time] += static_cast<uint32_t>(by);
  }
}

// Keys whose last access is later than `time`.
uint64_t StackDistance::keys_since(uint64_t time) const {
  uint64_t until = 0;
  for (; time > 0; time -= time & (~time + 1)) until += tree_[time];
  return last_access_.size() - until;
}

void StackDistance::add(const Request& request, bool counted) {
  const auto known = last_access_.find(request.key);
  if (request.operation == Operation::kDelete) {
    if (known == last_access_.end()) return;
    change(known->second, -1);
    last_access_.erase(known);
    return;
  }
  const bool counts = counted && request.operation == Operation::kGet;
  gets_ += counts ? 1 : 0;
  ++now_;
  if (known == last_access_.end()) {
    last_access_.emplace(request.key, now_);
  } else {
    const uint64_t distance = keys_since(known->second);
    if (counts) {
      if (at_distance_.size() <= distance) at_distance_.resize(distance + 1);
      ++at_distance_[distance];
    }
    change(known->second, -1);
    known->second = now_;
  }
  change(now_, 1);
}

uint64_t StackDistance::hits(uint64_t capacity) const {
  const auto end = at_distance_.begin() +
                   static_cast<std::ptrdiff_t>(std::min<uint64_t>(capacity, at_distance_.size()));
  return std::accumulate(at_distance_.begin(), end, uint64_t{0});
}

}  // namespace warpcache::sim
