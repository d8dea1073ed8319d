// SPDX-License-Identifier: Apache-2.0
//
// Finding keys. The index lies at the low end of the arena, in blocks of 64 KiB: pairs of sets,
// then overflow sets, then the header of the block. Pairs are numbered through all blocks.
//
// The index grows by linear hashing: pair n is split off pair n - 2^level. The depth of a pair says
// how many bits of a hash its number stands for. A split fills the new pair, then raises the depth
// of the old pair, then removes the moved keys. So a reader that misses a moved key in the old pair
// sees the new depth afterwards, and looks in the new pair. Whenever keys move, they are in the new
// place before the state of a home set changes, and in the old place until after it. A hit is right
// wherever it was found.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/mem.h"
#include "store/layout/core.h"

namespace warpcache::store {

inline constexpr uint32_t kBlockSize = 64 * 1024;  // bytes
inline constexpr uint32_t kBlockPairs = 164;
inline constexpr uint32_t kBlockOverflowSets = 13;
inline constexpr uint32_t kBlockPairBytes = kBlockPairs * 2 * sizeof(Set);

// At the end of a block.
struct alignas(64) BlockHeader {
  uint64_t overflow_used;  // one bit an overflow set
  uint64_t reserved[7];
};
static_assert(kBlockPairBytes + kBlockOverflowSets * sizeof(Set) + sizeof(BlockHeader) ==
              kBlockSize);

// Overflow sets of one pair at most. At 24 keys a pair the probability that a ninth is needed is
// below 10^-30.
inline constexpr uint32_t kOverflowChainMax = 8;
// Look-ups without a lock that start again because keys moved. Each split adds one bit of depth, so
// a retry nearly always succeeds early; a look-up that does not takes the lock.
inline constexpr uint32_t kRedirectsMax = 128;

using PairNumber = uint32_t;

WC_HD inline Set* pair_at(const Core& core, PairNumber pair) {
  const uint64_t block = pair / kBlockPairs;
  const uint32_t place = pair % kBlockPairs;
  return reinterpret_cast<Set*>(core.arena + block * kBlockSize) + 2 * place;
}

// Overflow sets are numbered from 1.
WC_HD inline Set* overflow_at(const Core& core, uint32_t number) {
  const uint64_t block = (number - 1) / kBlockOverflowSets;
  const uint32_t place = (number - 1) % kBlockOverflowSets;
  return reinterpret_cast<Set*>(core.arena + block * kBlockSize + kBlockPairBytes) + place;
}

WC_HD inline BlockHeader* block_header(const Core& core, uint32_t block) {
  return reinterpret_cast<BlockHeader*>(core.arena + (uint64_t{block} + 1) * kBlockSize) - 1;
}

WC_HD inline uint32_t floor_log2(uint32_t value) {
#if defined(__CUDA_ARCH__)
  return 31 - static_cast<uint32_t>(__clz(static_cast<int>(value)));
#else
  return 31 - static_cast<uint32_t>(__builtin_clz(value));
#endif
}

// The pair of a hash in an index of `count` pairs.
WC_HD inline PairNumber pair_of(uint64_t hash, uint32_t count) {
  const uint64_t level = uint64_t{1} << floor_log2(count);
  const uint64_t fine = hash & (2 * level - 1);
  return static_cast<PairNumber>(fine < count ? fine : fine & (level - 1));
}

WC_HD inline uint32_t depth_in(const Core& core, uint32_t state) {
  return core.base_depth + (state & kStateDepthMask);
}

// The pair of a hash, as far as the state of a pair says.
WC_HD inline PairNumber pair_by_depth(const Core& core, uint64_t hash, uint32_t state) {
  return static_cast<PairNumber>(hash & ((uint64_t{1} << depth_in(core, state)) - 1));
}

// What locate() saw of a key without comparing it: where to look first, and what to prefetch.
struct Candidate {
  Set* set = nullptr;
  Slot slot = 0;  // 0: nothing seen
  uint32_t way = 0;
};

// A key that was found. `item` stays readable until the batch of the reader ends, whatever happens
// to the key.
struct Found {
  Item* item = nullptr;
  Set* set = nullptr;
  uint32_t way = 0;

