// SPDX-License-Identifier: Apache-2.0
//
// Finding keys. The index lies at the low end of the arena, in blocks of 16 KiB: pairs of sets,
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
#include "base/bits.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/mem.h"
#include "store/layout/core.h"

namespace warpcache::store {

inline constexpr uint32_t kBlockSize = 16 * 1024;  // bytes
inline constexpr uint32_t kBlockPairs = 41;
inline constexpr uint32_t kBlockOverflowSets = 3;
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
inline constexpr PairNumber kNoPair = UINT32_MAX;

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

// The pair of a hash in an index of `count` pairs.
WC_HD inline PairNumber pair_of(uint64_t hash, uint32_t count) {
  const uint64_t level = uint64_t{1} << highest_bit(count);
  const uint64_t fine = hash & (2 * level - 1);
  // Without a branch: for many counts none predicts it.
  const uint64_t split = (fine - count) >> 63;  // 1: fine < count
  return static_cast<PairNumber>(fine & ~((split - 1) & level));
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
  PairNumber pair = kNoPair;  // that the key belonged to at some earlier time
};

// A key that was found. `item` stays readable until the batch of the reader ends, whatever happens
// to the key.
struct Found {
  Item* item = nullptr;
  Set* set = nullptr;
  uint32_t way = 0;

  WC_HD explicit operator bool() const { return item != nullptr; }
  // For note_access() and record_hit().
  WC_HD uint32_t counters() const { return load_relaxed(&set->counters); }
  WC_HD uint32_t access_time() const { return item->load_access_time(); }
  WC_HD bool fetched() const { return (item->load_bits() & kItemFetched) != 0; }
};

WC_HD inline bool holds_key(const Item& item, Bytes key) {
  return item.key_size == key.size && mem_equal(item.key_data(), key.data, key.size);
}

// A memory policy: how a look-up reads sets and items. This one loads each word when it is needed,
// with acquire where writers publish it. PastL1 (engine/cuda/packets/past_l1.cuh) is another, with
// the same members.
struct PlainMemory {
  using Found = store::Found;

  // What a look-up reads of a set besides its slots.
  class Line {
   public:
    WC_HD explicit Line(const Set* set) : set_(set) {}
    WC_HD uint32_t match(uint16_t tag) const { return match_tag(*set_, tag); }
    WC_HD uint32_t state() const { return load_acquire(&set_->state); }
    WC_HD uint32_t overflow() const { return load_acquire(&set_->overflow); }

   private:
    const Set* set_;
  };

  WC_HD static Slot load_slot(const Slot* slot) { return load_acquire(slot); }
  // Sets `found` and returns true if the item has the key.
  WC_HD static bool match_item(Item* item, Bytes key, Set* set, uint32_t way, const Line& /*line*/,
                               Found& found) {
    if (!holds_key(*item, key)) return false;
    found = {item, set, way};
    return true;
  }
};

template <typename Memory, typename Key>
WC_HD inline bool find_in_set(const Core& core, Set* set, const typename Memory::Line& line,
                              uint64_t hash, const Key& key, typename Memory::Found& found) {
  for (uint32_t mask = line.match(tag_of(hash)); mask != 0; mask &= mask - 1) {
    const uint32_t way = first_way(mask);
    const Slot slot = Memory::load_slot(&set->slots[way]);
    if (!slot_fits(slot, hash)) continue;
    if (Memory::match_item(core.item_in(slot), key, set, way, line, found)) return true;
  }
  return false;
}

// Finds the key in a pair: in its home set, and where keys of that have spilled, in the other set,
// then in the overflow sets. A hit is right. A miss is right if no key moved meanwhile: always if
// the pair's lock is held. One loop, so that a device has the code only once; always inlined,
// because a call costs a miss some percent of its instructions.
template <typename Memory, typename Key>
WC_HD __attribute__((always_inline)) inline typename Memory::Found find_in_pair(const Core& core,
                                                                                Set* pair,
                                                                                uint64_t hash,
                                                                                const Key& key) {
  typename Memory::Found found;
  Set* set = pair + home_of(hash);
  uint32_t overflow = 0;  // the overflow set after the pair's two sets
  WC_NO_UNROLL
  for (uint32_t step = 0; step < 2 + kOverflowChainMax; ++step) {
    const typename Memory::Line line(set);
    if (find_in_set<Memory>(core, set, line, hash, key, found)) return found;
    if (step == 0 && (line.state() & kStateSpilled) == 0) break;
    if (set == pair || step > 1) overflow = line.overflow();
    if (step == 0) {
      set = pair + (1 - home_of(hash));
    } else if (overflow != 0) {
      set = overflow_at(core, overflow);
    } else {
      break;
    }
  }
  return found;
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
    const Set* home = pair + home_of(hash);
    const uint32_t before = load_acquire(&home->state);
    const Found found = find_in_pair<PlainMemory>(core, pair, hash, key);
    if (found) return found;
    const uint32_t after = load_acquire(&home->state);
    const PairNumber now = pair_by_depth(core, hash, after);
    if (now == number && same_places(before, after)) return {};
    if (now != number) number = next_pair(core, hash, number, now);
  }
  Set* pair = lock_pair(core, hash);
  const Found found = find_in_pair<PlainMemory>(core, pair, hash, key);
  unlock_pair(pair);
  return found;
}

