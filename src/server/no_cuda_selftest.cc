// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "server/selftest.h"

namespace warpcache::server {

int run_selftest(const Options&) {
  (void)std::fputs("--selftest: this server was built without CUDA.\n", stderr);
  return kExitUsage;
}

}  // namespace warpcache::server
