// SPDX-License-Identifier: Apache-2.0
//
// What the lanes of a warp do together: sums, and copies of ranges that belong to lanes, coalesced.
// Device code; every function is called by all lanes.
#pragma once

#include <cstdint>

#include "engine/cuda/block.cuh"

namespace warpcache::engine::cuda {

inline constexpr uint32_t kAllLanes = 0xffffffffu;

// The sum of `value` over the lanes up to this one.
__device__ inline uint32_t warp_sum_to(uint32_t value) {
  for (uint32_t step = 1; step < kWarpSize; step *= 2) {
    const uint32_t other = __shfl_up_sync(kAllLanes, value, step);
    if (lane_id() >= step) value += other;
  }
  return value;
}

// The pointer of another lane.
template <typename T>
__device__ T* pointer_of(T* pointer, int lane) {
  return reinterpret_cast<T*>(
      __shfl_sync(kAllLanes, reinterpret_cast<unsigned long long>(pointer), lane));
}

__device__ inline uint32_t warp_last(uint32_t value) {
  return __shfl_sync(kAllLanes, value, kWarpSize - 1);
}

// Calls store(i, load(place(i))) for words i up to `total`, a lane each: kBatch loads of each lane
// are under way at once. `place` is called by all lanes, whether they have a word or not.
template <uint32_t kBatch, typename Place, typename Load, typename Store>
__device__ void in_batches(uint32_t total, const Place& place, const Load& load,
                           const Store& store) {
  for (uint32_t first = lane_id(); first - lane_id() < total; first += kBatch * kWarpSize) {
    uint4 words[kBatch];
#pragma unroll
    for (uint32_t i = 0; i < kBatch; ++i) {
      const uint32_t word = first + i * kWarpSize;
      const uint32_t at = place(word);
      words[i] = {0, 0, 0, 0};  // else it is kept as it was, and loads wait for each other
      if (word < total) words[i] = load(at);
    }
#pragma unroll
    for (uint32_t i = 0; i < kBatch; ++i) {
      const uint32_t word = first + i * kWarpSize;
      if (word < total) store(word, words[i]);
    }
  }
}

// Ranges of 16-byte words, one a lane, that shall stand behind each other in the order of lanes.
class LaneRanges {
 public:
  // `words`: of this lane's range.
  __device__ explicit LaneRanges(uint32_t words)
      : end_(warp_sum_to(words)), begin_(end_ - words), total_(warp_last(end_)) {}

  // Where this lane's range begins and ends among all, and their sum, in words.
  __device__ uint32_t begin() const { return begin_; }
  __device__ uint32_t end() const { return end_; }
  __device__ uint32_t total() const { return total_; }

  // As in_batches(), for the first `total` words: load(at) where `at` counts from this lane's
  // `from`, which says where its range lies, in words of the source.
  template <uint32_t kBatch, typename Load, typename Store>
  __device__ void for_each(uint32_t from, uint32_t total, const Load& load,
                           const Store& store) const {
    in_batches<kBatch>(
        total,
        [&](uint32_t word) {
          const uint32_t owner = owner_of(word);
          const uint32_t into = word - __shfl_sync(kAllLanes, begin_, owner);
          return __shfl_sync(kAllLanes, from, owner) + into;
        },
        load, store);
  }

 private:
  // The lane to whose range a word belongs.
  __device__ uint32_t owner_of(uint32_t word) const {
    uint32_t lane = 0;
#pragma unroll
    for (uint32_t step = kWarpSize / 2; step != 0; step /= 2) {
      if (__shfl_sync(kAllLanes, end_, lane + step - 1) <= word) lane += step;
    }
    return lane;
  }

  uint32_t end_;
  uint32_t begin_;
  uint32_t total_;
};

}  // namespace warpcache::engine::cuda
