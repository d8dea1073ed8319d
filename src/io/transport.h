// SPDX-License-Identifier: Apache-2.0
//
// A transport brings bytes in and takes replies out, for one worker thread. It knows nothing of
// protocols but what it is told with each chunk: how much was consumed, what to send, when to
// close.
//
// A turn, driven by the worker:
//   receive(arena)       bursts of RxChunk, each a stream's new bytes (behind what was left over
//                        before them) or one datagram
//   ...                  the worker frames them and runs them through the engine
//   complete(chunk, ..)  for every chunk, in any order: bytes consumed, reply spans, close flag.
//                        What is to be delivered again without new bytes comes in that order
//   flush()              what has not been sent yet is sent: datagrams go out in bursts
//
// A stream whose reply could not be sent whole delivers nothing until the rest has left. So unsent
// bytes never exceed one batch's replies per stream.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace warpcache {
class BytePipe;
}

namespace warpcache::io {

// The most bytes of one stream in one chunk: left over and new together. So an unfinished message
// that is to be delivered whole must not be larger.
inline constexpr uint32_t kChunkBytesMax = 64 * 1024;

// A pin of a span that is kept in place by the pin of a later span of the same reply.
inline constexpr uint32_t kPinFollows = 0xffffffffu;

// Bytes to be sent. With pin 0 they are valid for the turn; else until the pin is handed to the
// PinReleaser, when they have left or the connection is gone.
struct TxSpan {
  const uint8_t* data;
  uint32_t size;
  uint32_t pin;

  bool pinned() const { return pin != 0; }
};

class PinReleaser {
 public:
  virtual ~PinReleaser() = default;
  virtual void release(uint32_t pin) = 0;
};

inline bool has_pin_to_release(const TxSpan& span) {
  return span.pin != 0 && span.pin != kPinFollows;
}

// Gives the spans' pins back.
inline void release_pins(const TxSpan* spans, uint32_t span_count, PinReleaser& releaser) {
  for (uint32_t i = 0; i < span_count; ++i) {
    if (has_pin_to_release(spans[i])) releaser.release(spans[i].pin);
  }
}

// Chunks of one receive() at most, so that the worker can have room for them from the start.
inline constexpr uint32_t kChunksMax = 16 * 1024;

// What the transport receives into; emptied (used = 0) by the worker before each turn.
// REQUIRES: size >= 2 * kChunkBytesMax.
struct InputArena {
  uint8_t* data = nullptr;
  uint32_t size = 0;
  uint32_t used = 0;
};

// Per-connection memory of the layers above (framing state, login, big body under way). Zeroed with
// the connection; SessionObserver::closed() is called before it goes away.
struct alignas(8) SessionStorage {
  uint8_t bytes[96];
};

class SessionObserver {
 public:
  virtual ~SessionObserver() = default;
  // The connection has begun; `session` is zeroed.
  virtual void opened(SessionStorage& session, int fd) = 0;
  virtual void closed(SessionStorage& session) = 0;
};

struct RxChunk {
  uint32_t handle = 0;  // the connection or datagram, for complete()
  uint32_t offset = 0;  // in the input arena
  uint32_t size = 0;
  uint32_t body_received = 0;  // bytes that went into RxNext::body; they precede the chunk's own
  bool datagram = false;
  bool admin = true;                  // it came where clients may change the server
  SessionStorage* session = nullptr;  // null for datagrams
  uint64_t connection_id = 0;         // unique over all streams of the process; 0 for datagrams
};

// What the layers above want next of a stream. Ignored for datagrams.
struct RxNext {
  uint32_t consumed = 0;  // bytes of the chunk that are done with; the rest comes first next time
  uint32_t need = 0;      // do not deliver before this many bytes are there (0: any new byte).
                          // REQUIRES: at most kChunkBytesMax
  bool more_now = false;  // deliver what is left again next turn, even without new bytes
  bool later = false;     // with more_now: other streams come first. The transport may take a few
                          // milliseconds, and need not
  bool close = false;     // close when the spans have been sent
  // Not empty: the stream's next bytes go straight here, and RxChunk::body_received says how many
  // came. Stays valid until the next complete() or closed(). REQUIRES: nothing is left over.
  MutableBytes body = {};
  bool body_ends = false;  // what follows `body` on the stream may be received into the arena
  // What comes through it is sent behind the spans, before the stream is read again. The transport
  // becomes its reader, and leaves it where the connection is closed.
  BytePipe* long_reply = nullptr;
};

// All functions are called by the worker's thread, but for wake().
class Transport {
 public:
  virtual ~Transport() = default;

  // Who is told of closed connections and sent pins. Once, before the first receive().
  virtual void attach(SessionObserver& observer, PinReleaser& releaser) = 0;

  // Waits at most timeout_ms (0: not at all) and appends what arrived, kChunksMax at most in all; a
  // stream appears at most once. Returns false when the transport is shut down and has no
  // connections left.
  virtual bool receive(InputArena& arena, std::vector<RxChunk>& chunks, int timeout_ms) = 0;

  // REQUIRES: exactly once for each chunk, before the next receive(). The spans' bytes (pin == 0)
  // stay valid until flush() returns.
  virtual void complete(const RxChunk& chunk, const RxNext& next, const TxSpan* spans,
                        uint32_t span_count) = 0;

  virtual void flush() = 0;

  // The store had no room for a stream's body. Other streams whose bodies stand still may be
  // closed, so that the next finds some.
  virtual void body_refused() {}

  // From any thread: wakes receive().
  virtual void wake() = 0;
};

}  // namespace warpcache::io
