// SPDX-License-Identifier: Apache-2.0
//
// A warp works off a chunk: up to 32 whole Ethernet frames, a lane each, after MemcachedGPU and
// GNoM (SoCC 2015). Packets are datagrams, each for itself: nothing orders them. Input and replies
// pass through shared memory, so that the bus sees nothing but coalesced 16-byte words.
//
// As many of the frames as the stage has room for come in at a time. Lone gets (wire/lone_get.h)
// take the short way: look-up, reply, out. Lone sets (wire/lone_set.h) take another, all else the
// general one; each is a function of its own: a warp that has none of them neither fetches its code
// nor carries its state.
//
// Device code.
#pragma once

#include <cstdint>

#include "engine/cuda/general_packets.cuh"
#include "engine/cuda/lone_sets.cuh"
#include "engine/cuda/packet_stage.cuh"
#include "wire/lone_get.h"

namespace warpcache::engine::cuda {

// The largest reply frame: headers as in wire/lone_get.h, and what a datagram may carry.
inline constexpr uint32_t kLoneReplyMax = wire::kEthernetHeaderSize + wire::kIpv4HeaderSize +
                                          wire::kUdpProtocolHeaderSize + wire::kUdpDatagramMax;
static_assert(kLoneReplyMax <= kStageBytes);

namespace chunk_detail {

__device__ __noinline__ PacketResult run_general(const BlockResources& resources,
                                                 const PacketJob& job, WarpStage& stage,
                                                 Tally& tally, Bytes frame, uint32_t offset,
                                                 bool here) {
  GeneralPackets packets(resources, job, stage, tally);
  return packets.run(frame, offset, here);
}

__device__ __noinline__ bool run_lone_sets(const BlockResources& resources, const PacketJob& job,
                                           WarpStage& stage, Tally& tally, Bytes frame,
                                           uint32_t offset, bool here, PacketResult& result) {
  LoneSets sets(resources, job, stage, tally);
  return sets.run(frame, offset, here, result);
}

// Whether the key is there at all, however often it moves.
__device__ __noinline__ bool is_there(const store::Core& core, uint64_t hash, Bytes key) {
  return static_cast<bool>(store::find_key(core, hash, key));
}

}  // namespace chunk_detail

// As one lane sees it. Every function is called by the whole warp unless it says otherwise.
class PacketChunk {
 public:
  __device__ PacketChunk(const BlockResources& resources, const PacketJob& job, WarpStage& stage,
                         Tally& tally)
      : resources_(resources),
        core_(resources.core),
        job_(job),
        stage_(stage),
        tally_(tally),
        pairs_(load_relaxed(&core_.shared->pair_count)),
        flush_generation_(load_relaxed(&core_.shared->flush_generation)) {}

  // Works off `count` packets from `first` on. All is written when it returns. `wait_for_epoch` is
  // called before the store is looked at, and returns when the block is in its epoch.
  template <typename Wait>
  __device__ void run(uint32_t first, uint32_t count, const Wait& wait_for_epoch) {
    const bool here = lane_id() < count;
    PacketSlot slot = {0, 0};
    if (here) slot = load_slot(first + lane_id());
    const uint32_t from = slot.offset / 16;
    const uint32_t words = (slot.offset % 16 + slot.size + 15) / 16;
    result_ = PacketResult::not_done(PacketState::kHost);
    bool waits = here && words <= kStageWords;
    while (__any_sync(kAllLanes, waits)) {
      const LaneRanges ranges(waits ? words : 0);
      const bool taken = waits && ranges.end() <= kStageWords;
      bring_in(taken ? words : 0, from);
      wait_for_epoch();
      const Bytes frame = {stage_.input + ranges.begin() * 16 + slot.offset % 16, slot.size};
      const bool lone_get = serve_lone_get(frame, taken);
      serve_others(frame, slot.offset, taken && !lone_get);
      waits = waits && !taken;
    }
    if (here) job_.packets[first + lane_id()] = result_;
    const PacketState state = result_.state();
    const bool undone = here && state != PacketState::kDone && state != PacketState::kDropped;
    const uint32_t count_undone = __popc(__ballot_sync(kAllLanes, undone));
    if (lane_id() == 0 && count_undone != 0) atomicAdd(&tally_.undone, count_undone);
  }

