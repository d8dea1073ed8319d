// SPDX-License-Identifier: Apache-2.0
//
// The store as requests see it: a view that is copied freely and owns nothing. Look-ups take no
// lock and write nothing but access hints; a change takes the lock of one pair of sets. All of it
// is called inside an epoch:
//
//   store.enter_batch(thread);
//   ... find, allocate, lock, publish, pin ...
//   store.leave_batch(thread);
//
// After leave_batch() every Item*, Found, Candidate and Allocation of the batch is invalid.
//
// To read: hint = probe(hash); later found = find(hash, key, hint), and alive(*found.item, now).
//
// To write: allocate(); fill key, value, flags, expiry, cas and bits; then, with a LockedPair,
// existing = pair.find(key), decide, and pair.publish(thread, allocation, existing) or abandon().
//
// Without free space allocate() answers kDeferred, and nothing has happened: leave the batch, call
// Store::reclaim(), enter again and run the request anew.
//
// Several threads may do all this at once, each with its own ThreadContext.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/status.h"
#include "store/index/index.h"
#include "store/index/index_write.h"
#include "store/index/split.h"
#include "store/layout/clock.h"
#include "store/log/allocate.h"
#include "store/log/pin.h"
#include "store/log/reservation.h"
#include "store/log/value.h"

namespace warpcache::store {

struct StoreRef {
  Core core;

  // --- Batches

  WC_HD void enter_batch(ThreadContext& thread) const {
    enter_epoch(thread.slot, &core.shared->epoch);
  }
  WC_HD void leave_batch(ThreadContext& thread) const { leave_epoch(thread.slot); }
  WC_HD Clock clock() const {
    return {load_relaxed(&core.shared->now), load_relaxed(&core.shared->unix_start)};
  }

  // --- Look-up

  WC_HD uint64_t hash(Bytes key) const { return hash_key(core.seed, key); }

  // A hint for find(). Prefetches the memory that find() will read.
  WC_HD Candidate probe(uint64_t hash) const { return probe_key(core, hash); }

  // Of the index now. It only grows.
  WC_HD uint32_t pairs() const { return load_acquire(&core.shared->pair_count); }

  // The same in two steps: the first fetches more than the second usually reads. `pairs`: what
  // pairs() says or has said.
  WC_HD Candidate prefetch_home(uint64_t hash, uint32_t pairs) const {
    const Candidate hint = home_hint(core, hash, pairs);
    prefetch(hint.set);
    prefetch(&hint.set->slots[0]);
    prefetch(&hint.set->slots[kWays / 2]);
    return hint;
  }
  WC_HD void probe(uint64_t hash, Candidate& hint) const { probe_home(core, hash, hint); }

  // The same in three steps, each of which reads what the one before it has prefetched, and nothing
  // that is not needed.
  WC_HD Candidate prefetch_tags(uint64_t hash, uint32_t pairs) const {
    const Candidate hint = home_hint(core, hash, pairs);
    prefetch(hint.set);
    return hint;
  }
  WC_HD void prefetch_slot(uint64_t hash, Candidate& hint) const {
    store::prefetch_slot(hash, hint);
  }
  WC_HD void prefetch_item(uint64_t hash, Candidate& hint) const {
    store::prefetch_item(core, hash, hint);
  }

  // The item of the key. It may be dead: see alive().
  WC_HD Found find(uint64_t hash, Bytes key, const Candidate& hint = {}) const {
    if (hint.slot != 0 && load_acquire(&hint.set->slots[hint.way]) == hint.slot) {
      Item* item = core.item_in(hint.slot);
      if (holds_key(*item, key)) return {item, hint.set, hint.way};
    }
    return find_key_from(core, hash, key, pair_of_hint(core, hash, hint));
  }

  // Neither expired nor flushed.
  WC_HD bool alive(const Item& item, uint32_t now) const { return is_alive(core, item, now); }
  WC_HD bool flushed(const Item& item) const { return is_flushed(core, item); }

  // --- Values

  WC_HD ValuePieces pieces(const Item& item) const { return ValuePieces(core, item); }

  // REQUIRES: `item` is the caller's, unpublished; offset + bytes fit into its value.
  WC_HD void write_value(Item& item, uint32_t offset, Bytes bytes) const {
    store::write_value(core, item, offset, bytes);
  }
  // Likewise; copies the whole value of `source`.
  WC_HD void copy_value(Item& item, uint32_t offset, const Item& source) const {
    store::copy_value(core, item, offset, source);
  }

