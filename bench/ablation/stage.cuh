// SPDX-License-Identifier: Apache-2.0
//
// Slots of one size in shared memory, and how they are copied there and back, in contiguous 16-byte
// words. Device code, and what the host computes for it.
#pragma once

#include <cstdint>

#include "gpu/start_kernel.cuh"
#include "gpu/warp.cuh"

namespace warpcache::ablation {

// The shape of a slot. Slots begin an odd number of words apart, so that the same bytes of
// neighbouring slots are in different banks as far as possible.
class StageShape {
 public:
  explicit StageShape(uint32_t slot_bytes)
      : words_(slot_bytes / 16), reciprocal_((1 << kShift) / words_ + 1) {}

  WC_HD uint32_t words() const { return words_; }       // of 16 bytes, in device memory
  WC_HD uint32_t stride() const { return words_ | 1; }  // in the staging buffer
  // The place of word `at` of all slots in the staging buffer. REQUIRES: at < 32 * words().
  WC_HD uint32_t place(uint32_t at) const {
    const uint32_t slot = at * reciprocal_ >> kShift;
    return at + slot * (stride() - words_);
  }

 private:
  // Exact as long as 32 * words() * words() < 1 << kShift.
  static constexpr uint32_t kShift = 18;

  uint32_t words_;
  uint32_t reciprocal_;
};
inline constexpr uint32_t kSlotBytesMax = 640;
static_assert(32 * (kSlotBytesMax / 16) * (kSlotBytesMax / 16) < 1 << 18);

// Copies `slots` of them to the staging buffer. Called by kThreads threads; this one has the number
// `thread`.
template <uint32_t kThreads>
__device__ void bring_in(const uint8_t* from, uint32_t slots, const StageShape& shape, uint4* stage,
                         uint32_t thread) {
  constexpr uint32_t kBatch = 4;  // loads in progress at the same time
  const auto* source = reinterpret_cast<const uint4*>(from);
  const uint32_t total = slots * shape.words();
  for (uint32_t first = thread; first < total; first += kBatch * kThreads) {
    uint4 words[kBatch];
#pragma unroll
    for (uint32_t i = 0; i < kBatch; ++i) {
      const uint32_t at = first + i * kThreads;
      words[i] = {0, 0, 0, 0};  // without it the old value would be kept, and loads would wait for
                                // each other
      if (at < total) words[i] = __ldcg(source + at);
    }
#pragma unroll
    for (uint32_t i = 0; i < kBatch; ++i) {
      const uint32_t at = first + i * kThreads;
      if (at < total) stage[shape.place(at)] = words[i];
    }
  }
}

// Copies them back.
template <uint32_t kThreads>
__device__ void send(uint8_t* to, uint32_t slots, const StageShape& shape, const uint4* stage,
                     uint32_t thread) {
  auto* target = reinterpret_cast<uint4*>(to);
  const uint32_t total = slots * shape.words();
  for (uint32_t at = thread; at < total; at += kThreads) {
    __stcs(target + at, stage[shape.place(at)]);
  }
}

// How a kernel is started: blocks of `threads` threads, each of which works on `requests` at a
// time.
struct Plan {
  Footprint footprint;
  uint32_t threads = 0;
  uint32_t shared_bytes = 0;
  uint32_t requests = 0;
  uint32_t blocks_max = 0;  // that run at the same time

  gpu::LaunchShape shape_for(uint32_t count) const {
    return {std::clamp((count + requests - 1) / requests, 1u, blocks_max), threads};
  }
};

template <typename... Parameters>
Plan plan_for(void (*kernel)(Parameters...), uint32_t threads, uint32_t shared_bytes,
              uint32_t requests) {
  Plan plan = {{}, threads, shared_bytes, requests, 0};
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared_bytes)),
        "shared memory of a kernel");
  cudaFuncAttributes attributes;
  check(cudaFuncGetAttributes(&attributes, kernel), "attributes of a kernel");
  int blocks = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, static_cast<int>(threads),
                                                      shared_bytes),
        "occupancy of a kernel");
  if (blocks == 0) throw std::runtime_error("a kernel's block does not fit a multiprocessor");
  int device = 0;
  int multiprocessors = 0;
  check(cudaGetDevice(&device), "the device in use");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
        "the number of multiprocessors");
  plan.blocks_max = static_cast<uint32_t>(blocks * multiprocessors);
  plan.footprint.registers = attributes.numRegs;
  plan.footprint.local_bytes = static_cast<int>(attributes.localSizeBytes);
  plan.footprint.shared_bytes = static_cast<int>(attributes.sharedSizeBytes + shared_bytes);
  plan.footprint.threads = static_cast<int>(threads);
  plan.footprint.warps = blocks * static_cast<int>(threads / gpu::kWarpSize);
  return plan;
}

}  // namespace warpcache::ablation
