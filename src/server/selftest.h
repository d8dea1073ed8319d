// SPDX-License-Identifier: Apache-2.0
//
// --selftest: whether a card and the engine on it do what they should, in less than a minute.
#pragma once

#include "options/options.h"

namespace warpcache::server {

// Prints what it does and finds; returns the exit status, 0 where all is well.
int run_selftest(const Options& options);

}  // namespace warpcache::server
