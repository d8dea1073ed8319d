// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "offline/backend.h"

namespace warpcache::offline {

std::unique_ptr<Backend> make_gpu_backend(const BackendConfig&) {
  throw std::runtime_error("this was built without CUDA");
}

BackgroundFigures run_background(const BackgroundProcess&) {
  throw std::runtime_error("this was built without CUDA");
}

}  // namespace warpcache::offline
