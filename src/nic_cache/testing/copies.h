// SPDX-License-Identifier: Apache-2.0
//
// For tests: memory of copies without a kernel.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "base/mem.h"
#include "nic_cache/copy_table.h"

namespace warpcache::nic_cache {

class CopyPages {
 public:
  explicit CopyPages(uint32_t blocks)
      : control_(1),
        versions_(1),
        sets_(set_count_for(blocks)),
        blocks_(size_t{blocks} * kNicBlockBytes / 64) {}

  CopyMemory view() {
    return {.control = control_.data(),
            .versions = versions_.data(),
            .sets = sets_.data(),
            .set_count = static_cast<uint32_t>(sets_.size()),
            .blocks = blocks_.data()->bytes,
            .block_count = static_cast<uint32_t>(blocks_.size() * 64 / kNicBlockBytes)};
  }

  // The copy of a key; null: there is none. Looks into every set.
  const nic_copy* find(const std::string& key) const {
    for (const nic_set& set : sets_) {
      for (const uint32_t slot : set.slots) {
        if (slot == 0) continue;
        const auto* copy = reinterpret_cast<const nic_copy*>(blocks_.data() + slot);
        if (copy->key_size == key.size() &&
            std::memcmp(copy->text + 6, key.data(), key.size()) == 0)
          return copy;
      }
    }
    return nullptr;
  }

 private:
  struct alignas(64) Granule {
    uint8_t bytes[64];
  };
  std::vector<nic_control> control_;
  std::vector<nic_versions> versions_;
  std::vector<nic_set> sets_;
  std::vector<Granule> blocks_;
};

}  // namespace warpcache::nic_cache