 private:
  // A lone get and what has been found.
  struct Lookup {
    wire::LoneGet request;
    QuickFound found;
    uint32_t size = 0;  // of the reply frame; 0: this is not for the short way
  };

  __device__ PacketSlot load_slot(uint32_t number) const {
    if (job_.slots == nullptr) return {number * job_.slot_bytes, job_.slot_bytes};
    const volatile PacketSlot& slot = job_.slots[number];
    return {slot.offset, slot.size};
  }

  // `words` of this lane's frame, from word `from` of the input on, come to the stage.
  __device__ void bring_in(uint32_t words, uint32_t from) {
    const auto* source = reinterpret_cast<const uint4*>(job_.input);
    auto* target = reinterpret_cast<uint4*>(stage_.input);
    __syncwarp();
    LaneRanges(words).for_each(
        from, [source](uint32_t at) { return load_from_host(source + at); },
        [target](uint32_t at, const uint4& word) { target[at] = word; });
    __syncwarp();
  }

  __device__ Lookup look_up(Bytes frame) const;
  __device__ bool serve_lone_get(Bytes frame, bool here);
  __device__ void serve_others(Bytes frame, uint32_t offset, bool here);
  __device__ void compose(const Lookup& lookup, const uint8_t* frame, uint8_t* out, bool mine);
  __device__ void count(uint32_t hits, uint32_t misses);
  // REQUIRES: it is a hit.
  __device__ static const uint8_t* value_of(const Lookup& lookup) {
    return lookup.found.item->key_data() + lookup.request.key_size;
  }

