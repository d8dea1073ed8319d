// SPDX-License-Identifier: Apache-2.0
//
// --selftest: tests a GPU and the CUDA engine on it, in less than a minute.
#pragma once

#include "options/options.h"

namespace warpcache::server {

// Prints its steps and results; returns the exit status, 0 for success.
int run_selftest(const Options& options);

}  // namespace warpcache::server
