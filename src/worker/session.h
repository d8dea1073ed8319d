// SPDX-License-Identifier: Apache-2.0
//
// What the worker remembers of a stream between turns. The rare parts, a big body under way and
// frames that had to wait, live in pools, so that an idle stream costs these few bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/assert.h"
#include "io/transport.h"
#include "protocol/framing/frame_types.h"

namespace warpcache::worker {

// The longest head of a storage command: a line of text, or a binary header, extras and key (24, at
// most 255, 250).
inline constexpr uint32_t kLargeHeadMax = protocol::kLineSizeMax + 7;

// A body that is received piecewise, straight into the store.
struct LargeBody {
  protocol::Frame frame;  // of the message; its head is here, not in any batch
  uint32_t reservation;   // 0: none yet, or none any more
  uint32_t received;      // bytes of the body
  uint32_t end_received;  // and of the CRLF behind it
  uint8_t key_size;
  bool complete;  // or refused
  uint8_t line_end[2];
  uint8_t head[kLargeHeadMax];
};

// Frames that were put into a batch and not run, because reply space ran out. The bytes are left
// over in the transport; offsets count from the first of them.
struct DeferredFrames {
  std::vector<protocol::Frame> frames;
  uint32_t framed_end = 0;  // how far the left-over bytes have been framed
};

// Lives in io::SessionStorage; all zero for a new stream. What there is of the next three
// comes in this order: `deferred_body`, `deferred_frames`, `incoming_body`.
struct Session {
  protocol::FrameState frame;
  uint32_t deferred_body;    // LargeBody in its pool that was in a batch and not run; 0: none
  uint32_t deferred_frames;  // DeferredFrames in its pool; 0: none
  uint32_t incoming_body;    // LargeBody in its pool that is being received; 0: none
  bool authenticated;
  uint8_t failed_logins;
  int32_t fd;    // for the log of commands
  bool closing;  // nothing more is framed; close when all has been answered
};
static_assert(std::is_trivially_copyable_v<Session>);
static_assert(sizeof(Session) <= sizeof(io::SessionStorage));
static_assert(alignof(Session) <= alignof(io::SessionStorage));

inline Session& session_of(io::SessionStorage& storage) {
  return *reinterpret_cast<Session*>(storage.bytes);
}

// Objects numbered from 1, kept for reuse. As many as are in use at a time, at most one a stream.
// take() throws std::bad_alloc where the system refuses another.
template <typename T>
class NumberedPool {
 public:
  uint32_t take() {
    if (free_.empty()) {
      // So that give() needs no memory, and nothing has changed if there is none for another.
      if (free_.capacity() <= objects_.size()) free_.reserve(2 * objects_.size() + 8);
      objects_.push_back(std::make_unique<T>());
      free_.push_back(static_cast<uint32_t>(objects_.size()));
    }
    const uint32_t number = free_.back();
    free_.pop_back();
    return number;
  }
  void give(uint32_t number) { free_.push_back(number); }
  T& operator[](uint32_t number) {
    WC_DASSERT(number != 0 && number <= objects_.size());
    return *objects_[number - 1];
  }
  uint32_t in_use() const { return static_cast<uint32_t>(objects_.size() - free_.size()); }

 private:
  std::vector<std::unique_ptr<T>> objects_;
  std::vector<uint32_t> free_;
};

}  // namespace warpcache::worker
