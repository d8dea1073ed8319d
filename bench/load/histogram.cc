// SPDX-License-Identifier: Apache-2.0
#include "load/histogram.h"

#include <algorithm>
#include <cmath>

namespace warpcache::load {

Histogram& Histogram::operator=(const Histogram& other) {
  if (this == &other) return *this;
  for (auto& count : counts_) count.store(0, std::memory_order_relaxed);
  sum_.store(0, std::memory_order_relaxed);
  add(other);
  return *this;
}

void Histogram::add(const Histogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) {
    const uint64_t more = other.counts_[i].load(std::memory_order_relaxed);
    if (more != 0) bump(&counts_[i], more);
  }
  bump(&sum_, other.sum_.load(std::memory_order_relaxed));
}

void Histogram::subtract(const Histogram& earlier) {
  for (size_t i = 0; i < kBuckets; ++i) {
    bump(&counts_[i], -earlier.counts_[i].load(std::memory_order_relaxed));
  }
  bump(&sum_, -earlier.sum_.load(std::memory_order_relaxed));
}

uint64_t Histogram::count() const {
  uint64_t all = 0;
  for (const auto& count : counts_) all += count.load(std::memory_order_relaxed);
  return all;
}

double Histogram::mean() const {
  const uint64_t all = count();
  if (all == 0) return 0;
  return static_cast<double>(sum_.load(std::memory_order_relaxed)) / static_cast<double>(all);
}

uint64_t Histogram::quantile(double share) const {
  const uint64_t all = count();
  if (all == 0) return 0;
  const double wanted = std::ceil(share * static_cast<double>(all));
  const uint64_t rank = std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, all);
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += counts_[i].load(std::memory_order_relaxed);
    if (seen >= rank) return top_of(i);
  }
  return kValueMax;
}

}  // namespace warpcache::load
