// SPDX-License-Identifier: Apache-2.0
//
// A warp runs a chunk: up to 32 Ethernet frames, one lane each, after MemcachedGPU and GNoM (SoCC
// 2015). Each packet is an independent datagram, so they have no order. Input and replies pass
// through shared memory, so that only coalesced 16-byte words cross the bus.
//
// As many frames as fit are loaded into the staging buffer at a time. The single-key fast path for
// GETs with short values (single_key_gets.cuh) is part of the kernel itself. Everything else is in
// separate functions with their own registers and stack: long values, misses, multigets
// (get_lines.cuh), single-key SETs (single_key_sets.cuh), and the general path. A warp that needs
// none of them neither fetches their code nor carries their state. A lane keeps little data across
// such a call; it goes to the stack.
//
// Device code.
#pragma once

#include <cstdint>

#include "engine/cuda/packets/general_packets.cuh"
#include "engine/cuda/packets/get_lines.cuh"
#include "engine/cuda/packets/single_key_gets.cuh"
#include "engine/cuda/packets/single_key_sets.cuh"

namespace warpcache::engine::cuda {

namespace chunk_detail {

__device__ __noinline__ inline bool run_long_hits(const BlockResources& resources,
                                                  const PacketJob& job, WarpStage& stage,
                                                  Tally& tally, Bytes frame, uint32_t offset,
                                                  bool is_long, PacketResult& result) {
  SingleKeyGets<ValueSizes::kLong> gets(resources.core, job, stage, tally);
  return gets.run(frame, offset, is_long, result) == SingleKeyFate::kDone;
}

__device__ __noinline__ inline bool run_single_key_misses(const BlockResources& resources,
                                                          const PacketJob& job, WarpStage& stage,
                                                          Tally& tally, Bytes frame,
                                                          uint32_t offset, bool missed,
                                                          PacketResult& result) {
  return answer_single_key_misses(resources.core, job, stage, tally, frame, offset, missed, result);
}

__device__ __noinline__ inline bool run_get_lines(const BlockResources& resources,
                                                  const PacketJob& job, WarpStage& stage,
                                                  Tally& tally, Bytes frame, uint32_t offset,
                                                  bool here, PacketResult& result) {
  GetLines lines(resources.core, job, stage, tally);
  return lines.run(frame, offset, here, result);
}

__device__ __noinline__ inline bool run_single_key_sets(const BlockResources& resources,
                                                        const PacketJob& job, WarpStage& stage,
                                                        Tally& tally, Bytes frame, uint32_t offset,
                                                        bool here, PacketResult& result) {
  SingleKeySets sets(resources, job, stage, tally);
  return sets.run(frame, offset, here, result);
}

__device__ __noinline__ inline PacketResult run_general(const BlockResources& resources,
                                                        const PacketJob& job, WarpStage& stage,
                                                        Tally& tally, Bytes frame, uint32_t offset,
                                                        bool here) {
  GeneralPackets packets(resources, job, stage, tally);
  return packets.run(frame, offset, here);
}

// Runs the packets that are no single-key GET with a short hit. Returns the results of those that
// are `here`.
__device__ __noinline__ inline PacketResult run_others(const BlockResources& resources,
                                                       const PacketJob& job, WarpStage& stage,
                                                       Tally& tally, Bytes frame, uint32_t offset,
                                                       bool here, SingleKeyFate fate) {
  PacketResult result = {};
  bool waits = here;
  const bool is_long = here && fate == SingleKeyFate::kLong;
  if (__any_sync(gpu::kAllLanes, is_long)) {
    waits = !run_long_hits(resources, job, stage, tally, frame, offset, is_long, result) && waits;
  }
  const bool missed = here && fate == SingleKeyFate::kMissed;
  if (__any_sync(gpu::kAllLanes, missed)) {
    waits = !run_single_key_misses(resources, job, stage, tally, frame, offset, missed, result) &&
            waits;
  }
  const bool is_line = waits && may_be_get_line(job, frame);
  if (__any_sync(gpu::kAllLanes, is_line)) {
    waits = !run_get_lines(resources, job, stage, tally, frame, offset, is_line, result) && waits;
  }
  if (!__any_sync(gpu::kAllLanes, waits)) return result;
  waits = !run_single_key_sets(resources, job, stage, tally, frame, offset, waits, result) && waits;
  if (!__any_sync(gpu::kAllLanes, waits)) return result;
  const PacketResult last = run_general(resources, job, stage, tally, frame, offset, waits);
  return waits ? last : result;
}

}  // namespace chunk_detail

// One chunk, as seen by one lane. Every function is called by the whole warp unless it says
// otherwise.
class PacketChunk {
 public:
  __device__ PacketChunk(const BlockResources& resources, const PacketJob& job, WarpStage& stage,
                         Tally& tally)
      : resources_(resources), job_(job), stage_(stage), tally_(tally) {}

