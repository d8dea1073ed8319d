// SPDX-License-Identifier: Apache-2.0
//
// A transport: a port of streams and datagrams (sockets, active messages). It receives bytes and
// sends replies for one worker thread, and knows nothing of protocols. The worker reports for each
// chunk how many bytes it has consumed, what to send and whether to close. Virtual calls are made
// per burst.
//
// The way of a burst, driven by the worker:
//   receive(burst)          fills a list of RxChunk: each is one datagram, or the unconsumed and
//                           the new bytes of a stream
//   ...                     the worker frames the chunks and runs them through the engine
//   complete(burst, list)   for every chunk, in any order and in one call or several: bytes
//                           consumed, reply spans, close flag. Streams with more_now are delivered
//                           again in this order
//
// Several bursts may be under way. A stream is in at most one of them, and is neither received from
// nor closed meanwhile. A stream with unsent output delivers nothing until all of it is sent. So a
// stream's unsent bytes never exceed the replies of one batch.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "protocol/reply_span.h"

namespace warpcache {
class BytePipe;
}

namespace warpcache::io {

// The most bytes of a chunk, unconsumed and new ones together. An unfinished message that must be
// delivered in one piece cannot be larger.
inline constexpr uint32_t kChunkBytesMax = 64 * 1024;

using protocol::has_pin_to_release;
using protocol::kPinFollows;
// With pin 0 the bytes are valid until complete() returns; otherwise until the transport releases
// the pin, after it has sent them or the connection has ended.
using protocol::ReplySpan;

class PinReleaser {
 public:
  virtual ~PinReleaser() = default;
  virtual void release(uint32_t pin) = 0;
};

// Releases the spans' pins.
inline void release_pins(const ReplySpan* spans, uint32_t span_count, PinReleaser& releaser) {
  for (uint32_t i = 0; i < span_count; ++i) {
    if (has_pin_to_release(spans[i])) releaser.release(spans[i].pin);
  }
}

// The most chunks of a burst, so that the worker can allocate its arrays at start-up.
inline constexpr uint32_t kChunksMax = 16 * 1024;

// The bursts that may be under way at a time.
inline constexpr uint32_t kRxBurstsMax = 4;

// The memory that the transport receives into. REQUIRES: size >= 2 * kChunkBytesMax.
struct InputArena {
  uint8_t* data = nullptr;
  uint32_t size = 0;
  uint32_t used = 0;
};

// Memory of a connection for the worker (framing state, login, unfinished large body). Zeroed when
// the connection opens; valid until SessionObserver::closed() has returned.
struct alignas(8) SessionStorage {
  uint8_t bytes[96];
};

// Why a connection has ended.
enum class CloseReason : uint8_t {
  kError,     // a call has failed, or the client has broken a bound
  kNormal,    // the client has closed it or asked for that
  kIdle,      // `-o idle_timeout`
  kShutdown,  // the server stops
};

class SessionObserver {
 public:
  virtual ~SessionObserver() = default;
  // A connection has opened; `session` is zeroed.
  virtual void opened(SessionStorage& session, int fd) = 0;
  // Before opened(): a proxy speaks for this client.
  virtual void speaks_for(SessionStorage& /*session*/, const sockaddr_storage& /*client*/) {}
  // It has ended; its descriptor is still open.
  virtual void closed(SessionStorage& session, CloseReason reason) = 0;
  // Whether the stream holds memory of the store for a body that is being received.
  virtual bool holds_body(const SessionStorage& session) const = 0;
  // Gives that memory back. The transport forgets RxNext::body and delivers the rest of the body in
  // chunks, which the observer discards; then it answers that there is no space.
  // REQUIRES: holds_body(session), and no chunk of the stream is delivered and not completed.
  virtual void cancel_body(SessionStorage& session) = 0;
  // Where the body's bytes go from byte `after` of those that have not come yet; empty: it ends
  // there. So more than RxNext::body can be received by one call. REQUIRES: RxNext::body of the
  // stream's last completion is not empty and is still valid.
  virtual MutableBytes body_window(const SessionStorage& session, uint32_t after) = 0;
  // The place of the body's next `size` bytes in a device's memory, for a transport that writes
  // there; empty: they have none in one piece. RxNext::body stays valid. REQUIRES: as above.
  virtual MutableBytes device_window(const SessionStorage& /*session*/, uint32_t /*size*/) {
    return {};
  }
};

struct RxChunk {
  uint32_t handle = 0;  // the connection or datagram, for complete()
  uint32_t offset = 0;  // in the input arena
  uint32_t size = 0;
  uint32_t body_received = 0;  // bytes that went into RxNext::body; they precede those of the chunk
  bool body_on_device = false;  // these went into SessionObserver::device_window() instead
  uint32_t announced = 0;       // bytes after the chunk that the client holds ready to be fetched
  bool datagram = false;
  bool admin = true;              // from a listener whose clients may change the server
  uint64_t value_memory_max = 0;  // bytes of the store that values which this client is sent may
                                  // hold, and a value that it sends; 0: no limit but the store's
  SessionStorage* session = nullptr;  // null for datagrams
  uint64_t connection_id = 0;         // unique over all streams of the process; 0 for datagrams
  int udp_fd = -1;                    // the socket that a datagram came from
};

// What has been received and is to be completed. The worker owns it, empties it (arena.used = 0, no
// chunks) before each receive(), and leaves it alone until all chunks are completed.
struct RxBurst {
  uint32_t number = 0;  // below kRxBurstsMax, of those under way each another
  InputArena arena;
  std::vector<RxChunk> chunks;
};

// What the worker wants next of a stream. Ignored for datagrams.
struct RxNext {
  uint32_t consumed = 0;  // bytes of the chunk; the rest is delivered again, before new bytes
  uint32_t need = 0;      // do not deliver fewer bytes than this (0: any new byte). REQUIRES: at
                          // most kChunkBytesMax
  bool more_now = false;  // deliver the rest in the next iteration, even without new bytes
  bool later = false;     // with more_now: other streams come first. The transport may take a few
                          // milliseconds, and need not
  bool close = false;     // close when the spans are sent
  bool refused = false;   // with close: CloseReason::kError, the client has not asked for it
  bool in_value = false;  // the stream's next bytes are the rest of a value, kept or discarded
  bool values_wait = false;     // what follows waits for RxChunk::value_memory_max
  uint32_t values_refused = 0;  // values that exceed it alone
  // If not empty, the stream's next bytes go directly here; RxChunk::body_received is their number.
  // Valid until the next complete(), cancel_body() or closed(). REQUIRES: the whole chunk is
  // consumed.
  MutableBytes body = {};
  bool body_ends = false;  // bytes after `body` may be received into the arena by the same call
  // A pipe whose bytes are sent after the spans, before the stream is read again. The transport
  // becomes its reader, and leaves it if the connection closes.
  BytePipe* long_reply = nullptr;
};

// The end of a chunk. What it points to stays until complete() returns.
struct Completion {
  const RxChunk* chunk;
  const RxNext* next;
  const ReplySpan* spans;
  uint32_t span_count;
};

// The worker's thread calls all functions; any thread may call wake().
class Transport {
 public:
  virtual ~Transport() = default;

  // Sets who learns of connections that open and close, and who releases pins. Once, before the
  // first receive().
  virtual void attach(SessionObserver& observer, PinReleaser& releaser) = 0;

  // Waits at most timeout_ms (0: not at all) and appends the received chunks, at most kChunksMax; a
  // stream has at most one of them. Returns false if the transport is shut down and has no open
  // connection; not before all chunks are completed.
  virtual bool receive(RxBurst& burst, int timeout_ms) = 0;

  // Completes chunks of a burst and sends their replies. REQUIRES: exactly once for each chunk.
  virtual void complete(const RxBurst& burst, const Completion* completions, uint32_t count) = 0;

  // Reports that the store had no space for a body, each time that it is tried. The transport may
  // cancel bodies that make no progress, so that later ones find space.
  virtual void body_refused() {}

  // Wakes receive(). Any thread.
  virtual void wake() = 0;
};

}  // namespace warpcache::io
