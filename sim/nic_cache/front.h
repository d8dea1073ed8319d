// SPDX-License-Identifier: Apache-2.0
//
// Processes commands in the NIC (Fukuda et al., sections 3 and 5): answers from its cache or from
// the host, and keeps the two consistent. The host processes requests in the order of sending; its
// replies to misses may arrive later and in any order.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/frequency_sketch.h"
#include "nic_cache/cache.h"
#include "nic_cache/host.h"
#include "nic_cache/inflight.h"

namespace warpcache::nic {

// Whether the host's reply to a missed GET is cached.
enum class ReadAllocate : uint8_t {
  kNone,    // the paper's hardware
  kUnsafe,  // always: an older value can replace the value of a later SET
  kSafe,    // unless a write to its key has passed since the miss
};

enum class WritePolicy : uint8_t {
  kBack,        // section 3: a SET is stored in the NIC; the host gets it at its eviction
  kForward,     // section 5: a SET is stored in the NIC and sent to the host
  kInvalidate,  // the host gets a SET, and the NIC drops the item: the server's
                // --nic-cache-write=forward
  kUpdate,      // likewise, but an item that is in the NIC is replaced there: =through
};

// Which items are cached.
enum class Admission : uint8_t {
  kAll,
  kFrequent,  // where one evicts another, those that were missed before: --nic-cache-fill=frequent
};

struct Policies {
  ReadAllocate allocate = ReadAllocate::kSafe;
  WritePolicy write = WritePolicy::kForward;
  Admission admission = Admission::kAll;  // of fills
  uint32_t inflight_max = 256;            // outstanding misses that kSafe can track
};

struct FrontCounters {
  uint64_t gets = 0;
  uint64_t hits = 0;
  uint64_t sets = 0;
  uint64_t oversize_sets = 0;  // too large for the cache, left to the host
  uint64_t deletes = 0;
  uint64_t writebacks = 0;      // items sent to the host when they left the cache
  uint64_t fills = 0;           // replies cached
  uint64_t killed = 0;          // replies not cached: a write to the key came in between
  uint64_t untracked = 0;       // replies not cached: too many outstanding misses
  uint64_t oversize_fills = 0;  // replies not cached: too large
  uint64_t rare = 0;            // replies not cached: asked for once
};

// A GET that missed and is sent to the host.
struct Miss {
  uint32_t key = 0;
  uint32_t hash = 0;
  uint32_t place = InflightMisses::kNone;
  std::optional<Item> reply;  // the host's reply, which arrives later
  bool admitted = true;       // cached whatever it evicts
};

class Front {
 public:
  // REQUIRES: the host outlives this object.
  Front(const Geometry& geometry, const Policies& policies, Host* host);

  // Starts a GET. Returns the value of a hit, or nothing; then *miss must be finished.
  std::optional<uint32_t> get(uint32_t key, uint32_t hash, Miss* miss);

  // Processes the host's reply to a miss. REQUIRES: called once for each miss.
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
  FrequencySketch asked_;   // misses of keys
  std::vector<Item> gone_;  // evicted by one store(); a member to reuse its memory
  FrontCounters counters_;
};

std::string_view name(ReadAllocate allocate);
std::string_view name(WritePolicy write);
std::string_view name(Admission admission);
std::optional<ReadAllocate> read_allocate_of(std::string_view name);
std::optional<WritePolicy> write_policy_of(std::string_view name);
std::optional<Admission> admission_of(std::string_view name);

}  // namespace warpcache::nic
