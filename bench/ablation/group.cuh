// SPDX-License-Identifier: Apache-2.0
//
// A group of kLanes neighbouring lanes of a warp works on one request: look-up and reply, divided
// among its lanes where possible. With one lane it is the server's own code. All lanes of the warp
// call every function, also those without a request: votes and shuffles involve the whole warp.
//
// Nobody writes to the store meanwhile and nothing is reclaimed, so no epoch is needed.
//
// Device code.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/cuda/packets/past_l1.cuh"
#include "gpu/warp.cuh"
#include "protocol/single_key/get.h"

namespace warpcache::ablation {

using engine::cuda::past_l1_detail::load_past_l1;
using engine::cuda::past_l1_detail::same_key;
using gpu::kAllLanes;
using gpu::lane_id;
using Found = engine::cuda::PastL1::Found;

inline constexpr uint32_t kKeyPhase = protocol::kSingleKeyOffset % 4;

// Read when a kernel begins; nobody changes them.
struct StoreFacts {
  uint32_t pairs;
  uint32_t flush_generation;

  __device__ explicit StoreFacts(const store::Core& core)
      : pairs(load_relaxed(&core.shared->pair_count)),
        flush_generation(load_relaxed(&core.shared->flush_generation)) {}
};

// Bytes of the reply frame; 0: it is no hit that can be answered.
__device__ inline uint32_t reply_size(const protocol::SingleKeyGet& request, const Found& found,
                                      const StoreFacts& facts, uint32_t now, uint32_t room) {
  if (found.item == nullptr || found.chained()) return 0;
  if (store::has_expired(found.expiry, now) || found.flush_generation != facts.flush_generation)
    return 0;
  const uint32_t size =
      protocol::single_key_hit_size(request, found.client_flags, found.value_size);
  return size <= room ? size : 0;
}

// An item and the contents of its header.
__device__ inline Found header_of(store::Item* item) {
  const uint4 first = load_past_l1(item);
  const uint4 second = load_past_l1(reinterpret_cast<const uint8_t*>(item) + 16);
  Found found;
  found.take_header(item, first, second);
  return found;
}

// The reply frame of `size` bytes at `out`, by one lane.
__device__ inline void compose_alone(const protocol::SingleKeyGet& request, const Found& found,
                                     const uint8_t* frame, uint32_t size, uint8_t* out) {
  uint8_t* const place = protocol::compose_single_key_hit(frame, request, found.client_flags,
                                                          found.value_size, size, out);
  engine::cuda::copy_past_l1(place, found.item->key_data() + request.key_size, found.value_size);
  protocol::finish_single_key_hit(request, size, out);
}

template <uint32_t kLanes>
class Group {
 public:
  static_assert(kLanes >= 1 && kLanes <= 32 && (kLanes & (kLanes - 1)) == 0);
  static constexpr uint32_t kCount = gpu::kWarpSize / kLanes;  // groups of a warp

  __device__ static uint32_t number() { return lane_id() / kLanes; }
  __device__ static uint32_t lane() { return lane_id() % kLanes; }

  // Finds the key of `request`, read from `frame`, if it is in its home set. All lanes of the group
  // get the result. Without a key nothing is found.
  __device__ static Found find(const store::Core& core, uint32_t pairs,
                               const protocol::SingleKeyGet& request, const uint8_t* frame);
  // The reply frame of `size` bytes at `out`; nothing if that is 0. All of it is written when this
  // returns.
  __device__ static void compose(const protocol::SingleKeyGet& request, const Found& found,
                                 const uint8_t* frame, uint32_t size, uint8_t* out);

