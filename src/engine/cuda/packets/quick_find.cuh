// SPDX-License-Identifier: Apache-2.0
//
// Looks a key up in the fewest memory steps: the first line of the home set, a slot, the item.
// Where keys of the home set have spilled, the same in the pair's other set, then in its overflow
// sets. All loads bypass the first-level cache and read where writers publish, and each depends on
// the one before it. So an item reached this way is complete: its writer has finished it before it
// wrote the slot. (An acquiring load would also empty that cache, in every lane and step.) A key
// that is not found may have moved meanwhile: only store::find_key() is certain.
//
// Device code.
#pragma once

#include <cstdint>

#include "store/index/index.h"

namespace warpcache::engine::cuda {

// A key that was found, and the words of set and item that were loaded on the way. REQUIRES: as
// store::Found.
struct QuickFound {
  store::Item* item = nullptr;
  store::Set* set = nullptr;
  uint32_t way = 0;
  uint32_t counters = 0;  // Set::counters
  uint32_t expiry = 0;
  uint32_t access_time = 0;
  uint32_t value_size = 0;
  uint32_t client_flags = 0;
  uint32_t flush_generation = 0;
  uint32_t marks = 0;  // key size, bits, layout and `dropped` of the item, lowest byte first

  // Fills the fields from the first 32 bytes of an item.
  __device__ void take_header(store::Item* from, const uint4& first, const uint4& second) {
    item = from;
    expiry = first.z;
    access_time = first.w;
    value_size = second.x;
    client_flags = second.y;
    flush_generation = second.z;
    marks = second.w;
  }
  __device__ bool chained() const {
    return static_cast<store::Layout>(marks >> 16 & 0xff) == store::Layout::kChained;
  }
  __device__ bool fetched() const { return (marks >> 8 & store::kItemFetched) != 0; }
};

namespace quick_detail {

__device__ inline uint4 load_past_l1(const void* from) {
  return __ldcg(static_cast<const uint4*>(from));
}

// The ways whose tag is `tag`: each word has two tags.
__device__ inline uint32_t matches(const uint4& low, const uint4& high, uint32_t tag) {
  const uint32_t wanted = tag | tag << 16;
  const uint32_t words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  uint32_t mask = 0;
#pragma unroll
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t equal = __vcmpeq2(words[i], wanted);
    mask |= ((equal & 1) | (equal >> 15 & 2)) << (2 * i);
  }
  return mask;
}

// `stored` is a multiple of 16. `key` is a multiple of 4 plus 2, and readable up to the next
// multiple of 4 after its end. `four`: the first 16 bytes of `stored`.
__device__ inline bool same_key(const uint8_t* stored, uint4 four, const uint8_t* key,
                                uint32_t size) {
  const auto* words = reinterpret_cast<const uint32_t*>(key - 2);
  uint32_t differ = 0;
  uint32_t half = words[0];
  for (uint32_t at = 0; at < size; at += 16) {
    if (at != 0) four = load_past_l1(stored + at);
    const uint32_t theirs[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t begin = at + 4 * i;
      if (begin >= size) break;
      const uint32_t next = begin + 2 < size ? words[begin / 4 + 1] : 0;
      uint32_t difference = theirs[i] ^ __funnelshift_r(half, next, 16);
      if (size - begin < 4) difference &= 0xffffffffu >> (8 * (4 - (size - begin)));
      differ |= difference;
      half = next;
    }
  }
  return differ == 0;
}

}  // namespace quick_detail

