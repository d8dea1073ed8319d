// SPDX-License-Identifier: Apache-2.0
// A histogram of latencies with buckets that widen with the value, as in HdrHistogram: values from
// 1 ns to 18 minutes with an error of at most 0.4%, in 70 KiB.
#ifndef WARPCACHE_BENCH_LOAD_HISTOGRAM_H_
#define WARPCACHE_BENCH_LOAD_HISTOGRAM_H_

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace warpcache::load {

// One thread records; others may read at the same time and see a slightly older state.
class Histogram {
 public:
  static constexpr uint64_t kValueMax = (uint64_t{1} << 40) - 1;  // larger values count as this

  Histogram() : counts_(kBuckets) {}
  Histogram(const Histogram& other) : counts_(kBuckets) { add(other); }
  Histogram& operator=(const Histogram& other);

  void record(uint64_t value, uint64_t times = 1) {
    const uint64_t bounded = value < kValueMax ? value : kValueMax;
    bump(&counts_[bucket_of(bounded)], times);
    bump(&sum_, bounded * times);
  }

  void add(const Histogram& other);

  // Subtracts the counts of an earlier copy of this histogram.
  void subtract(const Histogram& earlier);

  uint64_t count() const;
  double mean() const;  // 0 if nothing was counted

  // The smallest value that `share` of all values do not exceed, with the precision of a bucket; 0
  // if nothing was counted. REQUIRES: 0 <= share <= 1.
  uint64_t quantile(double share) const;

 private:
  static constexpr uint32_t kSubBits = 8;  // buckets in each doubling of the value: 2^8
  static constexpr uint32_t kSub = 1u << kSubBits;
  static constexpr size_t kBuckets = (40 - kSubBits + 1) * size_t{kSub};

  static constexpr size_t bucket_of(uint64_t value) {
    if (value < 2 * kSub) return value;
    const auto shift = static_cast<uint32_t>(std::bit_width(value)) - kSubBits - 1;
    return shift * size_t{kSub} + (value >> shift);
  }

  // The largest value that falls into the bucket.
  static constexpr uint64_t top_of(size_t bucket) {
    if (bucket < 2 * kSub) return bucket;
    const size_t shift = bucket / kSub - 1;
    return ((bucket - shift * kSub + 1) << shift) - 1;
  }

  static void bump(std::atomic<uint64_t>* counter, uint64_t by) {
    counter->store(counter->load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  std::vector<std::atomic<uint64_t>> counts_;
  std::atomic<uint64_t> sum_ = 0;
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_HISTOGRAM_H_
