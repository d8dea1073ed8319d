// SPDX-License-Identifier: Apache-2.0
//
// Which part of a shared task one worker does.
#pragma once

#include <cstdint>

namespace warpcache::store {

// Of items numbered from 0: `worker`, `worker + workers`, `worker + 2 * workers`, ...
struct Share {
  uint32_t worker = 0;
  uint32_t workers = 1;
};

}  // namespace warpcache::store
