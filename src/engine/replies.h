// SPDX-License-Identifier: Apache-2.0
//
// What all engines have in common about replies: bounds, and the answer to a request for which no
// space can be reclaimed.
#pragma once

#include <cstdint>

#include "protocol/message.h"

namespace warpcache::engine {

// Header and end of any reply: a base64 key, an opaque, and every number that a meta reply can
// have.
inline constexpr uint32_t kReplyFrameMax = 1024;

// Bytes of replies that a stream gets in one batch; its other requests run in the next one. The CPU
// engine counts what its requests copy in the store, too.
inline constexpr uint32_t kEntryReplySlice = 256 * 1024;

// How often a request may find no space after a successful reclaim() (others take it) before the
// answer is an out-of-memory error.
inline constexpr uint32_t kReclaimRoundsMax = 8;

// The whole answer to a datagram whose replies do not fit.
inline constexpr char kDatagramTooLarge[] = "SERVER_ERROR out of memory writing get response\r\n";

// The whole answer to a datagram with more administrative commands than run: see admin_budget.h.
inline constexpr char kDatagramBusy[] = "SERVER_ERROR too many administrative commands\r\n";

// The whole answer to a datagram that changes more bytes of long values than an event-loop
// iteration allows.
inline constexpr char kDatagramCopies[] = "SERVER_ERROR too many changes of long values\r\n";

// For `stats detail`.
inline bool counts_as_hit(protocol::Outcome outcome) {
  return outcome != protocol::Outcome::kMiss && outcome != protocol::Outcome::kNotFound;
}

}  // namespace warpcache::engine
