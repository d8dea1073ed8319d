// SPDX-License-Identifier: Apache-2.0
#include "server/backend.h"

namespace warpcache::server {

std::unique_ptr<Backend> make_cuda_backend(const Options&, admin::Watchers*,
                                           const std::function<void()>&, const store::CopyHooks&) {
  return nullptr;
}

}  // namespace warpcache::server
