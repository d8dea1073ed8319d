// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ablation/hopscotch.h"
#include "store/index/index.h"

namespace warpcache::ablation {

// A copy of a device's store in host memory, in which the host's code looks keys up.
class Shadow {
 public:
  // REQUIRES: nobody writes to the store; it is wholly in device memory. Throws std::runtime_error,
  // std::bad_alloc.
  explicit Shadow(const store::Core& core);

  uint32_t pairs() const { return shared_.pair_count; }
  // Slots of the sets, without overflow sets.
  uint64_t slots() const { return uint64_t{pairs()} * 2 * store::kWays; }

  // Throws std::runtime_error if the key is not there.
  Located locate(Bytes key) const;

 private:
  class Sectors;

  const store::Item* find_in_set(const store::Set* set, uint64_t hash, Bytes key,
                                 Sectors& sectors) const;
  const store::Item* find(uint64_t hash, Bytes key, Sectors& sectors) const;

  store::Shared shared_;
  store::Core core_;  // its arena is the copy; its other parts are the device's
  std::vector<uint8_t> arena_;
};

}  // namespace warpcache::ablation
