// SPDX-License-Identifier: Apache-2.0
//
// What the rest of a server may ask of a store besides requests, wherever its memory is: on the
// host (store.h) or on a device (store/cuda/cuda_store.h). Also what all owners share: the clock.
//
// Functions may be called from any thread. Functions marked "outside batches" may wait for batches
// to end and must not be called by a thread that is inside an epoch.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>

#include "base/bytes.h"
#include "base/status.h"
#include "store/layout/clock.h"
#include "store/store_ref.h"

namespace warpcache::store {

// Times that others may take the room that was made for a reservation, before it is refused.
inline constexpr uint32_t kReserveRoundsMax = 8;

struct StoreConfig {
  uint64_t memory_limit = uint64_t{64} << 20;  // bytes, index and values together (-m)
  uint64_t memory_reach =
      0;  // bytes that the limit may later be raised to; 0: four times the limit or the machine's
          // memory, whichever is more. Address space only
  uint32_t threads = 4;            // that will write; more may register, they share lanes
  uint32_t readers_max = 264;      // that may be registered at once: 256 workers, maintenance, and
                                   // what looks in from outside
  uint32_t hash_power = 0;         // log2 of the slots that the index starts with; 0: by the limit
  uint32_t evacuators_max = 0;     // that maintenance may have beside its leader: see evacuators.h
  uint32_t low_water_share = 256;  // maintenance is called when less than this part of the memory
                                   // is free
  bool keep_all = false;           // -M: answer kOutOfMemory instead of evicting
  bool huge_pages = true;          // ask for huge pages
  bool maintenance_thread = true;  // false: tests call maintain() and tick() themselves
  bool manual_clock = false;       // tests: only set_clock() moves it
  uint64_t seed = 0;               // of the hash; 0: drawn at random
  uint32_t reclaim_wait_ms_max = 1000;  // reclaim() gives up after
  HostHooks hooks;                      // tests
};

// Sums over all threads and states. Gauges of different threads are not of one instant.
struct StoreStats {
  uint64_t counter[static_cast<uint32_t>(StoreCounter::kCount)] = {};
  uint64_t segment_size = 0;
  uint64_t segment_limit = 0;
  uint64_t memory_limit = 0;  // bytes, as the segments make it
  uint64_t used_bytes = 0;    // segments that are neither free nor absent
  uint64_t index_bytes = 0;   // "hash_bytes"
  uint64_t index_pairs = 0;
  uint64_t free_segments = 0;
  uint64_t pinned_segments = 0;
  uint64_t reserved_segments = 0;
  uint64_t young_segments = 0;
  uint64_t main_segments = 0;
  uint64_t retired_segments = 0;

  uint64_t get(StoreCounter c) const { return counter[static_cast<uint32_t>(c)]; }
};

// What a look at every segment shows.
struct SegmentCensus {
  uint64_t segments[static_cast<uint32_t>(SegmentState::kCount)] = {};
  uint64_t live_bytes = 0;  // of items in the index, padding included

  uint64_t get(SegmentState s) const { return segments[static_cast<uint32_t>(s)]; }
};

// What walk() shows of an item. Valid during the call.
struct WalkedItem {
  const Item* item;  // the header alone
  Bytes key;
  uint64_t footprint;  // bytes taken in the store
};

class StoreOwner {
 public:
  virtual ~StoreOwner() = default;
  StoreOwner(const StoreOwner&) = delete;
  StoreOwner& operator=(const StoreOwner&) = delete;

  // Everything stored before is dead: now with 0; else what is stored before `delay` seconds have
  // passed, from the beginning of the last of them on (what is stored during that one: at its end).
  // A later call replaces one that waits.
  void flush_all(uint32_t delay = 0);
  void cancel_flush();  // the one that waits

  // Changes the limit to as many whole segments. Maintenance moves there in small steps, which
  // nobody waits for: it adds free segments, or evicts and gives memory back to the system; with
  // keep_all it goes as far as what is stored allows. False, and nothing changes: that is more than
  // the reach, or less than the index and a few segments take. Outside batches.
  virtual bool set_memory_limit(uint64_t bytes) = 0;

  // Takes no longer the more is stored.
  virtual StoreStats stats() const = 0;

  // Calls `visit` for the items that are neither expired nor flushed in the next part of the index
  // from `cursor` on (0 at first), a few hundred at most, and moves it, to kWalkEnd behind the last
  // part. Items added or removed between or during the calls may or may not be met; one that is
  // there all the time is met, twice if the index grows meanwhile. `visit` must not use the store.
  // Outside batches. kNotSupported: the device has failed, and with it what it stored.
  virtual Status walk(uint64_t& cursor, const std::function<void(const WalkedItem&)>& visit) = 0;
  static constexpr uint64_t kWalkEnd = UINT64_MAX;

  // A copy of the header of a key's item, without counting as an access. False: nothing alive.
  virtual bool inspect(Bytes key, Item* header) = 0;

  // --- Clock, which requests go by. The owner's maintenance calls tick() once a second.
  virtual Clock clock() const = 0;
  void tick();                        // now: reads the time, runs a due flush_all, bulk expiry
  void shift_clock(int64_t seconds);  // debugtime, also while the clock stands
  void pause_clock(bool paused);      // debugtime: tick() leaves the time as it is
  void set_clock(uint32_t now);       // REQUIRES: manual_clock

 protected:
  explicit StoreOwner(bool manual_clock);

  int64_t unix_start() const { return unix_start_; }          // of Clock
  uint32_t read_clock() const;                                // now, of Clock, without a tick()
  std::chrono::steady_clock::time_point next_second() const;  // when tick() is due

 private:
  virtual void apply_clock(uint32_t now) = 0;  // tells the store's memory of this second
  virtual void apply_flush() = 0;
  virtual void apply_expiry() = 0;
  void move_clock();

  static constexpr int64_t kRuns = -1;

  const bool manual_clock_;
  int64_t unix_start_ = 0;
  std::chrono::steady_clock::time_point start_;  // of kClockStart, whose second is time(2)'s
  std::atomic<int64_t> shift_{0};                // seconds
  std::atomic<int64_t> paused_at_{kRuns};        // seconds since the start; while the clock stands
  std::atomic<uint32_t> manual_now_{kClockStart};
  std::mutex clock_mutex_;  // guards what follows
  uint32_t flush_at_ = 0;   // second before which a delayed flush_all ends all; 0: none
};

}  // namespace warpcache::store