  // --- Writing

  // The item never fits, whatever is evicted. (The limit of -I is checked by the caller.)
  WC_HD bool too_large(uint32_t key_size, uint64_t value_size) const {
    return is_too_large(core, key_size, value_size);
  }

  // Space for an item; its sizes and `expiry` are set, all other words are 0. kDeferred: reclaim()
  // first. kTooLarge: it never fits. `expiry` may be changed before publishing; here it chooses the
  // segment, since items with similar times to live share one.
  WC_HD Status allocate(ThreadContext& thread, uint8_t key_size, uint32_t value_size,
                        uint32_t expiry, Allocation& allocation) const {
    if (take_prepared(thread, key_size, value_size, expiry, allocation)) return Status::kOk;
    const int32_t check = static_cast<int32_t>(kNewItemsPerCheck);
    const bool full_index = core.shared->keep_all && is_crowded(core);
    if (thread.new_items >= check || thread.new_items <= -check || full_index) {
      settle_growth(core, thread);
      // reclaim() also frees the segment that the index waits for. With keep_all every key needs a
      // place in the index; without it, it is enough that one in kNewItemsPerCheck waits.
      if (is_crowded(core)) return Status::kDeferred;
    }
    return allocate_item(core, thread, key_size, value_size, expiry, allocation);
  }

  // Items may be taken from an ItemRun for up to `count` keys: allocate() would not answer
  // kDeferred for want of places in the index. False: allocate them one by one.
  WC_HD bool may_prepare(ThreadContext& thread, uint32_t count) const {
    const auto room = static_cast<int32_t>(kNewItemsPerCheck) - static_cast<int32_t>(count);
    if (core.shared->keep_all || core.shared->faults != nullptr) return false;
    if (WC_LIKELY(thread.new_items <= room && thread.new_items >= -room)) return true;
    settle_growth(core, thread);
    return !is_crowded(core);
  }

  // The item of a reservation: its value is in place (holds_value), its key is still to be written.
  // A small item is copied to an open segment. kOk uses the reservation up; kDeferred keeps it.
  WC_HD Status allocate_reserved(ThreadContext& thread, uint32_t reservation, uint32_t expiry,
                                 Allocation& allocation) const {
    const Item& staged = reserved_item(reservation);
    if (thread.prepared_holds_value &&
        take_prepared(thread, staged.key_size, staged.value_size, expiry, allocation)) {
      abandon_reservation(core, reservation);
      return Status::kOk;
    }
    return allocate_from_reservation(core, thread, reservation, expiry, allocation);
  }
  // The received value, for copying. REQUIRES: the reservation is not used up.
  WC_HD const Item& reserved_item(uint32_t reservation) const {
    return *reservation_item(core, reservation);
  }

  // Gives space back that will not be published. `allocation` is empty afterwards.
  WC_HD void abandon(ThreadContext& thread, Allocation& allocation) const {
    abandon_item(core, thread, allocation);
  }

  // A CAS id that the store has given to no item. It is above `old` where the store gave that one;
  // it may be below an id that a client chose.
  WC_HD uint64_t next_cas(ThreadContext& thread, uint64_t old) const {
    if (thread.cas_next >= thread.cas_end || thread.cas_next <= old) {
      const uint64_t batch = fetch_add(&core.shared->cas_batch, 1) + 1;
      thread.cas_next = batch << kCasIndexBits;
      thread.cas_end = (batch + 1) << kCasIndexBits;
    }
    return thread.cas_next++;
  }

  // Changes the expiry in place. REQUIRES: the pair is locked, `found` was found under the lock.
  WC_HD void set_expiry(const Found& found, uint32_t expiry) const {
    drop_copy(core, *found.item);
    core.segment(core.segment_of(found.item)).note_expiry(expiry);
    found.item->store_expiry(expiry);
  }

  // Before bits or CAS id of an item change in place: copies of it outside of the store are
  // dropped. REQUIRES: its pair is locked.
  WC_HD void will_change(const Item& item) const { drop_copy(core, item); }

  // --- Pins

