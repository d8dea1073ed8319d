// SPDX-License-Identifier: Apache-2.0
//
// The store's owner on the host: memory, threads, maintenance, and whatever is not a request.
// Requests use the view that ref() gives (store_ref.h).
//
// Threads: functions may be called from any thread unless they say otherwise. Functions marked
// "outside batches" may wait for other threads' batches to end and must not be called by a thread
// that is inside an epoch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "store/clock.h"
#include "store/store_ref.h"

namespace warpcache::store {

struct StoreConfig {
  uint64_t memory_limit = uint64_t{64} << 20;  // bytes, index and values together (-m)
  uint64_t memory_reach =
      0;  // bytes that the limit may later be raised to; 0: four times the limit or the machine's
          // memory, whichever is more. Address space only
  uint32_t threads = 4;            // that will write; more may register, they share lanes
  uint32_t hash_power = 0;         // log2 of the slots that the index starts with; 0: by the limit
  bool keep_all = false;           // -M: answer kOutOfMemory instead of evicting
  bool huge_pages = true;          // ask for huge pages
  bool maintenance_thread = true;  // false: tests call maintain() and tick() themselves
  bool manual_clock = false;       // tests: only set_clock() moves it
  uint64_t seed = 0;               // of the hash; 0: drawn at random
  uint32_t room_wait_ms_max = 1000;  // make_room() gives up after
  HostHooks hooks;                   // tests; low_on_segments is the store's own
};

// Sums over all threads and states. Gauges of different threads are not of one instant.
struct StoreStats {
  uint64_t counter[static_cast<uint32_t>(StoreCounter::kCount)] = {};
  uint64_t segments[static_cast<uint32_t>(SegmentState::kCount)] = {};
  uint64_t segment_size = 0;
  uint64_t segment_limit = 0;
  uint64_t memory_limit = 0;  // bytes, as the segments make it
  uint64_t used_bytes = 0;    // segments that are neither free nor absent
  uint64_t live_bytes = 0;    // of items in the index, padding included
  uint64_t index_bytes = 0;   // "hash_bytes"
  uint64_t index_pairs = 0;
  uint64_t pinned_segments = 0;
  uint64_t reserved_segments = 0;
  uint64_t young_segments = 0;
  uint64_t main_segments = 0;
  uint64_t limbo_segments = 0;
  uint32_t oldest_access =
      0;  // server second, of a young and a main item about to be examined; 0: none

  uint64_t get(StoreCounter c) const { return counter[static_cast<uint32_t>(c)]; }
  uint64_t get(SegmentState s) const { return segments[static_cast<uint32_t>(s)]; }
};

// What walk() shows of an item. Valid during the call.
struct WalkedItem {
  const Item* item;
  Bytes key;
  uint64_t footprint;  // bytes taken in the store
};

class Maintenance;

class Store {
 public:
  // kOutOfMemory: the system refuses the address space.
  static Status create(const StoreConfig& config, std::unique_ptr<Store>* store);
  ~Store();  // REQUIRES: no thread is registered, no batch is under way
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  StoreRef ref() const { return {core_}; }

  // A thread that is to use ref(). kOutOfMemory: kThreadsMax are registered.
  Status register_thread(ThreadContext* thread);
  // REQUIRES: `thread` is outside its epoch.
  void unregister_thread(ThreadContext* thread);

  // After kDeferred: tries to make an allocation of an item of `bytes` (item_bytes()) possible, by
  // maintenance's own means, and waits for other threads' batches if need be. kOutOfMemory: answer
  // that. Outside batches.
  Status make_room(uint64_t bytes);

  // --- Reservations: see reservation.h. Outside batches.
  Status reserve(uint8_t key_size, uint32_t value_size, uint32_t* id);
  // The contiguous writable bytes of the value from `offset` on. REQUIRES: offset < value_size, the
  // id is the caller's.
  MutableBytes reservation_window(uint32_t id, uint32_t offset) const;
  // Nothing happens if it has been used up.
  void abandon_reservation(uint32_t id);

  // Everything stored before is dead: now with 0, else when `delay` seconds have passed. A later
  // call replaces one that waits.
  void flush_all(uint32_t delay = 0);

  // Changes the limit to as many whole segments, at least what the index and a few segments take,
  // at most the reach. Growing is done at once. Shrinking evicts and gives memory back to the
  // system; what takes longer than room_wait_ms_max goes on in the background, and with keep_all it
  // ends at what is stored. Returns the limit that is reached by now, in bytes. Outside batches.
  uint64_t set_memory_limit(uint64_t bytes);

  StoreStats stats() const;

  // Calls `visit` for every item that is neither expired nor flushed until it returns false. Items
  // added or removed meanwhile may or may not be met; an item may be met twice if the index grows.
  // The lock of the item's pair is held.
  void walk(const std::function<bool(const WalkedItem&)>& visit);

  // --- Clock. The maintenance thread moves it once a second.
  Clock clock() const { return ref().clock(); }
  void tick();                        // now: reads the time, runs a due flush_all, bulk expiry
  void shift_clock(int64_t seconds);  // debugtime, also while the clock stands
  void pause_clock(bool paused);      // debugtime: tick() leaves the time as it is
  void set_clock(uint32_t now);       // REQUIRES: manual_clock

  // One round of what the maintenance thread does: reclaims, and makes room up to the low-water
  // mark. Outside batches.
  void maintain();

 private:
  explicit Store(const StoreConfig& config);
  Status start();
  bool map_tables(uint32_t segments_max);
  void init_shared(uint32_t limit, uint32_t segments_max, uint32_t index_segments);
  void init_segments(uint32_t limit, uint32_t index_segments);
  void move_clock(uint32_t now);

  struct Memory;
  StoreConfig config_;
  std::unique_ptr<Memory> memory_;
  Core core_;
  ThreadCounters* counters_ = nullptr;  // kThreadsMax
  std::unique_ptr<Maintenance> maintenance_;
};

}  // namespace warpcache::store
