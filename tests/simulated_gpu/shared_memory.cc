// SPDX-License-Identifier: Apache-2.0
//
// What kernels call their dynamic shared memory: see `__shared__` in device.h.
#include <cstdint>

namespace warpcache::engine::cuda {

extern thread_local uint8_t shared[];
alignas(16) thread_local uint8_t shared[227 * 1024];

}  // namespace warpcache::engine::cuda
