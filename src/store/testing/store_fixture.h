// SPDX-License-Identifier: Apache-2.0
//
// For tests: a store with a worker that uses it as requests do, and values that show whether they
// are right.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/host/store.h"

namespace warpcache::store {

inline std::string key_name(uint64_t number) { return "key-" + std::to_string(number); }

// A value that shows its key and the number of the write; every byte follows from the two. At least
// 16 bytes.
inline uint8_t pattern_byte(uint64_t key, uint64_t version, uint64_t at) {
  return static_cast<uint8_t>((key * 131 + version * 31 + at * 7 + (at >> 8)) & 0xff);
}

inline std::string make_value(uint64_t key, uint64_t version, size_t size) {
  std::string value(size < 16 ? 16 : size, '\0');
  std::memcpy(value.data(), &key, 8);
  std::memcpy(value.data() + 8, &version, 8);
  for (size_t i = 16; i < value.size(); ++i)
    value[i] = static_cast<char>(pattern_byte(key, version, i));
  return value;
}

// The version of a value of `key`; UINT64_MAX if the value is torn or belongs to another key.
inline uint64_t check_value(uint64_t key, const std::string& value) {
  if (value.size() < 16) return UINT64_MAX;
  uint64_t owner = 0;
  uint64_t version = 0;
  std::memcpy(&owner, value.data(), 8);
  std::memcpy(&version, value.data() + 8, 8);
  if (owner != key) return UINT64_MAX;
  for (size_t i = 16; i < value.size(); ++i) {
    if (value[i] != static_cast<char>(pattern_byte(key, version, i))) return UINT64_MAX;
  }
  return version;
}

// One thread's use of a store. Each operation is a batch by itself, unless the caller is in one.
class Worker {
 public:
  // How space is reclaimed, where it is not by the store's own maintenance.
  std::function<Status(uint64_t)> reclaim = [this](uint64_t bytes) {
    return store_->reclaim(bytes);
  };

