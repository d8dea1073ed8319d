// SPDX-License-Identifier: Apache-2.0
// Requests that are drawn.
#ifndef WARPCACHE_SIM_TRACES_GENERATED_H_
#define WARPCACHE_SIM_TRACES_GENERATED_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "traces/keys.h"
#include "traces/trace.h"
#include "traces/workload.h"
#include "workload/sizes.h"

namespace warpcache::sim {

// The sizes of keys by their numbers, kept where they cost too much to compute.
class SizeTable {
 public:
  SizeTable(const bench::Sizes& sizes, uint64_t seed, uint64_t keys);

  bench::ItemSizes of(uint64_t key) const {
    return key < kept_.size() ? kept_[key] : sizes_.of(seed_, key);
  }

 private:
  bench::Sizes sizes_;
  uint64_t seed_;
  std::vector<bench::ItemSizes> kept_;
};

class GeneratedTrace final : public Trace {
 public:
  GeneratedTrace(const Workload& workload, const bench::Sizes& sizes,
                 std::unique_ptr<KeyChooser> keys);

  size_t read(Request* out, size_t count) override;
  uint64_t length() const override { return length_; }

 private:
  Request next();

  std::unique_ptr<KeyChooser> keys_;
  SizeTable sizes_;
  Mix mix_;
  bench::Random random_;
  uint64_t key_count_;
  uint64_t length_;
  uint64_t done_ = 0;
};

class LoadTrace final : public Trace {
 public:
  LoadTrace(const Workload& workload, const bench::Sizes& sizes);

  size_t read(Request* out, size_t count) override;
  uint64_t length() const override { return key_count_; }

 private:
  SizeTable sizes_;
  uint64_t key_count_;
  uint64_t done_ = 0;
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_TRACES_GENERATED_H_
