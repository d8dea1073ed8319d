// SPDX-License-Identifier: Apache-2.0
//
// What the NIC does with each command (Fukuda et al., sections 3 and 5): answers from its cache, or
// from the host behind it, and keeps the two consistent. The host handles what it is sent in the
// order in which it was sent; its replies to misses may come back later and in any order.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "nic_cache/cache.h"
#include "nic_cache/host.h"
#include "nic_cache/inflight.h"

namespace warpcache::nic {

// Whether the host's reply to a missed GET is cached.
enum class ReadAllocate : uint8_t {
  kNone,    // the paper's hardware
  kUnsafe,  // always: an older value can replace what a SET has stored meanwhile
  kSafe,    // unless a write to its key has passed since the miss
};

enum class WritePolicy : uint8_t {
  kBack,     // section 3: a SET ends in the NIC, the host gets it when it is evicted
  kForward,  // section 5: a SET is stored in the NIC and sent to the host
};

struct Policies {
  ReadAllocate allocate = ReadAllocate::kSafe;
  WritePolicy write = WritePolicy::kForward;
  uint32_t inflight_max = 256;  // misses that kSafe can follow at once
};

struct FrontCounters {
  uint64_t gets = 0;
  uint64_t hits = 0;
  uint64_t sets = 0;
  uint64_t oversize_sets = 0;  // too large for the cache, left to the host
  uint64_t deletes = 0;
  uint64_t writebacks = 0;      // items sent to the host when they left the cache
  uint64_t fills = 0;           // replies cached
  uint64_t killed = 0;          // replies not cached: a write had passed
  uint64_t untracked = 0;       // replies not cached: too many misses were under way
  uint64_t oversize_fills = 0;  // replies not cached: too large
};

// A GET on its way to the host.
struct Miss {
  uint32_t key = 0;
  uint32_t hash = 0;
  uint32_t place = InflightMisses::kNone;
  std::optional<Item> reply;  // what the host found, and will say
};

class Front {
 public:
  // The host outlives this.
  Front(const Geometry& geometry, const Policies& policies, Host* host);

  // A GET, up to where the NIC knows: the value of a hit, or nothing and the miss to finish.
  std::optional<uint32_t> get(uint32_t key, uint32_t hash, Miss* miss);

  // The host's reply to a miss passes the NIC. Each miss is finished once.
  void finish(const Miss& miss);

  void set(uint32_t key, uint32_t hash, uint32_t value, uint32_t bytes);
  void erase(uint32_t key, uint32_t hash);

  const NicCache& cache() const { return cache_; }
  const FrontCounters& counters() const { return counters_; }

 private:
  void store(const Item& item, uint32_t hash);
  void drop(uint32_t key, uint32_t hash);

  NicCache cache_;
  Policies policies_;
  Host* host_;
  InflightMisses inflight_;
  std::vector<Item> gone_;  // of one store(); kept for its memory
  FrontCounters counters_;
};

std::string_view name(ReadAllocate allocate);
std::string_view name(WritePolicy write);
std::optional<ReadAllocate> read_allocate_of(std::string_view name);
std::optional<WritePolicy> write_policy_of(std::string_view name);

}  // namespace warpcache::nic
