// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "base/byte_pipe.h"
#include "engine/engine.h"

namespace warpcache::engine {

// Ends a long reply that the entry has begun and its client will not get.
inline void drop_long_reply(BatchEntry& entry) {
  if (entry.long_reply != nullptr) std::exchange(entry.long_reply, nullptr)->leave();
}

}  // namespace warpcache::engine