 private:
  __device__ static uint32_t own_matches(const store::Set* set, uint32_t tag);
  __device__ static bool own_part_differs(const uint8_t* stored, const uint8_t* key, uint32_t size);
  __device__ static void put_key(const uint8_t* frame, uint32_t size, uint8_t* out);
  // The bits of a vote that belong to this group.
  __device__ static uint32_t own(uint32_t votes) {
    return votes >> (lane_id() - lane()) & kAllLanes >> (32 - kLanes);
  }
};

// Of the ways that this lane reads, those with the tag.
template <uint32_t kLanes>
__device__ uint32_t Group<kLanes>::own_matches(const store::Set* set, uint32_t tag) {
  constexpr uint32_t kEach = kLanes < store::kWays ? store::kWays / kLanes : 1;
  if constexpr (kEach == 1) {
    if (lane() >= store::kWays) return 0;
    const auto* tags = reinterpret_cast<const unsigned int*>(set);
    const uint32_t two = __ldcg(tags + lane() / 2);
    return (two >> (16 * (lane() % 2)) & 0xffff) == tag ? 1u << lane() : 0;
  } else {
    using Words =
        std::conditional_t<kEach == 8, uint4, std::conditional_t<kEach == 4, uint2, unsigned int>>;
    const Words loaded = __ldcg(reinterpret_cast<const Words*>(set) + lane());
    uint32_t words[kEach / 2];
    memcpy(words, &loaded, sizeof(words));
    uint32_t mask = 0;
#pragma unroll
    for (uint32_t i = 0; i < kEach / 2; ++i) {
      const uint32_t equal = __vcmpeq2(words[i], tag | tag << 16);
      mask |= ((equal & 1) | (equal >> 15 & 2)) << (2 * i);
    }
    return mask << (lane() * kEach);
  }
}

// Lanes compare pieces of 16 bytes, one after the other. See past_l1_detail::same_key().
template <uint32_t kLanes>
__device__ bool Group<kLanes>::own_part_differs(const uint8_t* stored, const uint8_t* key,
                                                uint32_t size) {
  bool differs = false;
  for (uint32_t at = lane() * 16; at < size; at += kLanes * 16) {
    const uint32_t piece = size - at < 16 ? size - at : 16;
    const uint4 first = load_past_l1(stored + at);
    if (!same_key(stored + at, first, key + at, piece, kKeyPhase)) differs = true;
  }
  return differs;
}

// Each lane reads the slots of its own ways; the group then checks one candidate after the other.
// There is seldom a second one.
template <uint32_t kLanes>
__device__ Found Group<kLanes>::find(const store::Core& core, uint32_t pairs,
                                     const protocol::SingleKeyGet& request, const uint8_t* frame) {
  const uint32_t key_size = request.key_size;
  const uint8_t* const key = frame + protocol::kSingleKeyOffset;
  bool searches = key_size != 0;
  const uint64_t hash = searches ? hash_key(core.seed, {key, key_size}) : 0;
  if constexpr (kLanes == 1) {
    return searches ? engine::cuda::find_past_l1(core, pairs, hash,
                                                 protocol::SingleKeyBytes{{key, key_size}})
                    : Found{};
  }
  store::Set* const set = store::pair_at(core, store::pair_of(hash, pairs)) + store::home_of(hash);
  uint32_t ways = searches ? own_matches(set, store::tag_of(hash)) : 0;
  const uint32_t counters = searches ? __ldcg(&set->counters) : 0;
  Found found;
  store::Slot slot = 0;  // candidate of this lane; 0: none
  uint32_t way = 0;
  while (__any_sync(kAllLanes, searches)) {
    for (; slot == 0 && ways != 0; ways &= ways - 1) {
      way = store::first_way(ways);
      slot = __ldcg(reinterpret_cast<const unsigned long long*>(&set->slots[way]));
      if (!store::slot_fits(slot, hash)) slot = 0;
    }
    const uint32_t candidates = own(__ballot_sync(kAllLanes, slot != 0));
    const uint32_t owner = candidates != 0 ? store::first_way(candidates) : 0;
    const uint32_t owner_lane = lane_id() - lane() + owner;
    const store::Slot chosen = __shfl_sync(kAllLanes, slot, owner_lane);
    const uint32_t chosen_way = __shfl_sync(kAllLanes, way, owner_lane);
    bool differs = true;
    if (searches && candidates != 0) {
      found = header_of(core.item_in(chosen));
      // If the header says this key size, a key of that size follows it.
      differs =
          found.key_size() != key_size || own_part_differs(found.item->key_data(), key, key_size);
    }
    const bool same = own(__ballot_sync(kAllLanes, differs)) == 0;
    if (searches && same) {
      found.set = set;
      found.way = chosen_way;
      found.set_counters = counters;
    } else if (searches) {
      found.item = nullptr;
    }
    if (same || candidates == 0) {
      searches = false;
      ways = 0;
      slot = 0;
    } else if (lane() == owner) {
      slot = 0;
    }
  }
  return found;
}

// Four bytes for each lane. The key begins at a multiple of 4 in the reply, and two bytes after one
// in the request. No byte after the key is written: it belongs to another lane.
template <uint32_t kLanes>
__device__ void Group<kLanes>::put_key(const uint8_t* frame, uint32_t size, uint8_t* out) {
  static_assert((protocol::single_key::kPayload + 6) % 4 == 0);
  const auto* words = reinterpret_cast<const uint32_t*>(frame + protocol::kSingleKeyOffset - 2);
  for (uint32_t i = lane(); i < (size + 3) / 4; i += kLanes) {
    const uint32_t next = 4 * i + 2 < size ? words[i + 1] : 0;
    const uint32_t word = __funnelshift_r(words[i], next, 16);
    if (4 * i + 4 <= size) {
      reinterpret_cast<uint32_t*>(out)[i] = word;
    } else {
      for (uint32_t b = 0; 4 * i + b < size; ++b) {
        out[4 * i + b] = static_cast<uint8_t>(word >> (8 * b));
      }
    }
  }
}

// Writes what follows the key, without the value; returns the place of the value.
__device__ inline uint8_t* put_around_value(const Found& found, uint8_t* at) {
  using namespace protocol::single_key;
  *at++ = ' ';
  at = put_number(found.client_flags, digits_of(found.client_flags), at);
  *at++ = ' ';
  at = put_number(found.value_size, digits_of(found.value_size), at);
  *at++ = '\r';
  *at++ = '\n';
  (void)put(at + found.value_size, "\r\nEND\r\n");
  return at;
}

__device__ inline void put_value_word(uint8_t* out) {
  using namespace protocol::single_key;
  put16(out, kPayload, 'V' | 'A' << 8);
  put16(out, kPayload + 2, 'L' | 'U' << 8);
  put16(out, kPayload + 4, 'E' | ' ' << 8);
}

template <uint32_t kLanes>
__device__ void Group<kLanes>::compose(const protocol::SingleKeyGet& request, const Found& found,
                                       const uint8_t* frame, uint32_t size, uint8_t* out) {
  using namespace protocol::single_key;
  const bool hit = size != 0;
  if constexpr (kLanes == 1) {
    if (hit) compose_alone(request, found, frame, size, out);
    __syncwarp();
    return;
  }
  if (hit) {
    uint8_t* const key = out + kPayload + 6;
    put_key(frame, request.key_size, key);
    const uint8_t* const value = found.item->key_data() + request.key_size;
    uint8_t* const place = key + request.key_size + 2 + digits_of(found.client_flags) +
                           digits_of(found.value_size) + 2;
    for (uint32_t at = lane(); at < found.value_size; at += kLanes) {
      place[at] = __ldcg(value + at);
    }
    if (lane() == 0) {
      put_headers(frame, size, out);
      put_value_word(out);
      (void)put_around_value(found, key + request.key_size);
    }
  }
  __syncwarp();
  if (hit && lane() == 0) protocol::finish_single_key_hit(request, size, out);
  __syncwarp();
}

}  // namespace warpcache::ablation
