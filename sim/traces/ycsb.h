// SPDX-License-Identifier: Apache-2.0
// The item choosers of the Yahoo! Cloud Serving Benchmark (Cooper et al., SoCC 2010), drawn as YCSB
// draws them: they are not quite Zipf's law, and papers that say "YCSB Zipf" mean these.
#ifndef WARPCACHE_SIM_TRACES_YCSB_H_
#define WARPCACHE_SIM_TRACES_YCSB_H_

#include <cstdint>

namespace warpcache::sim {

// The sum of 1 / rank^theta over the ranks 1 .. count.
double zeta(uint64_t count, double theta);

// FNV-1a over the eight bytes of `value`, lowest first, without its sign: how YCSB scatters ranks.
uint64_t ycsb_hash(uint64_t value);

// YCSB's ZipfianGenerator: ranks 0 .. items-1 by the approximation of Gray et al., "Quickly
// Generating Billion-Record Synthetic Databases" (SIGMOD 1994). One random number and at most one
// power a draw, no table. Ranks 0 and 1 have exactly the probabilities of Zipf's law; the others
// follow its integral.
class YcsbZipfian {
 public:
  // REQUIRES: items >= 2, 0 < theta < 1.
  YcsbZipfian(uint64_t items, double theta);
  // With zeta(items, theta) known: YCSB has it as a constant for its 10^10 items.
  YcsbZipfian(uint64_t items, double theta, double zeta_items);

  // REQUIRES: 0 <= u < 1.
  uint64_t rank_at(double u) const;

  // The probability of `rank`, by this generator's own arithmetic: what rank_at() has for
  // uniformly drawn `u`. REQUIRES: rank < items.
  double probability(uint64_t rank) const;

  // More items from now on, at the price of one power each. REQUIRES: items >= the present ones.
  void grow(uint64_t items);

  uint64_t items() const { return items_; }

 private:
  void prepare();
  double below(uint64_t rank) const;

  uint64_t items_;
  double theta_;
  double zeta_;
  double second_;  // where the draws of rank 1 end, in units of 1 / zeta_
  double alpha_;
  double eta_;
};

// YCSB's ScrambledZipfianGenerator: ranks of 10^10 items, hashed onto `keys` ones. So each key has
// a share of the ranks beyond the number of keys, a third of all draws, and a few keys two hot
// ranks.
class YcsbScrambledZipfian {
 public:
  explicit YcsbScrambledZipfian(uint64_t keys);

  uint64_t key_at(double u) const { return ycsb_hash(zipfian_.rank_at(u)) % keys_; }

  static constexpr uint64_t kItems = 10'000'000'000;
  static constexpr double kTheta = 0.99;
  static constexpr double kZeta = 26.46902820178302;  // as YCSB states it

 private:
  YcsbZipfian zipfian_;
  uint64_t keys_;
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_TRACES_YCSB_H_
