// SPDX-License-Identifier: Apache-2.0
//
// A set of the index: 16 ways in three cache lines. Line 0 has the tags and the state of the set;
// lines 1 and 2 have the slots. Two neighbouring sets are a pair, the bucket of linear hashing. One
// of them is the home of a key; a full home spills into the other, and then into overflow sets.
//
// Words change only under the pair's lock (in the even set), except the access counters, which are
// hints. Readers take no lock.
//
// Bits of a key's hash:
//   0 and up   number of the pair: as many bits as the index is deep
//   8 to 23    also kept in the slot, so that a split of the levels 8 to 23 reads no item
//   24 to 38   ghost: what the home set remembers of an evicted item
//   40 to 55   tag; its top bit (55) says which set of the pair is the home
//   56 to 63   unused
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/hd.h"
#include "store/layout/item.h"

#if defined(__SSE2__) && !defined(__CUDA_ARCH__)
#include <emmintrin.h>
#endif

namespace warpcache::store {

inline constexpr uint32_t kWays = 16;

// --- Slots: 40 bits of offset in granules, 8 bits of size in cache lines (saturating), 16 hash
// bits. 0: empty.

using Slot = uint64_t;

inline constexpr uint32_t kSlotOffsetBits = 40;
inline constexpr uint32_t kSlotHashFirstBit = 8;  // of the hash
inline constexpr uint32_t kSlotHashBits = 16;
inline constexpr uint64_t kSlotOffsetMask = (uint64_t{1} << kSlotOffsetBits) - 1;

inline constexpr uint32_t kSlotLinesMax = 255;  // this value: as many or more

WC_HD inline uint64_t slot_hash_bits(uint64_t hash) { return (hash >> kSlotHashFirstBit) & 0xffff; }

WC_HD inline Slot make_slot(uint64_t offset, uint64_t bytes, uint64_t hash) {
  const uint64_t lines = (bytes + 63) / 64;
  const uint64_t size_class = lines < kSlotLinesMax ? lines : kSlotLinesMax;
  return offset / kItemGranule | size_class << kSlotOffsetBits | slot_hash_bits(hash) << 48;
}

WC_HD inline uint64_t slot_offset(Slot slot) { return (slot & kSlotOffsetMask) * kItemGranule; }
WC_HD inline uint32_t slot_lines(Slot slot) {
  return static_cast<uint32_t>(slot >> kSlotOffsetBits) & 0xff;
}
WC_HD inline bool slot_fits(Slot slot, uint64_t hash) {
  return slot != 0 && slot >> 48 == slot_hash_bits(hash);
}

// --- Tags. The tag of an empty way is 0. A key whose tag would be 0 gets 1; the home bit is kept.

WC_HD inline uint16_t tag_of(uint64_t hash) {
  const uint16_t tag = static_cast<uint16_t>(hash >> 40);
  return (tag & 0x7fff) != 0 ? tag : static_cast<uint16_t>(tag | 1);
}
WC_HD inline uint32_t home_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 55) & 1; }
WC_HD inline uint32_t home_of_tag(uint16_t tag) { return tag >> 15; }

// --- Ghosts: up to eight of 16 bits a set, 15 of the hash and one that says which generation the
// item was in. A stranger's ghost is taken for a key's own about once in 4000 times; it then stays
// a little longer.

inline constexpr uint32_t kGhostsMax = 8;  // of a set
inline constexpr uint64_t kGhostOfMain = 0x8000;

WC_HD inline uint64_t ghost_of(uint64_t hash) {
  const uint64_t ghost = hash >> 24 & 0x7fff;
  return ghost != 0 ? ghost : 1;
}

// Whether a set remembers a key, and from which generation it was evicted.
enum class Remembered : uint32_t { kNot, kYoung, kMain };

// --- Set::state

// One word, so that one load gives a look-up all of it:
inline constexpr uint32_t kStateDepthMask = 0xff;  // levels split beyond the index's first size
inline constexpr uint32_t kStateSpilled =
    1u << 8;  // keys with this home may be in the other set or in overflow
inline constexpr uint32_t kStateVersion = 1u << 9;  // bits 9..31 count moves of keys

struct alignas(64) Set {
  uint64_t tags[kWays / 4];
  uint32_t lock;       // of the pair, in its even set
  uint32_t state;      // kState...
  uint32_t counters;   // two bits a way
  uint32_t overflow;   // number of the pair's first overflow set (in its even set), or of the next
                       // (in an overflow set)
  uint64_t ghosts[2];  // of the items that were evicted last; the newest is the lowest. 0: none
  Slot slots[kWays];

