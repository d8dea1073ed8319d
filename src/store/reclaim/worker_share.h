// SPDX-License-Identifier: Apache-2.0
//
// Which part of a shared task is a worker's.
#pragma once

#include <cstdint>

namespace warpcache::store {

// Of things numbered from 0 on: `worker`, `worker + workers`, and so on.
struct Share {
  uint32_t worker = 0;
  uint32_t workers = 1;
};

}  // namespace warpcache::store