  // Keeps the memory of an item unchanged, beyond the batch, until unpin(). 0: too much is pinned;
  // the caller copies the value or waits. REQUIRES: inside the epoch in which `item` was found.
  WC_HD uint32_t pin(const Item& item, PinNeed need) const { return pin_item(core, item, need); }
  // Bytes of the store that a pin of the item keeps. REQUIRES: as pin().
  WC_HD uint64_t pinned_by(const Item& item) const { return pinned_by_item(core, item); }
  // pin() would refuse now, except for items in segments that are pinned already.
  WC_HD bool pins_are_exhausted() const { return pins_exhausted(core); }
  // From any thread, inside an epoch or not; once for each pin().
  WC_HD void unpin(uint32_t pin) const { unpin_item(core, pin); }

  static constexpr uint32_t kCasIndexBits = 20;

 private:
  WC_HD static bool take_prepared(ThreadContext& thread, uint8_t key_size, uint32_t value_size,
                                  uint32_t expiry, Allocation& allocation) {
    Item* const item = thread.prepared;
    if (item == nullptr || item->key_size != key_size || item->value_size != value_size) {
      return false;
    }
    thread.prepared = nullptr;
    item->store_expiry(expiry);
    allocation = {item, static_cast<uint32_t>(item_footprint(*item)), thread.prepared_holds_value};
    return true;
  }
};
static_assert(std::is_trivially_copyable_v<StoreRef>);

// Holds the lock of the pair that a hash belongs to. A thread holds one at a time, for a short
// time, and does not call allocate() meanwhile.
class LockedPair {
 public:
  WC_HD LockedPair(const StoreRef& store, uint64_t hash)
      : core_(store.core),
        hash_(hash),
        pair_(lock_pair(store.core, hash)),
        flush_generation_(load_relaxed(&store.core.shared->flush_generation)) {}
  // `hint`: of the same hash; saves finding the pair.
  WC_HD LockedPair(const StoreRef& store, uint64_t hash, const Candidate& hint)
      : core_(store.core),
        hash_(hash),
        pair_(lock_pair_from(store.core, hash, pair_of_hint(store.core, hash, hint))),
        flush_generation_(load_relaxed(&store.core.shared->flush_generation)) {}
  WC_HD ~LockedPair() { unlock_pair(pair_); }
  LockedPair(const LockedPair&) = delete;
  LockedPair& operator=(const LockedPair&) = delete;

  // The item of the key. It may be dead. Valid while this lock is held.
  template <typename Memory = PlainMemory, typename Key = Bytes>
  WC_HD typename Memory::Found find(const Key& key) const {
    return find_in_pair<Memory>(core_, pair_, hash_, key);
  }

  // The same, looking where the hint says first.
  WC_HD Found find(Bytes key, const Candidate& hint) const {
    if (hint.slot != 0 && hint.set == pair_ + home_of(hash_) &&
        load_relaxed(&hint.set->slots[hint.way]) == hint.slot) {
      Item* const item = core_.item_in(hint.slot);
      if (holds_key(*item, key)) return {item, hint.set, hint.way};
    }
    return find_in_pair<PlainMemory>(core_, pair_, hash_, key);
  }

  // Neither expired nor flushed. What is decided by it and published under the same lock lies
  // wholly before or wholly after each flush: a value made from one that was flushed meanwhile is
  // flushed with it.
  WC_HD bool alive(const Item& item, uint32_t now) {
    if (is_expired(item, now)) return false;
    if (WC_LIKELY(item.load_flush_generation() == flush_generation_)) return true;
    return !is_flushed_at(core_, item, flush_generation_);
  }

  // Gives an item the generation that alive() has found it alive in: it is as if it had been stored
  // then.
  WC_HD void renew(Item& item) { item.store_flush_generation(flush_generation_); }

  // Makes the allocation the item of the key: it replaces `existing`, or is a new key where nothing
  // was found. Always succeeds. The allocation is used up; the lock may be kept for reading.
  WC_HD void publish(ThreadContext& thread, const Allocation& allocation, const Found& existing) {
    publish_item(core_, thread, pair_, hash_, allocation.item, existing, flush_generation_);
  }

  // Likewise, an item of an ItemRun.
  WC_HD void publish_counted(ThreadContext& thread, Item* item, const Found& existing) {
    publish_counted_item(core_, thread, pair_, hash_, item, existing, flush_generation_);
  }

  // Removes the key.
  WC_HD void unlink(ThreadContext& thread, const Found& found) {
    remove_item(core_, thread, pair_, found);
  }

 private:
  const Core& core_;
  uint64_t hash_;
  Set* pair_;
  uint32_t flush_generation_;
};

}  // namespace warpcache::store
