// SPDX-License-Identifier: Apache-2.0
// A batch of GET requests and how one of them is served, with the store's own code, on the host and
// on a device.
#pragma once

#include <cstdint>

#include "store/store_ref.h"

namespace warpcache::edge_sim {

inline constexpr uint32_t kReplyWords =
    16;  // 4 bytes each: value size, then the value's first bytes

struct GetBatch {
  store::StoreRef store;
  const uint8_t* keys;        // one after the other
  const uint32_t* key_first;  // count + 1 offsets
  uint32_t* replies;          // kReplyWords each; a miss has kMissed as its value size
  uint32_t count;
  uint32_t now;
};

inline constexpr uint32_t kMissed = 0xffffffff;

// REQUIRES: `request` is less than `batch.count`; the store does not change.
WC_HD inline void serve_get(const GetBatch& batch, uint32_t request) {
  const uint32_t begin = batch.key_first[request];
  const Bytes key = {batch.keys + begin, batch.key_first[request + 1] - begin};
  uint32_t* const reply = batch.replies + request * kReplyWords;
  const store::Found found = batch.store.find(batch.store.hash(key), key);
  if (found.item == nullptr || !batch.store.alive(*found.item, batch.now)) {
    reply[0] = kMissed;
    return;
  }
  reply[0] = found.item->value_size;
  const Bytes value = batch.store.pieces(*found.item).first();
  for (uint32_t word = 0; word + 1 < kReplyWords && word * 4 < value.size; ++word) {
    uint32_t bits = 0;
    for (uint32_t b = 0; b < 4 && word * 4 + b < value.size; ++b) {
      bits |= uint32_t{value.data[word * 4 + b]} << (8 * b);
    }
    reply[word + 1] = bits;
  }
}

}  // namespace warpcache::edge_sim
