// SPDX-License-Identifier: Apache-2.0
//
// The kernels, as the host starts them. All frames and replies lie in the device's memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "store/layout/core.h"

namespace warpcache::ablation {

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

// Frames in slots of the same size, one behind the other, and likewise the replies. Slots are
// multiples of 16 bytes.
struct GetBatch {
  const uint8_t* input = nullptr;
  uint32_t slot_bytes = 0;
  uint8_t* replies = nullptr;
  uint32_t reply_slot_bytes = 0;
  uint32_t* sizes = nullptr;  // of the reply frames; 0: not answered
  uint32_t count = 0;
  uint32_t now = 0;  // store::Clock::now
  uint16_t udp_port = 0;
};

// Keys in slots, each two bytes behind the slot's begin, as a frame's key lies.
struct LookupBatch {
  const uint8_t* keys = nullptr;
  uint32_t slot_bytes = 0;  // a multiple of 16
  uint32_t key_size = 0;
  uint32_t count = 0;
  unsigned long long* sum = nullptr;      // the offsets of all values are added to it
  unsigned long long* offsets = nullptr;  // of the values, one a key; 0: not found; may be null
};
inline constexpr uint32_t kKeyInSlot = 2;

// Hopscotch hashing (Herlihy, Shavit, Tzafrir, DISC 2008), without the bitmaps: a key lies in one
// of the 16 entries from its home on, and all of these are searched, as in MemcachedGPU. Entries
// are in one piece, from a multiple of 32 bytes on, and their number is a multiple of
// kEntriesInSector; behind the last home there are kNeighbourhood - 1 further ones.
//
// An entry: the lower 40 bits as store::Slot's, above them 24 bits of the hash. 0: empty.
struct HopscotchView {
  const uint64_t* entries = nullptr;
  uint32_t homes = 0;
};
inline constexpr uint32_t kNeighbourhood = 16;
inline constexpr uint32_t kEntriesInSector = 4;
inline constexpr uint32_t kTagBit = store::kSlotOffsetBits;  // of an entry, and of the hash

WC_HD inline uint64_t hopscotch_home(uint64_t hash, uint32_t homes) {
  return (hash & 0xffffffff) * homes >> 32;
}
WC_HD inline bool entry_fits(uint64_t entry, uint64_t hash) {
  return entry != 0 && entry >> kTagBit == hash >> kTagBit;
}

// What a kernel takes of a multiprocessor.
struct Footprint {
  int registers = 0;     // of a thread
  int local_bytes = 0;   // of a thread: its stack
  int shared_bytes = 0;  // of a block
  int threads = 0;       // of a block
  int warps = 0;         // at most, of a multiprocessor
};

template <typename Batch>
struct Variant {
  std::string experiment;
  std::string name;
  Footprint footprint;
  std::function<void(const Batch&, cudaStream_t)> launch;  // asynchronous
};

// A group of 1, 2, 4, 8, 16, 32 threads for a request; then a thread without and with a helper.
std::vector<Variant<GetBatch>> get_variants(const store::Core& core, const GetBatch& shape);
// `pairs`: Shared::pair_count.
Variant<LookupBatch> set_lookups(const store::Core& core, uint32_t pairs, const LookupBatch& shape);
Variant<LookupBatch> hopscotch_lookups(const store::Core& core, const HopscotchView& table,
                                       const LookupBatch& shape);

}  // namespace warpcache::ablation