  WC_HD explicit operator bool() const { return item != nullptr; }
};

WC_HD inline bool holds_key(const Item& item, Bytes key) {
  return item.key_size == key.size && mem_equal(item.key_data(), key.data, key.size);
}

WC_HD inline Found find_in_set(const Core& core, Set* set, uint64_t hash, Bytes key) {
  for (uint32_t mask = match_tag(*set, tag_of(hash)); mask != 0; mask &= mask - 1) {
    const uint32_t way = first_way(mask);
    const Slot slot = load_acquire(&set->slots[way]);
    if (!slot_fits(slot, hash)) continue;
    Item* item = core.item_in(slot);
    if (holds_key(*item, key)) return {item, set, way};
  }
  return {};
}

WC_HD inline Found find_in_overflow(const Core& core, const Set* pair, uint64_t hash, Bytes key) {
  uint32_t number = load_acquire(&pair->overflow);
  for (uint32_t i = 0; number != 0 && i < kOverflowChainMax; ++i) {
    Set* set = overflow_at(core, number);
    const Found found = find_in_set(core, set, hash, key);
    if (found) return found;
    number = load_acquire(&set->overflow);
  }
  return {};
}

// Finds the key in a pair, in either set or in overflow. REQUIRES: the pair's lock is held.
WC_HD inline Found find_in_pair(const Core& core, Set* pair, uint64_t hash, Bytes key) {
  Set* home = pair + home_of(hash);
  const Found found = find_in_set(core, home, hash, key);
  if (found) return found;
  if ((load_acquire(&home->state) & kStateSpilled) == 0) return {};
  const Found spilled = find_in_set(core, pair + (1 - home_of(hash)), hash, key);
  return spilled ? spilled : find_in_overflow(core, pair, hash, key);
}

// The next pair to look in, after one whose state says that the key is deeper. The depth of that
// pair alone is right for one level only: a reader that was paused while the index doubled would go
// to a pair that does not exist yet. So the number of all pairs decides first; if it leads to the
// same pair, this pair is being split.
WC_HD inline PairNumber next_pair(const Core& core, uint64_t hash, PairNumber number,
                                  PairNumber deeper) {
  const PairNumber current = pair_of(hash, load_acquire(&core.shared->pair_count));
  return current != number ? current : deeper;
}

// Locks the pair that a hash belongs to now. `number`: the pair that it belonged to at any earlier
// time.
WC_HD inline Set* lock_pair_from(const Core& core, uint64_t hash, PairNumber number) {
  for (uint32_t redirects = 0; redirects < kRedirectsMax; ++redirects) {
    Set* pair = pair_at(core, number);
    spin_lock(&pair->lock);
    const PairNumber deeper = pair_by_depth(core, hash, load_relaxed(&pair->state));
    if (deeper == number) return pair;
    spin_unlock(&pair->lock);
    number = next_pair(core, hash, number, deeper);
  }
  WC_ASSERT(false);
  return nullptr;
}

WC_HD inline Set* lock_pair(const Core& core, uint64_t hash) {
  return lock_pair_from(core, hash, pair_of(hash, load_acquire(&core.shared->pair_count)));
}

WC_HD inline void unlock_pair(Set* pair) { spin_unlock(&pair->lock); }

// No key has moved between the two states.
WC_HD inline bool same_places(uint32_t before, uint32_t after) {
  return ((before ^ after) & ~kStateSpilled) == 0;
}

// Looks a key up without a lock. REQUIRES: the caller is in its epoch and holds no lock of a pair.
//
// A miss counts only if depth and version of the home set were the same before the first look and
// after the last. Then no key moved meanwhile, neither to a new pair nor from overflow into a free
// way. (A key that is deleted and added again during the search may be missed: for a moment it did
// not exist.)
//
// `number`: the pair that the hash belonged to at any earlier time.
WC_HD inline Found find_key_from(const Core& core, uint64_t hash, Bytes key, PairNumber number) {
  for (uint32_t redirects = 0; redirects < kRedirectsMax; ++redirects) {
    Set* pair = pair_at(core, number);
    Set* home = pair + home_of(hash);
    const uint32_t before = load_acquire(&home->state);
    const Found in_home = find_in_set(core, home, hash, key);
    if (in_home) return in_home;
    uint32_t after = load_acquire(&home->state);
    if (same_places(before, after) && (after & kStateSpilled) != 0) {
      const Found spilled = find_in_set(core, pair + (1 - home_of(hash)), hash, key);
      if (spilled) return spilled;
      const Found overflowed = find_in_overflow(core, pair, hash, key);
      if (overflowed) return overflowed;
      after = load_acquire(&home->state);
    }
    const PairNumber now = pair_by_depth(core, hash, after);
    if (now == number && same_places(before, after)) return {};
    if (now != number) number = next_pair(core, hash, number, now);
  }
  Set* pair = lock_pair(core, hash);
  const Found found = find_in_pair(core, pair, hash, key);
  unlock_pair(pair);
  return found;
}

WC_HD inline Found find_key(const Core& core, uint64_t hash, Bytes key) {
  const PairNumber number = pair_of(hash, load_acquire(&core.shared->pair_count));
  return find_key_from(core, hash, key, number);
}

// Looks for tag and slot only, and prefetches what the comparison will read.
WC_HD inline Candidate probe_key(const Core& core, uint64_t hash) {
  Set* home = pair_at(core, pair_of(hash, load_acquire(&core.shared->pair_count))) + home_of(hash);
  for (uint32_t mask = match_tag(*home, tag_of(hash)); mask != 0; mask &= mask - 1) {
    const uint32_t way = first_way(mask);
    const Slot slot = load_acquire(&home->slots[way]);
    if (!slot_fits(slot, hash)) continue;
    const Item* item = core.item_in(slot);
    prefetch(item);
    if (slot_lines(slot) > 1) prefetch(reinterpret_cast<const uint8_t*>(item) + 64);
    return {home, slot, way};
  }
  return {};
}

}  // namespace warpcache::store
