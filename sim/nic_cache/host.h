// SPDX-License-Identifier: Apache-2.0
//
// The memcached server behind the NIC, as a store of a bounded number of bytes. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nic_cache/cache.h"

namespace warpcache::nic {

struct HostCounters {
  uint64_t gets = 0;
  uint64_t get_misses = 0;
  uint64_t sets = 0;
  uint64_t deletes = 0;
  uint64_t evictions = 0;
};

class Host {
 public:
  Host() = default;
  virtual ~Host() = default;
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // The key's item (not dirty), or nothing. Counts as a use.
  std::optional<Item> get(uint32_t key);
  void set(const Item& item);
  void erase(uint32_t key);

  const HostCounters& counters() const { return counters_; }

 protected:
  void count_eviction() { ++counters_.evictions; }

 private:
  virtual std::optional<Item> find(uint32_t key) = 0;
  virtual void store(const Item& item) = 0;
  virtual void remove(uint32_t key) = 0;

  HostCounters counters_;
};

// Evicts in exact LRU order.
class LruHost final : public Host {
 public:
  // Keys are the numbers below `keys`. `capacity_bytes` counts keys and values, 0 is no limit.
  LruHost(uint32_t keys, uint64_t capacity_bytes);

  uint64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    uint32_t value = 0;
    uint32_t bytes = 0;  // 0: not stored
    uint32_t newer = 0;  // places in entries_; the first entry closes the circle
    uint32_t older = 0;
  };

  std::optional<Item> find(uint32_t key) override;
  void store(const Item& item) override;
  void remove(uint32_t key) override;

  Entry& of(uint32_t key) { return entries_[key + 1]; }
  void link_newest(uint32_t place);
  void unlink(uint32_t place);
  void drop(uint32_t place);

  uint64_t capacity_bytes_;
  uint64_t bytes_ = 0;
  std::vector<Entry> entries_;  // by key + 1; the first is the list's end
};

}  // namespace warpcache::nic
