// SPDX-License-Identifier: Apache-2.0
//
// Emptying one segment, as tasks that workers share. Items are neighbours, and only the header of
// an item says where it ends. So the leader follows them one after the other (reclaim.h) and gives
// them to the workers in batches; the decision on one item does not depend on the others:
//
// sizes   how long an item would be if it began here, for each granule of a window. The leader then
// reads this table instead of the segment.
// judge   drops what is dead or not worth keeping. The items that stay are listed, each with a
// place in one sequence of bytes.
// copy    copies the bodies of long items, all workers together
// move    copies the other bodies, one worker each, and then swaps the slot
//
// Between judge and move the leader decides where the sequence goes. It is cut in two at the end of
// the copier's open segment.
#pragma once

#include <cstdint>

#include "base/mem.h"
#include "store/reclaim/survivor.h"
#include "store/reclaim/worker_share.h"

namespace warpcache::store {

inline constexpr uint32_t kWalkMax = 1024;             // items of a batch
inline constexpr uint32_t kWindowGranules = 4 * 1024;  // granules that the table of sizes covers
inline constexpr uint32_t kWindowBytes = kWindowGranules * kItemGranule;
inline constexpr uint32_t kBodyAloneMax = 1024;  // bytes; a longer body is copied by all workers

// An item that stays.
struct Stay {
  uint64_t hash;
  uint32_t item;   // offset in the segment, bytes
  uint32_t at;     // offset of its copy in the sequence
  uint32_t bytes;  // its size
};

struct Walk {
  // Set by the leader.
  uint8_t* data = nullptr;    // of the segment
  uint32_t used = 0;          // bytes of it
  uint32_t window = 0;        // first byte that the table covers ...
  uint32_t window_end = 0;    // ... and the byte after the last
  uint16_t* sizes = nullptr;  // the table: kWindowGranules sizes, in granules
  KeepRule rule;
  bool must_keep = false;  // true: an item without space stays in place; false: it is evicted
  uint32_t count = 0;      // of `items`
  uint32_t items[kWalkMax];
  uint32_t split = 0;      // offset in the sequence at which the second place begins
  uint8_t* place[2] = {};  // null: there is none
  // Written by the workers.
  uint64_t stays = 0;  // number << 32 | bytes, of the items that stay
  Stay stay[kWalkMax];
  uint32_t long_bodies = 0;  // 1: the task copy has work
  uint64_t copied = 0;       // bytes

  WC_HD uint32_t stay_count() const { return static_cast<uint32_t>(stays >> 32); }
  WC_HD uint32_t stay_bytes() const { return static_cast<uint32_t>(stays); }
  WC_HD Item* item_at(uint32_t offset) const { return reinterpret_cast<Item*>(data + offset); }
  // Where the copy goes, or null.
  WC_HD Item* copy_at(const Stay& stayed) const {
    const bool second = stayed.at >= split;
    uint8_t* to = place[second ? 1 : 0];
    return to == nullptr ? nullptr
                         : reinterpret_cast<Item*>(to + (stayed.at - (second ? split : 0)));
  }
};

namespace detail {

inline constexpr uint32_t kHeaderGranules = sizeof(Item) / kItemGranule;

// The size of an item if one begins here, in granules; else any number. Words of existing items may
// change meanwhile.
WC_HD inline uint16_t size_if_item(const uint8_t* data) {
  const Item* item = reinterpret_cast<const Item*>(data);
  const uint64_t granules =
      item_footprint(load_relaxed(&item->key_size), load_relaxed(&item->value_size)) / kItemGranule;
  return static_cast<uint16_t>(granules < UINT16_MAX ? granules : UINT16_MAX);
}

WC_HD inline bool is_long(const Stay& stay, const Share& share) {
  return share.workers > 1 && stay.bytes > kBodyAloneMax;
}

// Key and value with their padding: whole granules at both ends.
WC_HD inline void copy_body(Item* to, const Item* from, uint32_t bytes) {
  mem_copy_granules(to + 1, from + 1, (bytes - sizeof(Item)) / kItemGranule);
}

}  // namespace detail

WC_HD inline void size_share(const Walk& walk, const Share& share) {
  const uint32_t count = (walk.window_end - walk.window) / kItemGranule;
  const uint8_t* window = walk.data + walk.window;
#if defined(__CUDA_ARCH__)
#pragma unroll 8
#endif
  for (uint32_t i = share.worker; i < count; i += share.workers) {
    // No item begins where a header does not fit.
    const uint32_t at = walk.window + i * kItemGranule;
    if (at + sizeof(Item) <= walk.used) {
      walk.sizes[i] = detail::size_if_item(window + uint64_t{i} * kItemGranule);
    }
  }
}

WC_HD inline void judge_share(const Core& core, ThreadContext& thread, Walk& walk,
                              const Share& share) {
  for (uint32_t i = share.worker; i < walk.count; i += share.workers) {
    Item* item = walk.item_at(walk.items[i]);
    if (load_acquire(&item->dropped) != 0) continue;
    const uint64_t hash = hash_key(core.seed, item->key());
    if (judge_item(core, thread, item, hash, walk.rule).fate != Fate::kStays) continue;
    const uint32_t bytes = static_cast<uint32_t>(item_footprint(*item));
    const uint64_t before = fetch_add_relaxed(&walk.stays, uint64_t{1} << 32 | bytes);
    Stay& stay = walk.stay[before >> 32];
    stay = {hash, walk.items[i], static_cast<uint32_t>(before), bytes};
    if (detail::is_long(stay, share)) store_relaxed(&walk.long_bodies, 1);
  }
}

WC_HD inline void copy_share(Walk& walk, const Share& share) {
  for (uint32_t i = 0; i < walk.stay_count(); ++i) {
    const Stay& stay = walk.stay[i];
    if (!detail::is_long(stay, share)) continue;
    Item* to = walk.copy_at(stay);
    if (to == nullptr) continue;
    const Item* from = walk.item_at(stay.item);
    const uint32_t granules = stay.bytes / kItemGranule;
    for (uint32_t at = detail::kHeaderGranules + share.worker; at < granules; at += share.workers) {
      mem_copy_granules(reinterpret_cast<uint8_t*>(to) + uint64_t{at} * kItemGranule,
                        reinterpret_cast<const uint8_t*>(from) + uint64_t{at} * kItemGranule, 1);
    }
  }
}

WC_HD inline void move_share(const Core& core, ThreadContext& thread, Walk& walk,
                             const Share& share) {
  uint64_t copied = 0;
  for (uint32_t i = share.worker; i < walk.stay_count(); i += share.workers) {
    const Stay& stay = walk.stay[i];
    Item* item = walk.item_at(stay.item);
    Item* to = walk.copy_at(stay);
    if (to == nullptr) {
      if (!walk.must_keep) evict_item(core, thread, item, stay.hash);
      continue;
    }
    if (!detail::is_long(stay, share)) detail::copy_body(to, item, stay.bytes);
    Item* copy = detail::init_item(reinterpret_cast<uint8_t*>(to), item->key_size, item->value_size,
                                   0, Layout::kPlain);
    copy->client_flags = item->client_flags;
    copy->store_flush_generation(item->load_flush_generation());
    if (!swap_item(core, thread, item, copy, stay.hash, walk.rule)) continue;
    thread.counters->add(StoreCounter::kMovedItems, 1);
    thread.counters->add(StoreCounter::kMovedBytes, stay.bytes);
    copied += stay.bytes;
  }
  if (copied != 0) add_relaxed(&walk.copied, copied);
}

}  // namespace warpcache::store
