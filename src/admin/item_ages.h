// SPDX-License-Identifier: Apache-2.0
//
// How much memory lies with items of which age. An age is the time since the last access, as in
// memcached's `stats items`. Nothing is counted on a request's path: whoever asks looks at a sample
// of the index.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "admin/stats.h"

namespace warpcache::admin {

class StatsSource;

class ItemAges {
 public:
  // Upper ends of the steps, in seconds; a last step has what is older.
  static constexpr std::array<uint32_t, 8> kUpToS = {1, 10, 60, 600, 3600, 21'600, 86'400, 604'800};
  static constexpr size_t kSteps = kUpToS.size() + 1;
  // A look ends after this many items, or after this many parts of the index, each of which has a
  // few hundred places. So a small store is looked at as a whole.
  static constexpr uint32_t kItemsEnough = 1024;
  static constexpr uint32_t kPartsMax = 512;

  struct Estimate {
    std::array<uint64_t, kSteps> bytes{};  // all items' bytes, shared out as the sample's are
    uint64_t oldest_s = 0;                 // of the sample
  };

  // The estimate of this second. REQUIRES: as StatsSource::walk(), but any number of threads; one
  // makes the estimate, the others wait for it.
  Estimate look(StatsSource& source, const StatsSnapshot& snapshot);

 private:
  static Estimate make(StatsSource& source, const StatsSnapshot& snapshot, uint64_t place);

  std::mutex mutex_;  // guards what follows
  bool made_ = false;
  int64_t made_at_ = 0;  // snapshot's time
  uint64_t place_ = 0;   // where the next look begins, before it is scaled to the index
  Estimate estimate_;
};

}  // namespace warpcache::admin
