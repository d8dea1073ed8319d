// SPDX-License-Identifier: Apache-2.0
// Cuckoo hashing: a key is in one of two buckets, of one entry (Pagh and Rodler, 2004; the
// dissertation's CU) or of four (MemC3, NSDI 2013).
#ifndef WARPCACHE_SIM_HITRATE_CUCKOO_H_
#define WARPCACHE_SIM_HITRATE_CUCKOO_H_

#include <cstdint>
#include <vector>

#include "hitrate/open_table.h"
#include "workload/random.h"

namespace warpcache::sim {

// A new key whose buckets are full displaces one there, that one another in its other bucket, and
// so on, at most `kDepth` times. If no free entry is met, the one of all displaced that was used
// least lately is evicted, and what it had displaced goes back.
class Cuckoo final : public OpenTable {
 public:
  static constexpr uint32_t kDepth = 512;

  // REQUIRES: ways is 1 or 4, capacity >= 2 * ways. Rounded down to whole buckets.
  Cuckoo(uint32_t capacity, uint32_t ways, uint64_t seed);

  void prefetch(uint64_t hash) const override;

 private:
  struct Step {
    uint32_t place;  // where an entry was displaced
    uint32_t stamp;  // of the displaced
  };

  uint32_t find(const Key& key) const override;
  void insert(const TableEntry& entry) override;

  uint32_t first_bucket(uint64_t hash) const { return place_of(hash, buckets_); }
  // MemC3's idea: the other bucket follows from the one and a second part of the hash, by
  // MurmurHash2's constant, and the other way round. Ours works for any number of buckets.
  uint32_t other_bucket(uint64_t hash, uint32_t bucket) const {
    const uint32_t mixed = static_cast<uint32_t>(hash >> 32) * 0x5bd1e995u;
    const uint32_t sum = static_cast<uint32_t>(uint64_t{mixed} * buckets_ >> 32);
    return sum >= bucket ? sum - bucket : sum + buckets_ - bucket;
  }
  uint32_t find_in(uint32_t bucket, const Key& key) const;
  uint32_t free_in(uint32_t bucket) const;
  // The end of the chain: one entry is to be dropped.
  void give_up(const TableEntry& last);

  uint32_t ways_;
  uint32_t buckets_;
  bench::Random random_;
  std::vector<Step> path_;
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_CUCKOO_H_
