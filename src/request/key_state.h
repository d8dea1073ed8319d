// SPDX-License-Identifier: Apache-2.0
//
// What a request finds at its key, before it runs.
#pragma once

#include <cstdint>

namespace warpcache::request {

enum class KeyState : uint8_t { kNotFound, kFound, kFlushed, kTimedOut };

}  // namespace warpcache::request
