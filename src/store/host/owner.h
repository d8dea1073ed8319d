// SPDX-License-Identifier: Apache-2.0
//
// What the rest of the server uses of a store besides requests, wherever its memory is: on the host
// (store.h) or on a device (store/cuda/cuda_store.h). Also what all owners share: the clock.
//
// Functions may be called from any thread. Functions marked "outside batches" may wait for batches
// to end; a thread that is inside an epoch must not call them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "store/layout/clock.h"
#include "store/observer.h"
#include "store/store_ref.h"

namespace warpcache::store {

// How often space that was reclaimed for a reservation may be taken by others before the
// reservation is refused.
inline constexpr uint32_t kReserveRoundsMax = 64;

struct StoreConfig {
  uint64_t memory_limit = uint64_t{64} << 20;  // bytes, index and values together (-m)
  uint64_t memory_reach =
      0;  // the limit can be raised to this many bytes; 0: to four times the limit or the machine's
          // memory, whichever is more. It costs address space only
  uint32_t threads = 4;         // that write; more may register, they share append points
  uint32_t readers_max = 264;   // registered at the same time: 256 workers, maintenance, inspectors
  uint32_t hash_power = 0;      // log2 of the slots that the index starts with; 0: from the limit
  uint32_t evacuators_max = 0;  // helpers of maintenance's leader: see evacuators.h
  uint32_t low_water_share = 256;  // maintenance is woken when less than 1/low_water_share is free
  uint32_t low_water_share_max = 0;  // while requests find no space: see low_water.h; 0: likewise
  uint64_t segment_size = 0;         // studies: a power of two; 0: from the limit
  bool keep_all = false;             // -M: answer kOutOfMemory instead of evicting
  bool huge_pages = true;            // ask for huge pages
  bool maintenance_thread = true;    // false: tests call maintain() and tick() themselves
  bool manual_clock = false;         // tests: only set_clock() moves it
  uint64_t seed = 0;                 // of the hash; 0: drawn at random
  uint32_t reclaim_wait_ms_max = 1000;  // after this time reclaim() gives up
  Observer* observer = nullptr;         // outlives the store; null: none
  Faults* faults = nullptr;             // likewise; host stores only; tests
  CopyHooks copies;                     // of the owner of copies
  uint32_t flushed_prefixes_max = 64;   // flushed and not yet swept; at most kFlushedPrefixesMax
  std::string
      file;  // -e: the store lies in this file, and outlives the process; empty: it does not
  std::string version;  // of the program: a file of another one is not used
};

// Sums over all threads and states. Gauges of different threads are not of the same moment.
struct StoreStats {
  uint64_t counter[static_cast<uint32_t>(StoreCounter::kCount)] = {};
  uint64_t segment_size = 0;
  uint64_t segment_limit = 0;
  uint64_t memory_limit = 0;  // bytes, in whole segments
  uint64_t used_bytes = 0;    // segments that are neither free nor absent
  uint64_t index_bytes = 0;   // "hash_bytes"
  uint64_t index_pairs = 0;
  uint64_t free_segments = 0;
  uint64_t pinned_segments = 0;
  uint64_t reserved_segments = 0;
  uint64_t young_segments = 0;
  uint64_t main_segments = 0;
  uint64_t retired_segments = 0;
  uint64_t flushed_prefixes = 0;  // not swept yet, or due later

  uint64_t get(StoreCounter c) const { return counter[static_cast<uint32_t>(c)]; }
};

// The result of a scan over all segments.
struct SegmentCensus {
  uint64_t segments[static_cast<uint32_t>(SegmentState::kCount)] = {};
  uint64_t live_bytes = 0;  // of items in the index, padding included

  uint64_t get(SegmentState s) const { return segments[static_cast<uint32_t>(s)]; }
};

// An item as walk() shows it. Valid during the call.
struct WalkedItem {
  const Item* item;  // only the header is readable
  Bytes key;
  uint64_t footprint;  // bytes that it takes in the store
};

class StoreOwner {
 public:
  virtual ~StoreOwner() = default;
  StoreOwner(const StoreOwner&) = delete;
  StoreOwner& operator=(const StoreOwner&) = delete;

