// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "store/layout/core.h"

namespace warpcache::store {

// Blocks that may run at the same time, and where their readers are.
struct BlockResources {
  Core core;
  ThreadCounters* counters;  // one for each reader
  uint8_t* scratch;          // CudaStoreConfig::block_scratch_bytes for each reader
};

}  // namespace warpcache::store
