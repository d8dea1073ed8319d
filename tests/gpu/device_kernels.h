// SPDX-License-Identifier: Apache-2.0
//
// Kernels that cause what can go wrong on a GPU. Asynchronous on the given stream; named memory is
// pinned. None of them runs longer than the time that it is given.
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
  uint64_t out;  // offset of the copied value in the output
};

struct Stall {
  uint32_t key_count;
  uint32_t guarded;    // 1: within an epoch
  uint32_t holding;    // device: 1: the keys have been looked up
  uint32_t go_on;      // host: 1: copy the values and leave
  uint32_t timed_out;  // device: 1: the host did not set go_on in time
  uint32_t reserved;
  uint64_t ns_max;  // waiting time
};

// One block looks keys up, one thread each, waits, and then copies the values from the places where
// it has found them. `reader` is one of CudaStore::take_readers().
void launch_stalled_reader(const store::Core& core, uint32_t reader, Stall* stall, StalledKey* keys,
                           uint8_t* out, cudaStream_t stream);

// Occupies the whole GPU, so that no other block fits, until `*end` is 1 or the time has passed.
void launch_occupier(const uint32_t* end, uint64_t ns_max, uint32_t multiprocessors,
                     cudaStream_t stream);

// Reads from an invalid address.
void launch_illegal_access(cudaStream_t stream);

// Launches a block that is larger than any device allows.
void launch_impossible(cudaStream_t stream);

}  // namespace warpcache::gpu_tests