  WC_HD uint16_t tag(uint32_t way) const {
    return static_cast<uint16_t>(load_relaxed(&tags[way / 4]) >> (16 * (way % 4)));
  }
  // REQUIRES: the pair's lock is held.
  WC_HD void set_tag(uint32_t way, uint16_t tag) {
    uint64_t* word = &tags[way / 4];
    const uint32_t shift = 16 * (way % 4);
    store_release(word,
                  (load_relaxed(word) & ~(uint64_t{0xffff} << shift)) | uint64_t{tag} << shift);
  }
  WC_HD uint32_t counter(uint32_t way) const { return load_relaxed(&counters) >> (2 * way) & 3; }
  WC_HD void set_counter(uint32_t way, uint32_t value) {
    const uint32_t word = load_relaxed(&counters);
    store_relaxed(&counters, (word & ~(3u << (2 * way))) | value << (2 * way));
  }
  // Remembers that a key with this home was evicted: `ghost` is ghost_of() its hash, with
  // kGhostOfMain where it was in main. All but the newest `keep` (1 to kGhostsMax) are forgotten.
  // REQUIRES, as the next: the pair's lock is held.
  WC_HD void add_ghost(uint64_t ghost, uint32_t keep) {
    const uint64_t newer = load_relaxed(&ghosts[0]);
    const uint64_t older = load_relaxed(&ghosts[1]) << 16 | newer >> 48;
    const uint32_t forgotten = 16 * (kGhostsMax - keep);  // bits
    constexpr uint64_t kAll = ~uint64_t{0};
    store_relaxed(&ghosts[1], forgotten < 64 ? older & kAll >> forgotten : 0);
    store_relaxed(&ghosts[0],
                  (newer << 16 | ghost) & (forgotten < 64 ? kAll : kAll >> (forgotten - 64)));
  }
  // Forgets the ghost of an item, of either generation.
  WC_HD Remembered take_ghost(uint64_t ghost) {
    constexpr uint64_t kOnes = 0x0001000100010001;
    for (uint64_t& word : ghosts) {
      const uint64_t ghosts_here = load_relaxed(&word);
      const uint64_t zero_at = (ghosts_here ^ ghost * kOnes) & ~(kOnes * kGhostOfMain);
      // The lowest bit that is set belongs to the first part that is 0.
      const uint64_t found = (zero_at - kOnes) & kOnes * kGhostOfMain;
      if (found == 0) continue;
      const uint64_t bit = found & (~found + 1);
      store_relaxed(&word, ghosts_here & ~(bit | (bit - (bit >> 15))));
      return (ghosts_here & bit) != 0 ? Remembered::kMain : Remembered::kYoung;
    }
    return Remembered::kNot;
  }
};
static_assert(sizeof(Set) == 192);
static_assert(offsetof(Set, slots) == 64);
static_assert(std::is_trivially_copyable_v<Set>);

// The words of Set::tags.
struct Tags {
  uint64_t words[kWays / 4];
};

// The ways whose tag is `tag`, as a bit mask.
WC_HD inline uint32_t match_tag(const Tags& tags, uint16_t tag) {
  const uint64_t(&words)[kWays / 4] = tags.words;
#if defined(__CUDA_ARCH__)
  const uint32_t wanted = tag | uint32_t{tag} << 16;
  uint32_t mask = 0;
  WC_UNROLL
  for (uint32_t i = 0; i < kWays / 2; ++i) {
    const uint32_t equal = __vcmpeq2(static_cast<uint32_t>(words[i / 2] >> (32 * (i % 2))), wanted);
    mask |= ((equal & 1) | (equal >> 15 & 2)) << (2 * i);
  }
  return mask;
#elif defined(__SSE2__)
  const __m128i wanted = _mm_set1_epi16(static_cast<int16_t>(tag));
  const __m128i low =
      _mm_set_epi64x(static_cast<int64_t>(words[1]), static_cast<int64_t>(words[0]));
  const __m128i high =
      _mm_set_epi64x(static_cast<int64_t>(words[3]), static_cast<int64_t>(words[2]));
  const __m128i equal =
      _mm_packs_epi16(_mm_cmpeq_epi16(low, wanted), _mm_cmpeq_epi16(high, wanted));
  return static_cast<uint32_t>(_mm_movemask_epi8(equal));
#else
  uint32_t mask = 0;
  for (uint32_t way = 0; way < kWays; ++way) {
    if (static_cast<uint16_t>(words[way / 4] >> (16 * (way % 4))) == tag) mask |= 1u << way;
  }
  return mask;
#endif
}

// Likewise, of a set in memory. Loads with acquire: later loads see at least this state.
WC_HD inline uint32_t match_tag(const Set& set, uint16_t tag) {
  Tags tags;
  WC_UNROLL
  for (uint32_t i = 0; i < kWays / 4; ++i) tags.words[i] = load_acquire(&set.tags[i]);
  return match_tag(tags, tag);
}

// Likewise, for a holder of the pair's lock, under which no tag changes: a device issues all loads
// before the first has arrived.
WC_HD inline uint32_t match_tag_locked(const Set& set, uint16_t tag) {
  Tags tags;
  WC_UNROLL
  for (uint32_t i = 0; i < kWays / 4; ++i) tags.words[i] = load_relaxed(&set.tags[i]);
  return match_tag(tags, tag);
}

// The lowest way in `mask`. REQUIRES: mask != 0.
WC_HD inline uint32_t first_way(uint32_t mask) { return lowest_bit(mask); }

}  // namespace warpcache::store
