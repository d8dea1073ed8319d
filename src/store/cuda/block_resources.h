// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "store/layout/core.h"

namespace warpcache::store {

// Blocks that may run at once, and where their readers are.
struct BlockResources {
  Core core;
  ThreadCounters* counters;  // one a reader
  uint8_t* scratch;          // CudaStoreConfig::block_scratch_bytes a reader
};

}  // namespace warpcache::store
