// SPDX-License-Identifier: Apache-2.0
//
// A piece of a reply, as an engine hands it to a port.
#pragma once

#include <cstdint>

namespace warpcache::protocol {

// A value in several pieces has its pin with the last piece. The pieces before it, which that pin
// keeps too, have kPinFollows, which is not released.
inline constexpr uint32_t kPinFollows = 0xffffffffu;

// Bytes in the engine's reply arena (pin == 0) or in the store (pin != 0). Pinned bytes stay until
// the pin is given back, exactly once: when they are sent or no longer wanted.
struct ReplySpan {
  const uint8_t* data;
  uint32_t size;
  uint32_t pin;

  bool pinned() const { return pin != 0; }
};

inline bool has_pin_to_release(const ReplySpan& span) {
  return span.pin != 0 && span.pin != kPinFollows;
}

}  // namespace warpcache::protocol
