// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "offline/backend.h"
#include "store/cuda/cuda_store.h"

namespace warpcache::offline {

// As make_gpu_backend(). Sets the store that requests are run on, which stays as long as the
// backend.
std::unique_ptr<Backend> make_gpu_backend(const BackendConfig& config, store::CudaStore** store);

}  // namespace warpcache::offline