  // Runs `count` packets from `first` on; 0 is allowed. All results are written when it returns.
  // Calls `wait_for_epoch` before it reads the store, also with 0 packets; that returns when the
  // block is in its epoch.
  template <typename Wait>
  __device__ void run(uint32_t first, uint32_t count, const Wait& wait_for_epoch) {
    PacketResult result = PacketResult::not_done(PacketState::kHost);
    uint32_t not_reached = count < gpu::kWarpSize ? (1u << count) - 1 : gpu::kAllLanes;  // lanes
    do {
      SingleKeyGets<ValueSizes::kShort> gets(resources_.core, job_, stage_, tally_);
      const bool waits = (not_reached >> gpu::lane_id() & 1) != 0;
      PacketSlot slot = {0, 0};
      if (waits) slot = load_slot(first + gpu::lane_id());
      const uint32_t words = (slot.offset % 16 + slot.size + 15) / 16;
      const bool fits = waits && words <= kStageWords;  // larger frames are left to the host
      const gpu::LaneRanges ranges(fits ? words : 0);
      const bool taken = fits && ranges.end() <= kStageWords;
      not_reached &= ~__ballot_sync(gpu::kAllLanes, taken || !fits);
      bring_in(ranges, slot.offset / 16,
               __reduce_max_sync(gpu::kAllLanes, taken ? ranges.end() : 0));
      wait_for_epoch();
      if (count == 0) return;
      const Bytes frame = {stage_.input + ranges.begin() * 16 + slot.offset % 16, slot.size};
      const SingleKeyFate fate = gets.run(frame, slot.offset, taken, result);
      const bool other = taken && fate != SingleKeyFate::kDone;
      if (__any_sync(gpu::kAllLanes, other)) {
        const PacketResult what = chunk_detail::run_others(resources_, job_, stage_, tally_, frame,
                                                           slot.offset, other, fate);
        if (other) result = what;
      }
    } while (not_reached != 0);
    const bool here = gpu::lane_id() < count;
    if (here) job_.packets[first + gpu::lane_id()] = result;
    const PacketState state = result.state();
    const bool undone = here && state != PacketState::kDone && state != PacketState::kDropped;
    const uint32_t count_undone = __popc(__ballot_sync(gpu::kAllLanes, undone));
    if (gpu::lane_id() == 0 && count_undone != 0) atomicAdd(&tally_.undone, count_undone);
  }

 private:
  __device__ PacketSlot load_slot(uint32_t number) const {
    if (job_.slots_inline) return reinterpret_cast<const PacketSlot*>(job_.inline_data)[number];
    if (job_.slots == nullptr) return {number * job_.slot_bytes, job_.slot_bytes};
    const volatile PacketSlot& slot = job_.slots[number];
    return {slot.offset, slot.size};
  }

  // Loads the first `total` words of the lanes' frames into the staging buffer; this lane's begin
  // at word `from` of the input. All loads are issued before the first is waited for.
  __device__ void bring_in(const gpu::LaneRanges& frames, uint32_t from, uint32_t total) {
    constexpr uint32_t kAtOnce = kStageWords / gpu::kWarpSize;
    const auto* const source = reinterpret_cast<const uint4*>(job_.input);
    auto* const target = reinterpret_cast<uint4*>(stage_.input);
    const auto load = [source](uint32_t at) { return gpu::load_from_host(source + at); };
    const auto store = [target](uint32_t at, const uint4& word) { target[at] = word; };
    __syncwarp();
    if (job_.inline_bytes != 0) {
      const auto* const brought = reinterpret_cast<const uint4*>(job_.inline_data);
      const auto load_brought = [brought](uint32_t at) { return brought[at]; };
      frames.for_each<1>(from, total, load_brought, store);
    } else if (!job_.has_slots() && job_.slot_bytes % 16 == 0) {
      // Slots of whole words are contiguous, from the first lane that has one.
      const uint32_t lanes = __ballot_sync(gpu::kAllLanes, frames.begin() != frames.end());
      if (lanes != 0) from = __shfl_sync(gpu::kAllLanes, from, __ffs(static_cast<int>(lanes)) - 1);
      gpu::in_batches<kAtOnce>(
          total, [from](uint32_t word) { return from + word; }, load, store);
    } else {
      frames.for_each<kAtOnce>(from, total, load, store);
    }
    __syncwarp();
  }

  const BlockResources& resources_;
  const PacketJob& job_;
  WarpStage& stage_;
  Tally& tally_;
};

}  // namespace warpcache::engine::cuda
