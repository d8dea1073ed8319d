// SPDX-License-Identifier: Apache-2.0
//
// The outstanding misses, as a small content-addressed table, which makes read-allocate safe. A
// write that passes the NIC marks the outstanding misses of its key as dead; their replies, which
// may have the old value, are not cached. (Fukuda et al. describe the problem in section 4.2 and
// leave the solution open in section 7.)
#pragma once

#include <cstdint>
#include <vector>

namespace warpcache::nic {

class InflightMisses {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  explicit InflightMisses(uint32_t capacity);

  // Adds a miss of `key`. Returns its place, or kNone if the table is full: then the reply must not
  // be cached.
  uint32_t start(uint32_t key);

  // Marks the misses of `key` as dead. Returns their number.
  uint32_t kill(uint32_t key);

  // Removes the miss. Returns whether it was still alive. REQUIRES: `place` is from start(); called
  // once for it.
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