  const BlockResources& resources_;
  const store::Core& core_;
  const PacketJob& job_;
  WarpStage& stage_;
  Tally& tally_;
  // As they were when the block began. A younger index only makes the search longer, and what was
  // flushed since takes the general way.
  uint32_t pairs_;
  uint32_t flush_generation_;
  PacketResult result_ = {};  // of the lane's packet
};

// Called by one lane.
__device__ inline PacketChunk::Lookup PacketChunk::look_up(Bytes frame) const {
  Lookup lookup;
  if (reinterpret_cast<uintptr_t>(frame.data) % 4 != 0) return lookup;
  const auto size = static_cast<uint32_t>(frame.size);
  lookup.request = wire::parse_lone_get(frame.data, size, job_.udp_port);
  const uint32_t key_size = lookup.request.key_size;
  if (key_size == 0) return lookup;
  const uint8_t* const key = frame.data + wire::kLoneKeyOffset;
  const uint64_t hash = hash_key(core_.seed, {key, key_size});
  lookup.found = quick_find(core_, pairs_, hash, key, key_size);
  const QuickFound& found = lookup.found;
  if (found.item == nullptr) {
    if (!chunk_detail::is_there(core_, hash, {key, key_size})) {
      lookup.size = wire::kEthernetFrameMin;
    }
    return lookup;
  }
  const bool expired = found.expiry != 0 && found.expiry <= job_.clock.now;
  if (expired || found.flush_generation != flush_generation_ || found.chained()) return lookup;
  const uint32_t reply = wire::lone_hit_size(lookup.request, found.client_flags, found.value_size);
  if (found.value_size > wire::kUdpPayloadMax || reply > kLoneReplyMax) return lookup;
  quick_record_hit(found, job_.clock.now);
  lookup.size = reply;
  return lookup;
}

// Returns whether this lane's packet has been worked off.
__device__ inline bool PacketChunk::serve_lone_get(Bytes frame, bool here) {
  Lookup lookup;
  if (here) lookup = look_up(frame);
  const bool lone = lookup.size != 0;
  const uint32_t words = (lookup.size + 15) / 16;
  bool waits = lone;
  while (__any_sync(kAllLanes, waits)) {
    const LaneRanges room(waits ? words : 0);
    const bool mine = waits && room.end() <= kStageWords;
    const uint32_t total = __reduce_max_sync(kAllLanes, mine ? room.end() : 0);
    // The place is asked for before it is needed.
    uint32_t base = 0;
    uint32_t fits = 0;
    if (lane_id() == 0) fits = ReplyArena(job_).take(total, 0, &base) ? 1 : 0;
    compose(lookup, frame.data, stage_.reply + room.begin() * 16, mine);
    base = __shfl_sync(kAllLanes, base, 0);
    const bool sent = __shfl_sync(kAllLanes, fits, 0) != 0;
    if (sent) send_staged(job_, stage_, total, base);
    if (mine) {
      result_ = sent ? PacketResult::done((base + room.begin()) * 16, lookup.size)
                     : PacketResult::not_done(PacketState::kNoReplySpace);
    }
    waits = waits && !mine;
  }
  const uint32_t hits = __popc(__ballot_sync(kAllLanes, lone && lookup.found.item != nullptr));
  const uint32_t all = __popc(__ballot_sync(kAllLanes, lone));
  if (lane_id() == 0 && all != 0) count(hits, all - hits);
  return lone;
}

// What is no lone get.
__device__ inline void PacketChunk::serve_others(Bytes frame, uint32_t offset, bool here) {
  if (!__any_sync(kAllLanes, here)) return;
  PacketResult result = {};
  const bool set =
      chunk_detail::run_lone_sets(resources_, job_, stage_, tally_, frame, offset, here, result);
  if (set) result_ = result;
  const bool general = here && !set;
  if (!__any_sync(kAllLanes, general)) return;
  result = chunk_detail::run_general(resources_, job_, stage_, tally_, frame, offset, general);
  if (general) result_ = result;
}

// The reply frames of the lanes that have room in the stage (`mine`), this one's at `out`.
__device__ inline void PacketChunk::compose(const Lookup& lookup, const uint8_t* frame,
                                            uint8_t* out, bool mine) {
  const QuickFound& found = lookup.found;
  const bool hit = mine && found.item != nullptr;
  uint8_t* place = nullptr;
  if (hit) {
    place = wire::compose_lone_hit(frame, lookup.request, found.client_flags, found.value_size,
                                   lookup.size, out);
    if (found.value_size <= kLaneValueMax) {
      quick_copy(place, value_of(lookup), found.value_size);
    }
  } else if (mine) {
    (void)wire::compose_lone_miss(frame, lookup.request, out);
  }
  uint32_t long_ones = __ballot_sync(kAllLanes, hit && found.value_size > kLaneValueMax);
  for (; long_ones != 0; long_ones &= long_ones - 1) {
    const int owner = __ffs(static_cast<int>(long_ones)) - 1;
    const auto from =
        __shfl_sync(kAllLanes, hit ? reinterpret_cast<uint64_t>(value_of(lookup)) : 0, owner);
    const auto to = __shfl_sync(kAllLanes, reinterpret_cast<uint64_t>(place), owner);
    const uint32_t size = __shfl_sync(kAllLanes, found.value_size, owner);
    quick_copy_by_warp(reinterpret_cast<uint8_t*>(to), reinterpret_cast<const uint8_t*>(from),
                       size);
  }
  __syncwarp();
  if (hit) wire::finish_lone_hit(lookup.request, lookup.size, out);
  __syncwarp();
}

// Called by one lane.
__device__ inline void PacketChunk::count(uint32_t hits, uint32_t misses) {
  tally_.counters.add(request::Counter::kCmdGet, hits + misses);
  if (hits != 0) tally_.counters.add(request::Counter::kGetHits, hits);
  if (misses != 0) tally_.counters.add(request::Counter::kGetMisses, misses);
}

}  // namespace warpcache::engine::cuda
