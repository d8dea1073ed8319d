// SPDX-License-Identifier: Apache-2.0
//
// What the server's options say of its NIC cache.
#pragma once

#include <vector>

#include "nic_cache/nic_cache.h"
#include "options/options.h"
#include "options/process.h"

namespace warpcache::server {

// REQUIRES: the options have a NIC cache. `ports` are those that were bound; the NIC cache serves
// the first one of UDP.
nic_cache::NicCacheConfig nic_cache_config(const Options& options,
                                           const std::vector<BoundPort>& ports);

}  // namespace warpcache::server
