// SPDX-License-Identifier: Apache-2.0
// The server's store (src/store) as a simulated cache, with its index, segments, eviction and
// expiry. Only the bytes of values are not written.
#ifndef WARPCACHE_SIM_HITRATE_REAL_STORE_H_
#define WARPCACHE_SIM_HITRATE_REAL_STORE_H_

#include <cstdint>
#include <memory>

#include "hitrate/cache.h"
#include "store/host/store.h"
#include "workload/item_maker.h"

namespace warpcache::sim {

class RealStore final : public Cache {
 public:
  // `memory`: bytes for everything, as -m. Null if the system refuses the memory, or
  // the store's least is more.
  // `segment_size`: bytes, a power of two; 0: as the server chooses.
  static std::unique_ptr<RealStore> create(uint64_t memory, uint64_t seed,
                                           uint64_t segment_size = 0);
  ~RealStore() override;

  bool get(const Key& key, uint32_t* value) override;
  void set(const Key& key, const Entry& entry) override;
  bool erase(const Key& key) override;
  uint64_t items() const override;
  uint64_t moved() const override;
  uint64_t item_bytes() const override;
  uint64_t used_bytes() const override;
  uint64_t evictions() const override;
  void set_clock(uint16_t second) override;

 private:
  RealStore(std::unique_ptr<store::Store> store, uint64_t seed);
  Status try_set(Bytes name, const Entry& entry);

  std::unique_ptr<store::Store> store_;
  store::StoreRef ref_;
  store::ThreadContext thread_;
  bench::ItemMaker maker_;
  uint32_t now_ = store::kClockStart;
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_REAL_STORE_H_
