// SPDX-License-Identifier: Apache-2.0
//
// Whom to give up when there are too many: the oldest of the owner with the most. So one owner,
// however many it adds, pushes out only its own, while others have fewer.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/assert.h"

namespace warpcache {

// `owners` has the owner of each element, oldest first; returns the index of the first element of
// those owners that have the most. Sorts a copy. REQUIRES: 0 < count <= kMax.
template <size_t kMax>
size_t first_of_most(const std::array<uint64_t, kMax>& owners, size_t count) {
  WC_ASSERT(count > 0 && count <= kMax);
  std::array<uint64_t, kMax> sorted{};
  const auto end = sorted.begin() + static_cast<ptrdiff_t>(count);
  std::copy_n(owners.begin(), count, sorted.begin());
  std::sort(sorted.begin(), end);
  const auto how_many = [&](uint64_t owner) {
    const auto [first, last] = std::equal_range(sorted.begin(), end, owner);
    return last - first;
  };
  ptrdiff_t most = 0;
  for (auto at = sorted.begin(); at != end; at += how_many(*at)) {
    most = std::max(most, how_many(*at));
  }
  size_t index = 0;
  while (how_many(owners[index]) != most) ++index;
  return index;
}

}  // namespace warpcache
