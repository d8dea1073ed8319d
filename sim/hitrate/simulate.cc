// SPDX-License-Identifier: Apache-2.0
#include "hitrate/simulate.h"

#include <algorithm>
#include <array>

namespace warpcache::sim {
namespace {

constexpr size_t kBatch = 1024;
constexpr size_t kAhead = 16;  // requests between prefetching and using

// Each key's check is its own for ever, so that every hit can be checked.
uint32_t check_of(uint64_t id) { return static_cast<uint32_t>(id * 0x9e3779b97f4a7c15 >> 48); }

class Simulation {
 public:
  Simulation(Cache* cache, const SimulateOptions& options) : cache_(cache), options_(options) {}

  void run(const Request& request, const Key& key, Counts* counts) {
    switch (request.operation) {
      case Operation::kGet:
        return get(request, key, counts);
      case Operation::kSet:
        ++counts->sets;
        return set(request, key);
      case Operation::kDelete:
        ++counts->deletes;
        cache_->erase(key);
        return;
    }
  }

  // After `done` requests.
  void move_clock(uint64_t done) {
    if (options_.requests_per_s == 0) return;
    now_ = static_cast<uint16_t>(kFirstSecond + done / options_.requests_per_s);
    cache_->set_clock(now_);
  }

  static constexpr uint16_t kFirstSecond = 2;  // as the store counts

 private:
  uint16_t expiry_of(const Key& key) const {
    const bool expires = options_.ttl_s != 0 && key.id % options_.ttl_every == 0;
    return expires ? static_cast<uint16_t>(std::min(now_ + options_.ttl_s, 0xffffu)) : 0;
  }

  void set(const Request& request, const Key& key) {
    const uint16_t expiry = expiry_of(key);
    const uint32_t value = check_of(key.id) << 16 | expiry;
    cache_->set(key, {value, request.value_size, request.key_size, expiry});
  }

  // What has expired is dropped when it is met, as memcached does; it is a miss.
  bool take_if_expired(const Key& key, uint32_t value) {
    const uint32_t expiry = value & 0xffff;
    if (expiry == 0 || expiry > now_) return false;
    cache_->erase(key);
    return true;
  }

  void get(const Request& request, const Key& key, Counts* counts) {
    ++counts->gets;
    const uint64_t bytes = uint64_t{request.key_size} + request.value_size;
    counts->get_bytes += bytes;
    uint32_t value = 0;
    if (!cache_->get(key, &value) || take_if_expired(key, value)) return set(request, key);
    ++counts->hits;
    counts->hit_bytes += bytes;
    if (value >> 16 != check_of(key.id)) ++counts->wrong;
  }

  Cache* cache_;
  const SimulateOptions& options_;
  uint16_t now_ = kFirstSecond;
};

}  // namespace

Counts simulate(Trace* trace, Cache* cache, const SimulateOptions& options) {
  Counts counts;
  Counts uncounted;
  std::array<Request, kBatch> requests;
  std::array<Key, kBatch> keys;
  Simulation simulation(cache, options);
  uint64_t done = 0;
  while (const size_t now = trace->read(requests.data(), kBatch)) {
    for (size_t i = 0; i < now; ++i) keys[i] = make_key(options.hash_seed, requests[i].key);
    for (size_t i = 0; i < now; ++i, ++done) {
      if (i + kAhead < now) cache->prefetch(keys[i + kAhead].hash);
      if (!options.next_uses.empty()) cache->announce(options.next_uses[done]);
      simulation.run(requests[i], keys[i], done < options.warm_up ? &uncounted : &counts);
    }
    simulation.move_clock(done);
    if (options.progress) options.progress(done);
  }
  counts.wrong += uncounted.wrong;
  return counts;
}

}  // namespace warpcache::sim
