// SPDX-License-Identifier: Apache-2.0
#include "hitrate/simulate.h"

#include <array>

namespace warpcache::sim {
namespace {

constexpr size_t kBatch = 1024;
constexpr size_t kAhead = 16;                     // requests between prefetching and using
constexpr uint64_t kProgressEvery = 1000 * kBatch;  // requests

// Each key's value is its own for ever, so that every hit can be checked.
uint32_t value_of(uint64_t id) { return static_cast<uint32_t>(id * 0x9e3779b97f4a7c15 >> 32); }

class Simulation {
 public:
  Simulation(Cache* cache, Counts* counts) : cache_(cache), counts_(counts) {}

  void run(const Request& request, const Key& key) {
    const Entry entry = {value_of(key.id), request.value_size, request.key_size};
    switch (request.operation) {
      case Operation::kGet:
        return get(key, entry);
      case Operation::kSet:
        ++counts_->sets;
        return cache_->set(key, entry);
      case Operation::kDelete:
        ++counts_->deletes;
        cache_->erase(key);
        return;
    }
  }

 private:
  void get(const Key& key, const Entry& entry) {
    ++counts_->gets;
    uint32_t value = 0;
    if (!cache_->get(key, &value)) return cache_->set(key, entry);
    ++counts_->hits;
    if (value != entry.value) ++counts_->wrong;
  }

  Cache* cache_;
  Counts* counts_;
};

}  // namespace

Counts simulate(Trace* trace, Cache* cache, const SimulateOptions& options) {
  Counts counts;
  Counts uncounted;
  std::array<Request, kBatch> requests;
  std::array<Key, kBatch> keys;
  uint64_t done = 0;
  while (const size_t now = trace->read(requests.data(), kBatch)) {
    for (size_t i = 0; i < now; ++i) keys[i] = make_key(options.hash_seed, requests[i].key);
    for (size_t i = 0; i < now; ++i, ++done) {
      if (i + kAhead < now) cache->prefetch(keys[i + kAhead].hash);
      Simulation(cache, done < options.warm_up ? &uncounted : &counts).run(requests[i], keys[i]);
    }
    if (options.progress && done % kProgressEvery == 0) options.progress(done);
  }
  counts.wrong += uncounted.wrong;
  return counts;
}

}  // namespace warpcache::sim
