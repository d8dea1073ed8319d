// SPDX-License-Identifier: Apache-2.0
//
// In the place of src/gpu/dynamic_shared.cuh: memory of the host's thread that runs the block. It
// is not `thread_local` like other shared memory, since every thread of a server would have it.
#pragma once

#include <cstdint>

namespace warpcache::gpu {

uint8_t* dynamic_shared();

}  // namespace warpcache::gpu
