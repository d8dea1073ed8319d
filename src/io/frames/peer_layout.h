// SPDX-License-Identifier: Apache-2.0
//
// The memory that a server and its peer share (--frames=peer), as docs/edge.md describes it byte by
// byte: a header, a control block for each burst, and for each burst slots for requests, entries
// for replies and the replies themselves.
#pragma once

#include <cstdint>

#include "io/frames/frame_port.h"

namespace warpcache::io::peer {

inline constexpr uint64_t kMagic = 0x3152'4545'5050'4157;  // "WAPPEER1", little-endian
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kBursts = kFrameBurstsMax;
inline constexpr uint32_t kSlots = 512;            // of a burst
inline constexpr uint32_t kReplyBytes = 1u << 20;  // of a burst
// A slot that holds no frame begins with this number of zero bytes.
inline constexpr uint32_t kEmptyBytes = 16;

inline constexpr uint64_t kControlsOffset = 4096;
inline constexpr uint64_t kControlBytes = 128;
inline constexpr uint64_t kAreasOffset = 8192;

struct Header {
  uint64_t magic;  // written last
  uint32_t version;
  uint32_t bursts;
  uint64_t bytes;  // of the file
  uint32_t slots;  // of a burst at most
  uint32_t slot_bytes;
};
static_assert(sizeof(Header) == 32);

enum class State : uint32_t {
  kUnused,    // the server has not prepared it
  kReady,     // for the peer to fill and ring
  kEnded,     // the replies are there, for the peer to read
  kGivenBack  // the peer has read them
};

// What both say of a burst. The peer writes `frames`, and kGivenBack to `state`.
struct Control {
  uint32_t state;
  uint32_t frames;          // that the peer has written
  uint64_t doorbell;        // where it rings, in the file of the doorbells
  uint64_t value;           // what it writes there
  uint64_t slots_offset;    // in this file
  uint64_t replies_offset;  // of an array of Reply
  uint32_t replies;         // how many there are
  uint32_t capacity;        // slots of this burst
};
static_assert(sizeof(Control) <= kControlBytes &&
              kControlsOffset + kBursts * kControlBytes <= kAreasOffset);

struct Reply {
  uint32_t request;  // the number of its slot
  uint32_t size;     // bytes of the frame
  uint64_t offset;   // in this file
};
static_assert(sizeof(Reply) == 16);

constexpr uint64_t slots_bytes(uint32_t slot_bytes) { return uint64_t{kSlots} * slot_bytes; }
constexpr uint64_t area_bytes(uint32_t slot_bytes) {
  return slots_bytes(slot_bytes) + kSlots * sizeof(Reply) + kReplyBytes;
}
constexpr uint64_t file_bytes(uint32_t slot_bytes) {
  return kAreasOffset + kBursts * area_bytes(slot_bytes);
}

}  // namespace warpcache::io::peer
