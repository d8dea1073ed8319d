// SPDX-License-Identifier: Apache-2.0
//
// Kernels that stand for what can go wrong on a card. Asynchronous on the given stream; memory that
// is named is pinned. None of them stays for more than the time that it is given.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "store/layout/core.h"

namespace warpcache::gpu_tests {

inline constexpr uint32_t kStalledKeysMax = 256;

// A key that a stalled reader looks up.
struct StalledKey {
  uint8_t key[64];
  uint32_t key_size;
  uint32_t found;       // out: 1: it is there
  uint32_t value_size;  // out
  uint32_t reserved;
  uint64_t out;  // where the value goes to, counted from the beginning of the output
};

struct Stall {
  uint32_t key_count;
  uint32_t guarded;    // 1: within an epoch
  uint32_t holding;    // device: 1: the keys have been looked up
  uint32_t go_on;      // host: 1: copy what is there, and leave
  uint32_t timed_out;  // device: 1: nobody said so
  uint32_t reserved;
  uint64_t ns_max;  // to wait
};

// A block that looks keys up, a thread each, waits, and then copies the values from where it has
// found them. `reader` is a number of CudaStore::take_readers().
void launch_stalled_reader(const store::Core& core, uint32_t reader, Stall* stall, StalledKey* keys,
                           uint8_t* out, cudaStream_t stream);

// Fills the card, so that no other block finds room, until `*end` is 1 or the time has passed.
void launch_occupier(const uint32_t* end, uint64_t ns_max, uint32_t multiprocessors,
                     cudaStream_t stream);

// Reads where nothing is.
void launch_illegal_access(cudaStream_t stream);

// Asks for a block that is larger than any can be.
void launch_impossible(cudaStream_t stream);

}  // namespace warpcache::gpu_tests
