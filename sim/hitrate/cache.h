// SPDX-License-Identifier: Apache-2.0
// The interface of simulated caches: stores one number for each key, and evicts keys when it is
// full.
#ifndef WARPCACHE_SIM_HITRATE_CACHE_H_
#define WARPCACHE_SIM_HITRATE_CACHE_H_

#include <cstdint>

#include "base/hash.h"

namespace warpcache::sim {

inline constexpr uint64_t kNever = ~uint64_t{0};

// A key. Two keys may have the same hash, but not the same id.
struct Key {
  uint64_t id;
  uint64_t hash;
};

inline Key make_key(uint64_t seed, uint64_t id) {
  return {id, hash_key(seed, {reinterpret_cast<const uint8_t*>(&id), sizeof id})};
}

// The entry of a key.
struct Entry {
  uint32_t value = 0;       // returned by get()
  uint32_t value_size = 0;  // bytes; used by caches that are limited by bytes
  uint8_t key_size = 0;     // likewise
  uint16_t expiry = 0;      // expired from this second on; 0: never
};

// Not thread-safe.
class Cache {
 public:
  virtual ~Cache() = default;
  Cache() = default;
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // False: a miss. `value` may be null.
  virtual bool get(const Key& key, uint32_t* value) = 0;
  // Stores or replaces. A key that can never fit is not stored.
  virtual void set(const Key& key, const Entry& entry) = 0;
  // False: the key was not stored.
  virtual bool erase(const Key& key) = 0;

  virtual uint64_t items() const = 0;

  // What reclaiming has copied, in the unit of the capacity.
  virtual uint64_t moved() const { return 0; }

  // Of the items: bytes of keys and values; and bytes of memory that they and the index occupy. 0:
  // this cache does not count them.
  virtual uint64_t item_bytes() const { return 0; }
  virtual uint64_t used_bytes() const { return 0; }
  virtual uint64_t evictions() const { return 0; }  // likewise

  // Sets the time, for caches that remove expired entries before a request finds them. REQUIRES:
  // the time never goes back.
  virtual void set_clock(uint16_t second) { (void)second; }

  // The number of the request that asks for the next request's key again, for policies that know
  // the future.
  virtual void announce(uint64_t next_use) { (void)next_use; }

  // Prefetches the memory that get() and set() of a key with this hash read.
  virtual void prefetch(uint64_t hash) const { (void)hash; }
};

// One of `count` places, by the lower half of a hash. (Tags use higher bits: store/layout/set.h.)
inline uint32_t place_of(uint64_t hash, uint32_t count) {
  return static_cast<uint32_t>((hash & 0xffffffff) * count >> 32);
}

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_CACHE_H_
