// SPDX-License-Identifier: Apache-2.0
//
// How packets read the store: a memory policy for look-ups (store/index/index.h) that takes the
// fewest memory steps. All loads are of up to 16 bytes, bypass the first-level cache and read where
// writers publish, and each depends on the one before it: a set's first line, a slot, the item. So
// an item reached this way is complete: its writer has finished it before it wrote the slot. (An
// acquiring load would also empty that cache, in every lane and step.) A key that is not found may
// have moved meanwhile: only store::find_key() is certain.
//
// Device code.
#pragma once

#include <cstdint>

#include "store/index/index.h"

namespace warpcache::engine::cuda {

namespace past_l1_detail {

__device__ inline uint4 load_past_l1(const void* from) {
  return __ldcg(static_cast<const uint4*>(from));
}

__device__ inline uint64_t join(uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; }

// `stored` is a multiple of 16; `four` are its first 16 bytes. `key` has `size` bytes, and is as
// WordBytes says for `phase`.
__device__ inline bool same_key(const uint8_t* stored, uint4 four, const uint8_t* key,
                                uint32_t size, uint32_t phase) {
  const auto* words = reinterpret_cast<const uint32_t*>(key - phase);
  uint32_t differ = 0;
  uint32_t half = words[0];
  for (uint32_t at = 0; at < size; at += 16) {
    if (at != 0) four = load_past_l1(stored + at);
    const uint32_t theirs[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t begin = at + 4 * i;
      if (begin >= size) break;
      const uint32_t next = begin + 4 - phase < size ? words[begin / 4 + 1] : 0;
      uint32_t difference = theirs[i] ^ __funnelshift_r(half, next, 8 * phase);
      if (size - begin < 4) difference &= 0xffffffffu >> (8 * (4 - (size - begin)));
      differ |= difference;
      half = next;
    }
  }
  return differ == 0;
}

// The address of a key above a multiple of 4.
template <uint32_t kPhase>
__device__ inline uint32_t phase_of(const WordBytes<kPhase>& /*key*/) {
  return kPhase;
}
__device__ inline uint32_t phase_of(const Bytes& key) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(key.data) % 4);
}

}  // namespace past_l1_detail

struct PastL1 {
  // A key that was found, and the words of set and item that were loaded on the way. REQUIRES: as
  // store::Found.
  struct Found {
    store::Item* item = nullptr;
    store::Set* set = nullptr;
    uint32_t way = 0;
    uint32_t set_counters = 0;  // Set::counters
    uint32_t expiry = 0;
    uint32_t last_access = 0;
    uint32_t value_size = 0;
    uint32_t client_flags = 0;
    uint32_t flush_generation = 0;
    uint32_t marks = 0;  // key size, bits, layout and `dropped` of the item, lowest byte first

    __device__ explicit operator bool() const { return item != nullptr; }
    __device__ uint32_t counters() const { return set_counters; }
    __device__ uint32_t access_time() const { return last_access; }
    __device__ bool fetched() const { return (marks >> 8 & store::kItemFetched) != 0; }
    __device__ bool chained() const {
      return static_cast<store::Layout>(marks >> 16 & 0xff) == store::Layout::kChained;
    }
    __device__ uint32_t key_size() const { return marks & 0xff; }

    // Fills the fields from the first 32 bytes of an item.
    __device__ void take_header(store::Item* from, const uint4& first, const uint4& second) {
      item = from;
      expiry = first.z;
      last_access = first.w;
      value_size = second.x;
      client_flags = second.y;
      flush_generation = second.z;
      marks = second.w;
    }
  };

  // The first line of a set.
  class Line {
   public:
    __device__ explicit Line(const store::Set* set) {
      const auto* const line = reinterpret_cast<const uint8_t*>(set);
      low_ = past_l1_detail::load_past_l1(line);
      high_ = past_l1_detail::load_past_l1(line + 16);
      words_ = past_l1_detail::load_past_l1(line + offsetof(store::Set, lock));
    }
    __device__ uint32_t match(uint16_t tag) const {
      using past_l1_detail::join;
      const store::Tags tags = {{join(low_.x, low_.y), join(low_.z, low_.w), join(high_.x, high_.y),
                                 join(high_.z, high_.w)}};
      return store::match_tag(tags, tag);
    }
    __device__ uint32_t state() const { return words_.y; }
    __device__ uint32_t counters() const { return words_.z; }
    __device__ uint32_t overflow() const { return words_.w; }

   private:
    uint4 low_;
    uint4 high_;
    uint4 words_;
  };

  __device__ static store::Slot load_slot(const store::Slot* slot) {
    return __ldcg(reinterpret_cast<const unsigned long long*>(slot));
  }

  // Sets `found` and returns true if the item has the key.
  template <typename Key>
  __device__ static bool match_item(store::Item* item, const Key& key, store::Set* set,
                                    uint32_t way, const Line& line, Found& found) {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(item);
    const uint4 first = past_l1_detail::load_past_l1(bytes);
    const uint4 second = past_l1_detail::load_past_l1(bytes + 16);
    // Every item has at least these bytes.
    const uint4 third = past_l1_detail::load_past_l1(bytes + sizeof(store::Item));
    const auto size = static_cast<uint32_t>(key.size);
    if ((second.w & 0xff) != size) return false;
    const uint32_t phase = past_l1_detail::phase_of(key);
    if (!past_l1_detail::same_key(bytes + sizeof(store::Item), third, key.data, size, phase)) {
      return false;
    }
    found.set = set;
    found.way = way;
    found.set_counters = line.counters();
    found.take_header(item, first, second);
    return true;
  }
};
static_assert(offsetof(store::Set, lock) == 32 && offsetof(store::Set, state) == 36 &&
              offsetof(store::Set, counters) == 40 && offsetof(store::Set, overflow) == 44);
static_assert(offsetof(store::Item, expiry) == 8 && offsetof(store::Item, access_time) == 12 &&
              offsetof(store::Item, value_size) == 16 &&
              offsetof(store::Item, client_flags) == 20 &&
              offsetof(store::Item, flush_generation) == 24 &&
              offsetof(store::Item, key_size) == 28 && offsetof(store::Item, bits) == 29 &&
              offsetof(store::Item, layout) == 30);

// Looks a key up without a lock. `pairs`: any earlier value of Shared::pair_count. `key`:
// WordBytes, or Bytes of which the memory from the multiple of 4 before them to that after them can
// be read.
template <typename Key>
__device__ inline PastL1::Found find_past_l1(const store::Core& core, uint32_t pairs, uint64_t hash,
                                             const Key& key) {
  store::Set* const pair = store::pair_at(core, store::pair_of(hash, pairs));
  return store::find_in_pair<PastL1>(core, pair, hash, key);
}

// Copies `size` bytes of an item, also bypassing the cache, with one lane. `from` may be any
// address. For short values: it loads words, so that a value takes few loads, and stores bytes.
__device__ inline void copy_past_l1(uint8_t* out, const uint8_t* from, uint32_t size) {
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
