// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

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

// What an engine asks before it runs a request whose offsets count from `input`. Requests without a
// key that are not administrative are allowed, and so are those that the AdminHandler judges.
bool are_enough(const Rights& rights, const protocol::Request& request, const uint8_t* input);

// Writes the reply to a request for which the rights are not enough, at most kReplyFrameMax bytes,
// and returns its end. An item that may not be read is answered like one that does not exist.
uint8_t* compose_denial(const protocol::Request& request, const uint8_t* input, uint8_t* out);

}  // namespace warpcache::engine
