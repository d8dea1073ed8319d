// SPDX-License-Identifier: Apache-2.0
// The sizes of items. A size depends only on the key's number, so it can be recomputed when an item
// is returned.
#ifndef WARPCACHE_BENCH_WORKLOAD_SIZES_H_
#define WARPCACHE_BENCH_WORKLOAD_SIZES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace warpcache::bench {

inline constexpr uint32_t kKeySizeMin = 8;  // an ItemMaker needs this many bytes for a key's number
inline constexpr uint32_t kKeySizeMax = 250;
inline constexpr uint32_t kValueSizeMax = 1000 * 1000;  // below both servers' default -I of 1 MiB

struct ItemSizes {
  uint32_t key;
  uint32_t value;
};

// Quantiles of the sizes that "Workload Analysis of a Large-Scale Key-Value Store" (SIGMETRICS
// 2012) gives for Facebook's ETC pool, before rounding and clamping. REQUIRES: 0 < u < 1.
double etc_key_size(double u);
double etc_value_size(double u);

class Sizes {
 public:
  // Reads "etc", "fixed:KEY:VALUE", "uniform:KEY:MIN:MAX", "steps:KEY:VALUE=WEIGHT,..." or
  // "keys:VALUE:KEY=WEIGHT,..." (bytes; each size is as probable as its weight). False, and *why,
  // if `text` is none of these or a size is out of bounds.
  static bool parse(const std::string& text, Sizes* out, std::string* why);

  ItemSizes of(uint64_t seed, uint64_t id) const {
    return are_fixed() ? ItemSizes{key_, value_min_} : varied(seed, id);
  }

  // Whether all keys have the same.
  bool are_fixed() const { return kind_ == Kind::kUniform && value_min_ == value_max_; }

  uint32_t value_max() const { return kind_ == Kind::kEtc ? kValueSizeMax : value_max_; }

  // Whether of() is too slow to be called for each request: then keep its results.
  bool costly() const { return kind_ == Kind::kEtc; }

 private:
  struct Step {
    uint32_t size;
    uint32_t end;  // of its numbers, among the weights
  };
  enum class Kind { kEtc, kUniform, kSteps, kKeySteps };

  ItemSizes varied(uint64_t seed, uint64_t id) const;
  bool parse_steps(Kind kind, std::string_view text, uint32_t size_min, uint32_t size_max);
  uint32_t largest_step() const;

  Kind kind_ = Kind::kEtc;
  uint32_t key_ = 0;
  uint32_t value_min_ = 0;
  uint32_t value_max_ = 0;
  std::vector<Step> steps_;
};

}  // namespace warpcache::bench

#endif  // WARPCACHE_BENCH_WORKLOAD_SIZES_H_
