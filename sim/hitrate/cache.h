// SPDX-License-Identifier: Apache-2.0
// What every simulated cache is: it stores one number a key, and forgets keys when it is full.
#ifndef WARPCACHE_SIM_HITRATE_CACHE_H_
#define WARPCACHE_SIM_HITRATE_CACHE_H_

#include <cstdint>

#include "base/hash.h"

namespace warpcache::sim {

// A key as caches see it. Two keys may have the same hash; only the same key has the same id.
struct Key {
  uint64_t id;
  uint64_t hash;
};

inline Key make_key(uint64_t seed, uint64_t id) {
  return {id, hash_key(seed, {reinterpret_cast<const uint8_t*>(&id), sizeof id})};
}

// What is stored for a key.
struct Entry {
  uint32_t value = 0;       // given back by get()
  uint32_t value_size = 0;  // bytes; matter to caches that are limited by bytes
  uint8_t key_size = 0;     // likewise
  uint16_t expiry = 0;      // the second from which on it is dead; 0: never
};

// For one thread.
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
  // False: it was not there.
  virtual bool erase(const Key& key) = 0;

  virtual uint64_t items() const = 0;

  // What reclaiming has copied, in the unit of the capacity.
  virtual uint64_t moved() const { return 0; }

  // The time, for caches that know what has expired before they are asked for it. Never goes back.
  virtual void set_clock(uint16_t second) { (void)second; }

  // Brings memory near that get() and set() of a key with this hash will read.
  virtual void prefetch(uint64_t hash) const { (void)hash; }
};

// One of `count` places, by the lower half of a hash. (Tags use higher bits: store/layout/set.h.)
inline uint32_t place_of(uint64_t hash, uint32_t count) {
  return static_cast<uint32_t>((hash & 0xffffffff) * count >> 32);
}

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_CACHE_H_
