// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "offline/fabric.h"

namespace warpcache::offline {

std::unique_ptr<Fabric> make_gpu_fabric(const FabricConfig&) {
  throw std::runtime_error("this was built without CUDA");
}

}  // namespace warpcache::offline
