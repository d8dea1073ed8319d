// SPDX-License-Identifier: Apache-2.0
// Which key is asked for next.
#ifndef WARPCACHE_SIM_TRACES_KEYS_H_
#define WARPCACHE_SIM_TRACES_KEYS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "workload/random.h"

namespace warpcache::sim {

class KeyChooser {
 public:
  virtual ~KeyChooser() = default;
  KeyChooser() = default;
  KeyChooser(const KeyChooser&) = delete;
  KeyChooser& operator=(const KeyChooser&) = delete;

  virtual uint64_t next(bench::Random* random) = 0;

  // Keys 0 .. count-1 exist from now on.
  virtual void inserted(uint64_t count) { (void)count; }
};

// Keys of one-hit wonders: never asked for before or after, beyond all others.
inline constexpr uint64_t kOneHitBase = uint64_t{1} << 39;

// By `text`, over the keys 0 .. keys-1; null, and *why, if it is none of these:
//   uniform
//   zipf:S            Zipf's law with exponent S, exact; ranks are scattered over the key numbers
//   zipf-ranks:S      the same unscattered: key 0 is the hottest
//   ycsb-zipf:S       YCSB's ZipfianGenerator, unscattered
//   ycsb-scrambled    YCSB's ScrambledZipfianGenerator (exponent 0.99)
//   latest:S          YCSB's SkewedLatestGenerator: ycsb-zipf counted back from the newest key
//   drift:S:N         zipf-ranks:S whose ranks move on by one key every N draws
// REQUIRES: 2 <= keys <= kKeysMax.
std::unique_ptr<KeyChooser> make_keys(const std::string& text, uint64_t keys, std::string* why);

inline constexpr uint64_t kKeysMax = uint64_t{1} << 31;

// Mixes into `inner` a share of one-hit wonders. REQUIRES: 0 <= share <= 1.
std::unique_ptr<KeyChooser> add_one_hits(std::unique_ptr<KeyChooser> inner, double share);

// Interrupts `inner` by scans: `length` keys in a row from a place drawn uniformly, so often that
// `share` of all draws belong to scans. REQUIRES: 0 <= share < 1, 0 < length <= keys.
std::unique_ptr<KeyChooser> add_scans(std::unique_ptr<KeyChooser> inner, double share,
                                      uint64_t length, uint64_t keys);

// Interrupts `inner` by loops: one of `count` ranges of `length` keys, spread evenly over all, is
// read from its beginning to its end, so often that `share` of all draws belong to loops. REQUIRES:
// 0 <= share < 1, 0 < length, 0 < count, count * length <= keys.
std::unique_ptr<KeyChooser> add_loops(std::unique_ptr<KeyChooser> inner, double share,
                                      uint64_t length, uint64_t count, uint64_t keys);

// Scatters the numbers 0 .. count-1 over themselves, one to one.
class Scatter {
 public:
  explicit Scatter(uint64_t count);
  // REQUIRES: number < count.
  uint64_t operator()(uint64_t number) const;

 private:
  uint64_t count_;
  uint64_t factor_;  // has no divisor in common with count_
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_TRACES_KEYS_H_