// The pair that the hash belonged to when `hint` was made, or belongs to now.
WC_HD inline PairNumber pair_of_hint(const Core& core, uint64_t hash, const Candidate& hint) {
  if (hint.pair != kNoPair) return hint.pair;
  return pair_of(hash, load_acquire(&core.shared->pair_count));
}

WC_HD inline Found find_key(const Core& core, uint64_t hash, Bytes key) {
  const PairNumber number = pair_of(hash, load_acquire(&core.shared->pair_count));
  return find_key_from(core, hash, key, number);
}

// Notes an access, for eviction and for clients that ask for it. Writes only what changes; takes no
// lock. `found`: of any memory policy.
template <typename AnyFound>
WC_HD inline void note_access(const AnyFound& found, uint32_t now) {
  const uint32_t counters = found.counters();
  const uint32_t shift = 2 * found.way;
  if ((counters >> shift & 3) < 3) store_relaxed(&found.set->counters, counters + (1u << shift));
  if (found.access_time() != now) found.item->store_access_time(now);
}

// Likewise, an access that a client has got the item by.
template <typename AnyFound>
WC_HD inline void record_hit(const AnyFound& found, uint32_t now) {
  note_access(found, now);
  if (!found.fetched()) found.item->set_fetched();
}

// The home set of a hash, as a hint that says nothing more. `pairs`: of the index, now or earlier.
WC_HD inline Candidate home_hint(const Core& core, uint64_t hash, uint32_t pairs) {
  const PairNumber pair = pair_of(hash, pairs);
  return {pair_at(core, pair) + home_of(hash), 0, 0, pair};
}
WC_HD inline Candidate home_hint(const Core& core, uint64_t hash) {
  return home_hint(core, hash, load_acquire(&core.shared->pair_count));
}

WC_HD inline void prefetch_item(const Core& core, Slot slot) {
  const Item* item = core.item_in(slot);
  prefetch(item);
  if (slot_lines(slot) > 1) prefetch(reinterpret_cast<const uint8_t*>(item) + 64);
}

// Looks for tag and slot only, and prefetches what the comparison will read. REQUIRES: `hint` is a
// home_hint(); what was seen there is added.
WC_HD inline void probe_home(const Core& core, uint64_t hash, Candidate& hint) {
  Set* const home = hint.set;
  for (uint32_t mask = match_tag(*home, tag_of(hash)); mask != 0; mask &= mask - 1) {
    const uint32_t way = first_way(mask);
    const Slot slot = load_acquire(&home->slots[way]);
    if (!slot_fits(slot, hash)) continue;
    prefetch_item(core, slot);
    hint.slot = slot;
    hint.way = way;
    return;
  }
}

// The same in two steps, where other work lies between: the first reads the line of the tags and
// prefetches the slot's, the second reads that and prefetches the item. REQUIRES, as above: `hint`
// is a home_hint(), and of the second: the first came before.
WC_HD inline void prefetch_slot(uint64_t hash, Candidate& hint) {
  const uint32_t mask = match_tag(*hint.set, tag_of(hash));
  if (mask == 0) {
    hint.way = kWays;
    return;
  }
  hint.way = first_way(mask);
  prefetch(&hint.set->slots[hint.way]);
}

WC_HD inline void prefetch_item(const Core& core, uint64_t hash, Candidate& hint) {
  if (hint.way == kWays) return;  // a miss, nearly always: nothing to prefetch
  const Slot slot = load_acquire(&hint.set->slots[hint.way]);
  if (WC_UNLIKELY(!slot_fits(slot, hash))) return probe_home(core, hash, hint);
  prefetch_item(core, slot);
  hint.slot = slot;
}

WC_HD inline Candidate probe_key(const Core& core, uint64_t hash) {
  Candidate hint = home_hint(core, hash);
  probe_home(core, hash, hint);
  return hint;
}

}  // namespace warpcache::store
