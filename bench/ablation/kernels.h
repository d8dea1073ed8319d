// SPDX-License-Identifier: Apache-2.0
//
// The kernels, and how the host starts them. All frames and replies are in device memory.
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

// Frames in contiguous slots of one size, and replies likewise. Slots are multiples of 16 bytes.
struct GetBatch {
  const uint8_t* input = nullptr;
  uint32_t slot_bytes = 0;
  uint8_t* replies = nullptr;
  uint32_t reply_slot_bytes = 0;
  uint32_t* sizes = nullptr;  // of the reply frames; 0: no reply
  uint32_t count = 0;
  uint32_t now = 0;  // store::Clock::now
  uint16_t udp_port = 0;
};

// Keys in slots, two bytes after the begin of each, as in a frame.
struct LookupBatch {
  const uint8_t* keys = nullptr;
  uint32_t slot_bytes = 0;  // a multiple of 16
  uint32_t key_size = 0;
  uint32_t count = 0;
  unsigned long long* sum = nullptr;      // gets the sum of the offsets of all values
  unsigned long long* offsets = nullptr;  // of the values, one for each key; 0: not found. May be
                                          // null
};
inline constexpr uint32_t kKeyInSlot = 2;

// Hopscotch hashing (Herlihy, Shavit, Tzafrir, DISC 2008) without the bitmaps: a key is in one of
// the 16 entries from its home on, and all of these are searched, as in MemcachedGPU. Entries are
// contiguous and begin at a multiple of 32 bytes; their number is a multiple of kEntriesInSector.
// After the last home there are kNeighbourhood - 1 more.
//
// An entry: the lower 40 bits are those of a store::Slot, the upper 24 are bits of the hash. 0:
// empty.
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

// What a kernel uses of a multiprocessor.
struct Footprint {
  int registers = 0;     // of a thread
  int local_bytes = 0;   // of a thread: its stack
  int shared_bytes = 0;  // of a block
  int threads = 0;       // of a block
  int warps = 0;         // of a multiprocessor, at most
};

template <typename Batch>
struct Variant {
  std::string experiment;
  std::string name;
  Footprint footprint;
  std::function<void(const Batch&, cudaStream_t)> launch;  // asynchronous
};

// Groups of 1, 2, 4, 8, 16 and 32 threads for a request; then one thread, without and with a helper
// warp.
std::vector<Variant<GetBatch>> get_variants(const store::Core& core, const GetBatch& shape);
// `pairs`: Shared::pair_count.
Variant<LookupBatch> set_lookups(const store::Core& core, uint32_t pairs, const LookupBatch& shape);
Variant<LookupBatch> hopscotch_lookups(const store::Core& core, const HopscotchView& table,
                                       const LookupBatch& shape);

}  // namespace warpcache::ablation
