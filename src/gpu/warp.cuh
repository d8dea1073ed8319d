// SPDX-License-Identifier: Apache-2.0
//
// What the lanes of a warp do together: sums, and coalesced copies of ranges that belong to lanes.
// Device code; all lanes call every function.
#pragma once

#include <cstdint>

#include "gpu/block.cuh"

namespace warpcache::gpu {

inline constexpr uint32_t kAllLanes = 0xffffffffu;

// The sum of `value` over the lanes up to and including this one.
__device__ inline uint32_t warp_sum_to(uint32_t value) {
  for (uint32_t step = 1; step < kWarpSize; step *= 2) {
    const uint32_t other = __shfl_up_sync(kAllLanes, value, step);
    if (lane_id() >= step) value += other;
  }
  return value;
}

// The pointer that another lane has.
template <typename T>
__device__ T* pointer_of(T* pointer, int lane) {
  return reinterpret_cast<T*>(
      __shfl_sync(kAllLanes, reinterpret_cast<unsigned long long>(pointer), lane));
}

__device__ inline uint32_t warp_last(uint32_t value) {
  return __shfl_sync(kAllLanes, value, kWarpSize - 1);
}

// Calls store(i, load(place(i))) for the words i below `total`, one lane for each word; each lane
// has kBatch loads in progress at the same time. All lanes call `place`, also those without a word.
template <uint32_t kBatch, typename Place, typename Load, typename Store>
__device__ void in_batches(uint32_t total, const Place& place, const Load& load,
                           const Store& store) {
  for (uint32_t first = lane_id(); first - lane_id() < total; first += kBatch * kWarpSize) {
    uint4 words[kBatch];
#pragma unroll
    for (uint32_t i = 0; i < kBatch; ++i) {
      const uint32_t word = first + i * kWarpSize;
      const uint32_t at = place(word);
      words[i] = {0, 0, 0, 0};  // without it the old value would be kept, and loads would wait for
                                // each other
      if (word < total) words[i] = load(at);
    }
#pragma unroll
    for (uint32_t i = 0; i < kBatch; ++i) {
      const uint32_t word = first + i * kWarpSize;
      if (word < total) store(word, words[i]);
    }
  }
}

namespace warp_detail {

// Bytes [16 * i + skip, 16 * i + skip + 16) of the data that load() returns in words of 16.
template <typename Load>
__device__ uint4 word_at(const Load& load, uint32_t i, uint32_t skip) {
  const uint4 low = load(i);
  if (skip == 0) return low;
  const uint4 high = load(i + 1);
  uint32_t parts[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (uint32_t k = 0; k < 6; ++k) parts[k] = (skip & 8) != 0 ? parts[k + 2] : parts[k];
#pragma unroll
  for (uint32_t k = 0; k < 5; ++k) parts[k] = (skip & 4) != 0 ? parts[k + 1] : parts[k];
  const uint32_t shift = skip % 4 * 8;
  return {__funnelshift_r(parts[0], parts[1], shift), __funnelshift_r(parts[1], parts[2], shift),
          __funnelshift_r(parts[2], parts[3], shift), __funnelshift_r(parts[3], parts[4], shift)};
}

}  // namespace warp_detail

// Copies `size` bytes from device or host memory, with any alignment: 16 bytes for each lane at a
// time, bypassing the first-level cache. Reads the 16-byte words of the first and the last byte as
// a whole.
__device__ inline void warp_copy(uint8_t* out, const uint8_t* from, uint32_t size) {
  constexpr uint32_t kAtOnce = 4;
  const auto ahead = static_cast<uint32_t>(-reinterpret_cast<uintptr_t>(out) % 16);
  const uint32_t first = ahead < size ? ahead : size;
  const auto byte = [from](uint32_t at) {
    return *static_cast<const volatile uint8_t*>(from + at);
  };
  if (lane_id() < first) out[lane_id()] = byte(lane_id());
  const uint8_t* const body = from + first;
  const auto skip = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(body) % 16);
  const auto* const words = reinterpret_cast<const uint4*>(body - skip);
  auto* const to = reinterpret_cast<uint4*>(out + first);
  const auto load = [words](uint32_t i) { return load_from_host(words + i); };
  const uint32_t count = (size - first) / 16;
  for (uint32_t begin = lane_id(); begin < count; begin += kAtOnce * kWarpSize) {
    uint4 loaded[kAtOnce];
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      loaded[i] = warp_detail::word_at(load, min(begin + i * kWarpSize, count - 1), skip);
    }
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      if (begin + i * kWarpSize < count) to[begin + i * kWarpSize] = loaded[i];
    }
  }
  const uint32_t last = first + count * 16 + lane_id();
  if (last < size) out[last] = byte(last);
}

// The same with all warps of a block. Called by the whole block.
__device__ inline void block_copy(uint8_t* out, const uint8_t* from, uint32_t size) {
  constexpr uint32_t kPiece = 4096;
  for (uint32_t at = warp_id() * kPiece; at < size; at += blockDim.x / kWarpSize * kPiece) {
    warp_copy(out + at, from + at, min(kPiece, size - at));
  }
}

// Ranges of 16-byte words, one for each lane, placed one after the other in the order of the lanes.
class LaneRanges {
 public:
  // `words`: the length of this lane's range.
  __device__ explicit LaneRanges(uint32_t words)
      : end_(warp_sum_to(words)), begin_(end_ - words), total_(warp_last(end_)) {}

  // Begin and end of this lane's range, and the sum of all, in words.
  __device__ uint32_t begin() const { return begin_; }
  __device__ uint32_t end() const { return end_; }
  __device__ uint32_t total() const { return total_; }

  // The lane whose range contains a word; the last lane for words after all ranges.
  __device__ uint32_t owner_of(uint32_t word) const {
    uint32_t lane = 0;
#pragma unroll
    for (uint32_t step = kWarpSize / 2; step != 0; step /= 2) {
      if (__shfl_sync(kAllLanes, end_, lane + step - 1) <= word) lane += step;
    }
    return lane;
  }

  // Like in_batches(), for the first `total` words: load(at), where `at` counts from this lane's
  // `from`, the place of its range in the source, in words.
  template <uint32_t kBatch, typename Load, typename Store>
  __device__ void for_each(uint32_t from, uint32_t total, const Load& load,
                           const Store& store) const {
    in_batches<kBatch>(
        total, [&](uint32_t word) { return place_of(word, from); }, load, store);
  }

  // Calls store(at, load(i)) for the first `total` words: `at` counts from the `to` of the lane
  // whose range word i is in.
  template <typename Load, typename Store>
  __device__ void scatter(uint32_t to, uint32_t total, const Load& load, const Store& store) const {
    for (uint32_t first = 0; first < total; first += kWarpSize) {
      const uint32_t word = first + lane_id();
      const uint32_t at = place_of(word, to);
      if (word < total) store(at, load(word));
    }
  }

 private:
  // Where a word is, if the range of each lane begins at that lane's `begin`.
  __device__ uint32_t place_of(uint32_t word, uint32_t begin) const {
    const uint32_t owner = owner_of(word);
    const uint32_t into = word - __shfl_sync(kAllLanes, begin_, owner);
    return __shfl_sync(kAllLanes, begin, owner) + into;
  }

  uint32_t end_;
  uint32_t begin_;
  uint32_t total_;
};

}  // namespace warpcache::gpu
