// SPDX-License-Identifier: Apache-2.0
//
// The worker's state of a stream between iterations. The rare parts, a large body that is being
// received and deferred frames, are in pools, so that an idle stream costs only the bytes of
// Session.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/assert.h"
#include "engine/watch.h"
#include "io/transport.h"
#include "protocol/binary.h"
#include "protocol/framing/frame_types.h"

namespace warpcache::worker {

// The longest head of a storage command: a line of text; a binary header, extras and key (24, at
// most 255 and 250 bytes) are shorter.
inline constexpr uint32_t kLargeHeadMax = protocol::kLineSizeMax + 7;

// A large body: received in pieces, directly into the store.
struct LargeBody {
  protocol::Frame frame;  // of the message; its head is in `head`, not in the batch's input
  uint32_t reservation;   // 0: not reserved yet, or given up
  uint32_t received;      // bytes of the body
  uint32_t end_received;  // bytes of the CRLF after it
  // Since when it waits for a reservation; zero: it does not.
  std::chrono::steady_clock::time_point waits_since;
  uint8_t key_size;
  bool complete;  // received completely, or refused
  uint8_t line_end[2];
  uint8_t head[kLargeHeadMax];
};

// Deferred frames: they were in a batch and did not run, because there was no reply space. The
// transport keeps their bytes; offsets count from the first of these.
struct DeferredFrames {
  DeferredFrames() { frames.reserve(kFramesReserve); }

  static constexpr uint32_t kFramesReserve = 8;
  std::vector<protocol::Frame> frames;
  uint32_t framed_end = 0;  // bytes after this offset are not framed yet
};

// Lies in io::SessionStorage; all zero for a new stream. The next batch takes, in this order,
// `deferred_body`, `deferred_frames` and `incoming_body`, if they exist.
struct Session {
  protocol::FrameState frame;
  uint32_t deferred_body;    // id of the LargeBody that was in a batch and did not run; 0: none
  uint32_t deferred_frames;  // id of the DeferredFrames; 0: none
  uint32_t incoming_body;    // id of the LargeBody that is being received; 0: none
  bool authenticated;
  uint8_t failed_logins;
  uint16_t user;             // with --access; 0: nobody, or not restricted
  int32_t fd;                // for the command log
  uint64_t source;           // io::source_of() the client; known with authentication
  engine::PeerAddress peer;  // known since the opening, if that was watched
  bool closing;              // nothing more is framed; close after the last reply
  bool refused;              // closing, because the client has broken the protocol
};
static_assert(std::is_trivially_copyable_v<Session>);
static_assert(sizeof(Session) <= sizeof(io::SessionStorage));
static_assert(alignof(Session) <= alignof(io::SessionStorage));

inline Session& session_of(io::SessionStorage& storage) {
  return *reinterpret_cast<Session*>(storage.bytes);
}
inline const Session& session_of(const io::SessionStorage& storage) {
  return *reinterpret_cast<const Session*>(storage.bytes);
}

// Whether the stream's next bytes are the rest of a value that goes to the store or is discarded.
inline bool is_in_value(const Session& session) {
  return session.incoming_body != 0 || session.frame.swallow != 0;
}

// A pool of objects with ids from 1 that are kept for reuse. It grows to the most objects in use at
// a time: at most one for each stream. take() throws std::bad_alloc if the system refuses memory.
template <typename T>
class NumberedPool {
 public:
  uint32_t take() {
    if (free_.empty()) add(1);
    const uint32_t number = free_.back();
    free_.pop_back();
    return number;
  }
  void give(uint32_t number) { free_.push_back(number); }
  // Adds objects, so that as many calls of take() need no memory. Throws std::bad_alloc.
  void add(uint32_t count) {
    // Reserve first: give() must not allocate, and a refused allocation must change nothing.
    const size_t objects = objects_.size() + count;
    if (free_.capacity() < objects) free_.reserve(2 * objects + 6);
    for (uint32_t i = 0; i < count; ++i) {
      objects_.push_back(std::make_unique<T>());
      free_.push_back(static_cast<uint32_t>(objects_.size()));
    }
  }
  T& operator[](uint32_t number) {
    WC_DASSERT(number != 0 && number <= objects_.size());
    return *objects_[number - 1];
  }
  const T& operator[](uint32_t number) const {
    WC_DASSERT(number != 0 && number <= objects_.size());
    return *objects_[number - 1];
  }
  uint32_t in_use() const { return static_cast<uint32_t>(objects_.size() - free_.size()); }

 private:
  std::vector<std::unique_ptr<T>> objects_;
  std::vector<uint32_t> free_;
};

}  // namespace warpcache::worker
