// SPDX-License-Identifier: Apache-2.0
#include "workload/zipf.h"

#include <algorithm>
#include <cmath>

namespace warpcache::bench {

Zipf::Zipf(uint32_t count, double theta) : below_(count + size_t{1}), guide_(count + size_t{2}) {
  double sum = 0;
  for (uint32_t rank = 0; rank < count; ++rank) {
    below_[rank] = sum;
    sum += std::pow(static_cast<double>(rank) + 1.0, -theta);
  }
  below_[count] = sum;
  for (double& value : below_) value /= sum;

  uint32_t rank = 0;
  for (size_t i = 0; i < guide_.size(); ++i) {
    const double point = static_cast<double>(i) / static_cast<double>(count);
    while (rank + 1 < count && below_[rank + 1] <= point) ++rank;
    guide_[i] = rank;
  }
}

uint32_t Zipf::rank_at(double point) const {
  const size_t count = below_.size() - 1;
  const auto i = static_cast<size_t>(point * static_cast<double>(count));
  // Rounding may place a point one guide entry too high or too low: search one entry either side.
  const uint32_t low = guide_[i > 0 ? i - 1 : 0];
  const uint32_t high = guide_[std::min(i + 2, guide_.size() - 1)];
  const auto begin = below_.begin() + low;
  const auto end = below_.begin() + high + 1;
  const auto after = std::upper_bound(begin, end, point);
  return static_cast<uint32_t>(std::max<std::ptrdiff_t>(after - below_.begin() - 1, 0));
}

double Zipf::probability(uint32_t rank) const { return below_[rank + 1] - below_[rank]; }

}  // namespace warpcache::bench