// `pairs`: any earlier value of Shared::pair_count. `key`: see same_key().
__device__ inline QuickFound quick_find(const store::Core& core, uint32_t pairs, uint64_t hash,
                                        const uint8_t* key, uint32_t key_size) {
  using quick_detail::load_past_l1;
  QuickFound found;
  store::Set* const pair = store::pair_at(core, store::pair_of(hash, pairs));
  store::Set* set = pair + store::home_of(hash);
  uint32_t overflow = 0;  // the overflow set after the pair's two sets
  // The home set, the other one, then the overflow sets.
#pragma unroll 1
  for (uint32_t step = 0; step < 2 + store::kOverflowChainMax; ++step) {
    const auto* const line = reinterpret_cast<const uint8_t*>(set);
    const uint4 low = load_past_l1(line);
    const uint4 high = load_past_l1(line + 16);
    const uint4 words = load_past_l1(line + offsetof(store::Set, lock));
    for (uint32_t mask = quick_detail::matches(low, high, store::tag_of(hash)); mask != 0;
         mask &= mask - 1) {
      const uint32_t way = store::first_way(mask);
      const store::Slot slot =
          __ldcg(reinterpret_cast<const unsigned long long*>(&set->slots[way]));
      if (!store::slot_fits(slot, hash)) continue;
      store::Item* const item = core.item_in(slot);
      const auto* const bytes = reinterpret_cast<const uint8_t*>(item);
      const uint4 first = load_past_l1(bytes);
      const uint4 second = load_past_l1(bytes + 16);
      const uint4 third = load_past_l1(bytes + sizeof(store::Item));  // every item has at least
                                                                      // these bytes
      if ((second.w & 0xff) != key_size) continue;
      if (!quick_detail::same_key(bytes + sizeof(store::Item), third, key, key_size)) continue;
      found.set = set;
      found.way = way;
      found.counters = words.z;
      found.take_header(item, first, second);
      return found;
    }
    if (step == 0 && (words.y & store::kStateSpilled) == 0) break;
    if (set == pair || step > 1) overflow = words.w;
    if (step == 0) {
      set = pair + (1 - store::home_of(hash));
    } else if (overflow != 0) {
      set = store::overflow_at(core, overflow);
    } else {
      break;
    }
  }
  return found;
}
static_assert(offsetof(store::Set, overflow) == 44);
static_assert(offsetof(store::Set, state) == 36);
static_assert(offsetof(store::Set, lock) == 32 && offsetof(store::Set, counters) == 40);
static_assert(offsetof(store::Item, expiry) == 8 && offsetof(store::Item, access_time) == 12 &&
              offsetof(store::Item, value_size) == 16 &&
              offsetof(store::Item, client_flags) == 20 &&
              offsetof(store::Item, flush_generation) == 24 &&
              offsetof(store::Item, key_size) == 28 && offsetof(store::Item, bits) == 29 &&
              offsetof(store::Item, layout) == 30);

// Notes the access, like StoreRef::record_hit().
__device__ inline void quick_record_hit(const QuickFound& found, uint32_t now) {
  const uint32_t shift = 2 * found.way;
  if ((found.counters >> shift & 3) < 3) {
    store_relaxed(&found.set->counters, found.counters + (1u << shift));
  }
  if (found.access_time != now) found.item->store_access_time(now);
  if (!found.fetched()) {
    atomicOr(reinterpret_cast<unsigned int*>(&found.item->key_size),
             static_cast<unsigned int>(store::kItemFetched) << 8);
  }
}

// Copies `size` bytes of an item, also bypassing the cache, with one lane. `from` may be any
// address.
__device__ inline void quick_copy(uint8_t* out, const uint8_t* from, uint32_t size) {
  const uint32_t skip = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) % 4);
  const auto* words = reinterpret_cast<const unsigned int*>(from - skip);
  const uint32_t count = (skip + size + 3) / 4;
#pragma unroll 4
  for (uint32_t i = 0; i < count; ++i) {
    const unsigned int word = __ldcg(words + i);
#pragma unroll
    for (uint32_t b = 0; b < 4; ++b) {
      const uint32_t at = 4 * i + b - skip;  // bytes before `from` get a number above `size`
      if (at < size) out[at] = static_cast<uint8_t>(word >> (8 * b));
    }
  }
}

}  // namespace warpcache::engine::cuda