  explicit Worker(Store* store) : store_(store), ref_(store->ref()) {
    EXPECT_EQ(store->register_thread(&thread_), Status::kOk);
  }
  ~Worker() {
    leave();
    store_->unregister_thread(&thread_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void enter() {
    if (depth_++ == 0) ref_.enter_batch(thread_);
  }
  void leave() {
    if (depth_ != 0 && --depth_ == 0) ref_.leave_batch(thread_);
  }

  // Allocates the item of a reservation and abandons both, as a set does that finds another CAS id.
  void abandon_allocated(uint32_t reservation) {
    enter();
    Allocation allocation;
    EXPECT_EQ(ref_.allocate_reserved(thread_, reservation, 0, allocation), Status::kOk);
    ref_.abandon(thread_, allocation);
    leave();
    store_->abandon_reservation(reservation);
  }

  // Sets; reclaims space as the engine does.
  Status set(const std::string& key, const std::string& value, uint32_t expiry = 0) {
    const uint64_t hash = ref_.hash(bytes_of(key));
    for (int round = 0; round < 100; ++round) {
      enter();
      Allocation allocation;
      const Status status = ref_.allocate(thread_, static_cast<uint8_t>(key.size()),
                                          static_cast<uint32_t>(value.size()), expiry, allocation);
      if (status == Status::kOk) {
        std::memcpy(allocation.item->key_data(), key.data(), key.size());
        ref_.write_value(*allocation.item, 0, bytes_of(value));
        publish(hash, key, allocation);
        leave();
        return Status::kOk;
      }
      leave();
      if (status != Status::kDeferred || depth_ != 0) return status;
      const Status reclaimed = reclaim(item_bytes(static_cast<uint32_t>(key.size()), value.size()));
      if (reclaimed != Status::kOk) return reclaimed;
    }
    return Status::kDeferred;
  }

  void publish(uint64_t hash, const std::string& key, Allocation& allocation) {
    LockedPair pair(ref_, hash);
    const Found existing = pair.find(bytes_of(key));
    allocation.item->store_cas(ref_.next_cas(thread_, existing ? existing.item->load_cas() : 0));
    pair.publish(thread_, allocation, existing);
  }

  // False: the key is not there or dead.
  bool get(const std::string& key, std::string* value = nullptr) {
    enter();
    const uint64_t hash = ref_.hash(bytes_of(key));
    const Candidate hint = ref_.probe(hash);
    const Found found = ref_.find(hash, bytes_of(key), hint);
    const uint32_t now = ref_.clock().now;
    const bool alive = found && ref_.alive(*found.item, now);
    if (alive) {
      record_hit(found, now);
      if (value != nullptr) *value = value_of(*found.item);
    }
    leave();
    return alive;
  }

  bool erase(const std::string& key) {
    enter();
    bool found_it = false;
    {
      const uint64_t hash = ref_.hash(bytes_of(key));
      LockedPair pair(ref_, hash);
      const Found found = pair.find(bytes_of(key));
      found_it = static_cast<bool>(found);
      if (found) pair.unlink(thread_, found);
    }
    leave();
    return found_it;
  }

  bool touch(const std::string& key, uint32_t expiry) {
    enter();
    bool found_it = false;
    {
      LockedPair pair(ref_, ref_.hash(bytes_of(key)));
      const Found found = pair.find(bytes_of(key));
      found_it = found && ref_.alive(*found.item, ref_.clock().now);
      if (found_it) ref_.set_expiry(found, expiry);
    }
    leave();
    return found_it;
  }

  // REQUIRES: in a batch.
  Found find(const std::string& key) { return ref_.find(ref_.hash(bytes_of(key)), bytes_of(key)); }

  std::string value_of(const Item& item) const {
    std::string value;
    ValuePieces pieces = ref_.pieces(item);
    for (Bytes piece = pieces.first(); !piece.empty(); piece = pieces.next()) {
      value.append(reinterpret_cast<const char*>(piece.data), piece.size);
    }
    return value;
  }

  Store& store() { return *store_; }
  const StoreRef& ref() const { return ref_; }
  ThreadContext& thread() { return thread_; }

 private:
  Store* store_;
  StoreRef ref_;
  ThreadContext thread_;
  int depth_ = 0;
};

// No thread but the test's, a fixed seed, and a clock that does not move.
inline StoreConfig quiet_config(uint64_t memory) {
  StoreConfig config;
  config.memory_limit = memory;
  config.maintenance_thread = false;
  config.manual_clock = true;
  config.seed = 42;
  config.reclaim_wait_ms_max = 200;
  return config;
}

inline std::unique_ptr<Store> make_store(const StoreConfig& config) {
  std::unique_ptr<Store> store;
  EXPECT_EQ(Store::create(config, &store), Status::kOk);
  return store;
}

inline constexpr uint64_t kMiB = uint64_t{1} << 20;

// Segments and counters agree with the index on the items. REQUIRES: nothing else uses the store.
inline void check_accounts(const Store& store) {
  const Core core = store.ref().core;
  std::map<SegmentId, uint64_t> live;
  uint64_t items = 0;
  uint64_t bytes = 0;
  for (PairNumber number = 0; number < core.shared->pair_count; ++number) {
    const PairSets sets = sets_of(core, pair_at(core, number));
    for (uint32_t i = 0; i < sets.count * kWays; ++i) {
      const Slot slot = sets.set[i / kWays]->slots[i % kWays];
      EXPECT_EQ(slot != 0, sets.set[i / kWays]->tag(i % kWays) != 0);
      if (slot == 0) continue;
      const Item* item = core.item_in(slot);
      const uint64_t size = item_bytes(item->key_size, item->value_size);
      live[core.segment_of(item)] += item->chained() ? size : item_footprint(*item);
      EXPECT_EQ(item->dropped, 0);
      ++items;
      bytes += size;
    }
  }
  for (SegmentId id = 0; id < core.shared->segment_top; ++id) {
    const SegmentEntry& entry = core.segment(id);
    const SegmentState state = entry.load_state();
    const bool holds_items = state == SegmentState::kOpen || state == SegmentState::kYoung ||
                             state == SegmentState::kMain || state == SegmentState::kChain ||
                             state == SegmentState::kHeld;
    EXPECT_EQ(live.count(id) == 0 ? 0 : live[id], holds_items ? entry.live : 0) << id;
  }
  EXPECT_EQ(items, store.stats().get(StoreCounter::kItems));
  EXPECT_EQ(bytes, store.stats().get(StoreCounter::kBytes));
}

}  // namespace warpcache::store
