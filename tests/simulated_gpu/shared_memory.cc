// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "gpu/dynamic_shared.cuh"

namespace warpcache::gpu {

uint8_t* dynamic_shared() {
  struct alignas(16) Memory {
    uint8_t bytes[227 * 1024];
  };
  thread_local const auto memory = std::make_unique<Memory>();
  return memory->bytes;
}

}  // namespace warpcache::gpu
