// SPDX-License-Identifier: Apache-2.0
//
// The owner of a store in host memory: memory, threads, maintenance. Requests use the view that
// ref() returns (store_ref.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "store/host/owner.h"
#include "store/host/tables.h"

namespace warpcache::store {

class Maintenance;

class Store final : public StoreOwner {
 public:
  // kOutOfMemory: the system refuses the address space.
  // `why` gets the reason as a sentence where it is that of StoreConfig::file.
  static Status create(const StoreConfig& config, std::unique_ptr<Store>* store,
                       std::string* why = nullptr);
  ~Store() override;  // REQUIRES: no thread is registered, and no batch is in progress

  StoreRef ref() const { return {core_}; }

  // Registers a thread that will use ref(). kOutOfMemory: readers_max are registered.
  Status register_thread(ThreadContext* thread);
  // REQUIRES: `thread` is outside its epoch.
  void unregister_thread(ThreadContext* thread);

  // After kDeferred: reclaims until an item of `bytes` (item_bytes()) can be allocated, and waits
  // for batches of other threads if needed. kOutOfMemory: answer that to the client. Outside
  // batches.
  Status reclaim(uint64_t bytes);

  // --- Reservations: see reservation.h. Outside batches. reserve(): as Engine::reserve().
  // `thread`: that in whose batches it will be published; null: not known.
  Status reserve(uint8_t key_size, uint32_t value_size, uint32_t* id,
                 const ThreadContext* thread = nullptr);
  // Contiguous writable bytes of the value from `offset` on. REQUIRES: offset < value_size; the
  // caller owns the id.
  MutableBytes reservation_window(uint32_t id, uint32_t offset) const;
  // Does nothing if the reservation is used up.
  void abandon_reservation(uint32_t id);

  bool set_memory_limit(uint64_t bytes) override;
  StoreStats stats() const override { return tables_.stats(core_, counters_); }
  // Scans every segment.
  SegmentCensus census() const { return tables_.census(core_); }
  Status walk(uint64_t& cursor, const std::function<void(const WalkedItem&)>& visit) override;
  bool inspect(Bytes key, Item* header) override;
  // Calls `visit` with the live item of a key while its pair is locked, so that nobody changes or
  // removes it meanwhile. `visit` must be short and must not use the store. That is no access.
  // False: the key is not there or dead.
  bool visit_locked(Bytes key, const std::function<void(const Item&)>& visit);
  // Counts a read of a key by others, for eviction: one that found a copy of its item.
  void note_read(Bytes key);
  Clock clock() const override { return ref().clock(); }

  // With StoreConfig::file: a sentence about the file for the log, or "".
  const std::string& file_note() const;
  // Whether the items of an earlier process were taken over.
  bool took_over() const;
  // Ends maintenance and writes the description beside the file, so that the next process takes the
  // items over. Returns an error as one sentence, or "". REQUIRES: StoreConfig::file; no thread is
  // registered; nothing is called afterwards.
  [[nodiscard]] std::string save();

  // One round of the maintenance thread: frees retired segments, reclaims up to the low-water mark
  // and moves the limit towards its target. Outside batches.
  void maintain();

 private:
  explicit Store(const StoreConfig& config);
  Status start(std::string* why);
  bool map_arena(Geometry& geometry, std::string* why);
  void take_over();
  void apply_clock(uint32_t now) override;
  void apply_flush() override;
  Status apply_prefix_flush(Bytes prefix, uint32_t due) override;
  void apply_expiry() override;

  struct Memory;
  StoreConfig config_;
  std::unique_ptr<Memory> memory_;
  Tables tables_;
  Core core_;
  ThreadCounters* counters_ = nullptr;  // one for each reader
  std::unique_ptr<Maintenance> maintenance_;
};

}  // namespace warpcache::store
