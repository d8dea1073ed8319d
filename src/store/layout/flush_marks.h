// SPDX-License-Identifier: Apache-2.0
//
// What a store knows of flushes, in memory that requests can reach. See index/flushed.h for reading
// it and reclaim/flush.h for changing it.
#pragma once

#include <cstdint>

namespace warpcache::store {

// Prefixes that can be flushed and not yet swept at the same time, at most. A look-up of an item
// that is older than the last flush compares them one after the other.
inline constexpr uint32_t kFlushedPrefixesMax = 256;
inline constexpr uint32_t kFlushedPrefixSizeMax = 250;  // bytes: no key is longer

// Items of an earlier generation than a mark's are dead, as far as the mark concerns them.
// Generations are compared as distances, so that their counter may wrap.
struct FlushMark {
  uint32_t generation;  // of the last flush, which may be about to take effect
  uint32_t before;      // of the one before that
};

// A prefix that has been flushed or will be. A slot is free when all items are of its mark's
// generation or later, and no flush is due.
struct alignas(16) FlushedPrefix {
  uint8_t text[256];
  FlushMark mark;
  uint32_t size;  // bytes of `text`
  uint32_t due;   // it will be flushed at this server second; 0: it will not
};
static_assert(sizeof(FlushedPrefix) == 272);

}  // namespace warpcache::store