  // Everything stored before is dead. With 0 that is from now on; else from the beginning of the
  // last of `delay` seconds on (and what is stored during that second dies at its end). A later
  // call replaces one that has not taken effect.
  void flush_all(uint32_t delay = 0);
  void cancel_flush();  // the one that has not taken effect

  // The same for items whose keys begin with `prefix`: from now on, or when `delay` seconds have
  // passed. A later call for the same prefix replaces one that has not taken effect. Takes the same
  // time whatever is stored. kOutOfMemory: StoreConfig::flushed_prefixes_max prefixes have been
  // flushed and not yet swept, and nothing happens. REQUIRES: 1 to kFlushedPrefixSizeMax bytes.
  Status flush_prefix(Bytes prefix, uint32_t delay = 0);

  // Sets the limit, in whole segments. Maintenance moves there in small steps, for which nobody
  // waits: it adds free segments, or evicts and gives memory back to the system; with keep_all it
  // stops at what is stored. False: the limit is beyond the reach, or less than the index and a few
  // segments, and nothing changes. Outside batches.
  virtual bool set_memory_limit(uint64_t bytes) = 0;

  // Takes the same time however much is stored.
  virtual StoreStats stats() const = 0;

  // Calls `visit` for the live items in the next part of the index from `cursor` on (0 at first), a
  // few hundred at most, and advances `cursor` (any below StoreStats::index_pairs); after the last
  // part it is kWalkEnd. An item that is added or removed between the calls or during them may be
  // visited or not; one that is there all the time is visited, twice if the index grows meanwhile.
  // `visit` must not use the store. Outside batches. kNotSupported: the device has failed, and what
  // it stored is lost.
  virtual Status walk(uint64_t& cursor, const std::function<void(const WalkedItem&)>& visit) = 0;
  static constexpr uint64_t kWalkEnd = UINT64_MAX;

  // Copies the header of a key's item. That is no access. False: the key is not there or dead.
  virtual bool inspect(Bytes key, Item* header) = 0;

  // The observer wants evictions to be reported, from the return of this function on. A store of
  // the host always reports them. Outside batches.
  virtual void watch_evictions() {}

  // --- The clock of all requests. The owner's maintenance calls tick() once a second.
  virtual Clock clock() const = 0;
  void tick();  // now: reads the time; does delayed flushes that are due, and bulk expiry
  void shift_clock(int64_t seconds);  // debugtime, also while the clock stands
  void pause_clock(bool paused);      // debugtime: true: tick() does not change the time
  void set_clock(uint32_t now);       // REQUIRES: manual_clock

 protected:
  explicit StoreOwner(bool manual_clock);

  int64_t unix_start() const { return unix_start_; }  // see Clock
  // Continues the clock of a store that was stopped at second `now`. REQUIRES: no thread uses the
  // clock yet.
  void continue_clock(int64_t unix_start, uint32_t now, uint32_t flush_at);
  uint32_t flush_at() const { return flush_at_; }
  uint32_t read_clock() const;  // the current second, without a tick()
  std::chrono::steady_clock::time_point next_second() const;  // when tick() is due

 private:
  virtual void apply_clock(uint32_t now) = 0;  // writes this second into the store's memory
  virtual void apply_flush() = 0;
  virtual Status apply_prefix_flush(Bytes prefix, uint32_t due) = 0;
  virtual void apply_expiry() = 0;
  void move_clock();

  static constexpr int64_t kRuns = -1;

  const bool manual_clock_;
  int64_t unix_start_ = 0;
  std::chrono::steady_clock::time_point start_;  // the moment of kClockStart, on the second of
                                                 // time(2)
  std::atomic<int64_t> shift_{0};                // seconds
  std::atomic<int64_t> paused_at_{kRuns};        // seconds since the start; kRuns: the clock runs
  std::atomic<uint32_t> manual_now_{kClockStart};
  std::mutex clock_mutex_;  // guards what follows
  uint32_t flush_at_ = 0;   // a delayed flush_all ends what was stored before this second; 0: none
};

}  // namespace warpcache::store
