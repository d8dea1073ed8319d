// SPDX-License-Identifier: Apache-2.0
//
// What all engines agree on about replies: their bounds, and what a request is answered when room
// cannot be had.
#pragma once

#include <cstdint>

#include "protocol/message.h"

namespace warpcache::engine {

// Head and tail of any reply: a base64 key, an opaque, and every number a meta reply can carry.
inline constexpr uint32_t kReplyFrameMax = 1024;

// Reply bytes after which a stream has to wait for its next turn.
inline constexpr uint32_t kEntryReplySlice = 256 * 1024;

// Times that a request may find no room although room was just made for it (others take it) before
// it is answered with an out-of-memory error.
inline constexpr uint32_t kReclaimRoundsMax = 8;

// The whole answer to a datagram for whose replies there is no space.
inline constexpr char kDatagramTooLarge[] = "SERVER_ERROR out of memory writing get response\r\n";

// Administrative commands that a batch runs at most: they take as long as hundreds of requests.
// What is left waits for the next batch.
inline constexpr uint32_t kBatchAdminMax = 8;
// And of one stream, so that those who send many leave others their share.
inline constexpr uint32_t kEntryAdminMax = 2;
// Of a datagram, which cannot wait. One with more of them is answered with this alone.
inline constexpr uint32_t kDatagramAdminMax = 1;
inline constexpr char kDatagramBusy[] = "SERVER_ERROR too many administrative commands\r\n";

// For `stats detail`.
inline bool counts_as_hit(protocol::Outcome outcome) {
  return outcome != protocol::Outcome::kMiss && outcome != protocol::Outcome::kNotFound;
}

}  // namespace warpcache::engine
