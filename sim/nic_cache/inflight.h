// SPDX-License-Identifier: Apache-2.0
//
// The misses that the host has not answered yet, as a small content-addressed table: what makes
// read-allocate safe. A write that passes the NIC kills the misses of its key, so that their
// replies, which may carry what was there before, are not cached (Fukuda et al. name the problem in
// section 4.2 and leave the solution open in section 7).
#pragma once

#include <cstdint>
#include <vector>

namespace warpcache::nic {

class InflightMisses {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  explicit InflightMisses(uint32_t capacity);

  // Remembers a miss of `key`. Its place, or kNone if as many as can be are under way: then the
  // reply must not be cached.
  uint32_t start(uint32_t key);

  // The misses of `key` end dead. How many there were.
  uint32_t kill(uint32_t key);

  // Forgets the miss. Whether it was still alive. REQUIRES: a place that start() gave, once.
  bool finish(uint32_t place);

  uint32_t count() const { return static_cast<uint32_t>(places_.size() - free_.size()); }

 private:
  struct Place {
    uint32_t key = 0;
    bool used = false;
    bool alive = false;
  };

  std::vector<Place> places_;
  std::vector<uint32_t> free_;
};

}  // namespace warpcache::nic
