// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "offline/fabric.h"
#include "store/cuda/cuda_store.h"

namespace warpcache::offline {

// As make_gpu_fabric(). Sets the store that requests are run on, which stays as long as the fabric.
std::unique_ptr<Fabric> make_gpu_fabric(const FabricConfig& config, store::CudaStore** store);

}  // namespace warpcache::offline
