// SPDX-License-Identifier: Apache-2.0
#include "traces/ycsb.h"

#include <algorithm>
#include <cmath>

namespace warpcache::sim {

double zeta(uint64_t count, double theta) {
  double sum = 0;
  for (uint64_t rank = count; rank > 0; --rank) sum += std::pow(static_cast<double>(rank), -theta);
  return sum;
}

uint64_t ycsb_hash(uint64_t value) {
  constexpr uint64_t kOffset = 0xcbf29ce484222325;
  constexpr uint64_t kPrime = 1099511628211;
  uint64_t hash = kOffset;
  for (int i = 0; i < 8; ++i, value >>= 8) hash = (hash ^ (value & 0xff)) * kPrime;
  const auto number = static_cast<int64_t>(hash);
  return number < 0 ? ~hash + 1 : hash;
}

YcsbZipfian::YcsbZipfian(uint64_t items, double theta)
    : YcsbZipfian(items, theta, zeta(items, theta)) {}

YcsbZipfian::YcsbZipfian(uint64_t items, double theta, double zeta_items)
    : items_(items), theta_(theta), zeta_(zeta_items) {
  prepare();
}

void YcsbZipfian::prepare() {
  second_ = 1.0 + std::pow(0.5, theta_);
  alpha_ = 1.0 / (1.0 - theta_);
  eta_ =
      (1.0 - std::pow(2.0 / static_cast<double>(items_), 1.0 - theta_)) / (1.0 - second_ / zeta_);
}

uint64_t YcsbZipfian::rank_at(double u) const {
  const double place = u * zeta_;
  if (place < 1.0) return 0;
  if (place < second_) return 1;
  const double rank = static_cast<double>(items_) * std::pow(eta_ * u - eta_ + 1.0, alpha_);
  return std::min(static_cast<uint64_t>(rank), items_ - 1);
}

// The part of the unit interval on which rank_at() is below `rank`.
double YcsbZipfian::below(uint64_t rank) const {
  if (rank == 0) return 0.0;
  if (rank == 1) return 1.0 / zeta_;
  if (rank >= items_) return 1.0;
  const double share =
      std::pow(static_cast<double>(rank) / static_cast<double>(items_), 1.0 - theta_);
  return std::clamp((share - 1.0 + eta_) / eta_, second_ / zeta_, 1.0);
}

double YcsbZipfian::probability(uint64_t rank) const { return below(rank + 1) - below(rank); }

void YcsbZipfian::grow(uint64_t items) {
  for (; items_ < items; ++items_) zeta_ += std::pow(static_cast<double>(items_) + 1.0, -theta_);
  prepare();
}

YcsbScrambledZipfian::YcsbScrambledZipfian(uint64_t keys)
    : zipfian_(kItems, kTheta, kZeta), keys_(keys) {}

}  // namespace warpcache::sim
