// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.h"
#include "protocol/message.h"

namespace warpcache::engine {

// What a user may do. Does not change; the layers above the engine implement it.
class Rights {
 public:
  virtual ~Rights() = default;
  // Whether the user may run a request on a key of the store.
  virtual bool allows(const protocol::Request& request, Bytes key) const = 0;
  // Whether the user may flush all keys that begin with `prefix`.
  virtual bool allows_flush(Bytes prefix) const = 0;
  // Administrative commands.
  virtual bool allows_administration() const = 0;
};

}  // namespace warpcache::engine
