// SPDX-License-Identifier: Apache-2.0
//
// The byte layout of active messages, version 1 (docs/ucx.md). A client and a server exchange two
// streams of memcached's protocols, one each way, cut into active messages. Numbers are
// little-endian.
#pragma once

#include <bit>
#include <cstdint>

namespace warpcache::io {

inline constexpr uint8_t kAmVersion = 1;

// The header's handler: what the receiver does with the message.
enum class AmHandler : uint8_t {
  kHello = 1,    // client, first message; no data, or one byte of kAmAsks... bits
  kWelcome = 2,  // server, its answer; data: AmWelcome; and SlotRegion (item_slots.h) and a key,
                 // where the client has asked and the server has slots
  kBytes = 3,    // data: the next bytes of the stream
  kTaken = 4,    // no data: reports AmHeader::taken
  kBye = 5,      // last message of its sender; data: why, as text, or nothing. A server answers
                 // a client's requests first, then it says so too, and the client closes
  kCopy = 6,     // client that was given a SlotRegion; data: a key whose item is to be copied
};

struct AmHeader {
  uint8_t version = kAmVersion;
  AmHandler handler = AmHandler::kBytes;
  uint16_t reserved = 0;
  uint32_t sequence = 0;  // of the sender's messages, from 0
  uint64_t taken = 0;     // bytes of the other's eager messages that the sender has used so far
};
static_assert(sizeof(AmHeader) == 16);

struct AmWelcome {
  uint32_t window = 0;     // eager bytes that the client may have sent and the server not taken
  uint32_t eager_max = 0;  // bytes of an eager message; longer ones come by rendezvous
  uint32_t rendezvous_max = 0;  // bytes of a message by rendezvous
  uint32_t announced_max = 0;   // rendezvous messages that may wait at a time
};
static_assert(sizeof(AmWelcome) == 16);
static_assert(std::endian::native == std::endian::little);

inline constexpr uint8_t kAmAsksForSlots = 1;
inline constexpr uint8_t kAmAsksForLong = 2;  // eager messages of kAmLongMax, both ways

// With UCX's own headers, an eager message of this size fits into one buffer of shared memory.
inline constexpr uint32_t kAmEagerMax = 8000;
// Of endpoints by TCP alone, where each message is a system call. One fits into UCX's buffer for
// what comes (ucx_choice.cc).
inline constexpr uint32_t kAmLongMax = 60 * 1024;
// There a value of this size is copied into such messages: that takes less time than to be asked
// for it by rendezvous, which is three messages more.
inline constexpr uint32_t kAmCopiedByTcpMax = 128 * 1024;
// At least a whole chunk must fit into the window, because an unfinished message may need one.
inline constexpr uint32_t kAmWindow = 256 * 1024;
inline constexpr uint32_t kAmRendezvousMax = 1024 * 1024;
inline constexpr uint32_t kAmAnnouncedMax = 16;

}  // namespace warpcache::io
