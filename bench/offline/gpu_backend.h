// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "offline/backend.h"
#include "store/cuda/cuda_store.h"

namespace warpcache::offline {

// Like make_gpu_backend(). Also returns the store, which lives as long as the backend.
std::unique_ptr<Backend> make_gpu_backend(const BackendConfig& config, store::CudaStore** store);

}  // namespace warpcache::offline
