// SPDX-License-Identifier: Apache-2.0
//
// An engine takes batches of framed requests and gives back their replies. One instance per worker
// thread; all instances of a server share one store. submit() and poll() are called by that thread
// alone. Virtual calls are per batch, never per request.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "protocol/framing/frame.h"
#include "protocol/message.h"

namespace warpcache {
class BytePipe;
}

namespace warpcache::engine {

// A value in several pieces has its pin with the last of them; the pieces before it, which that pin
// keeps as well, have kPinFollows, which is not released.
inline constexpr uint32_t kPinFollows = 0xffffffffu;

// A piece of a reply: bytes in the engine's reply arena (pin == 0) or in the store (pin != 0).
// Arena bytes stay until the next submit(). Pinned bytes stay until release(pin), which must be
// called exactly once, when they have been sent or given up; it may be called in any later turn, by
// the same thread.
struct ReplySpan {
  const uint8_t* data;
  uint32_t size;
  uint32_t pin;
};

// One connection's, or one datagram's, share of a batch. Its frames are contiguous and in order; a
// stream connection is in at most one batch at a time.
struct BatchEntry {
  // Filled by the worker.
  uint32_t first_frame = 0;
  uint32_t frame_count = 0;
  uint32_t reservation =
      0;  // of the entry's first frame if it is a big store (Request::bits kReserved), else 0
  bool datagram = false;
  bool admin = true;  // its commands may change the server
  bool authenticated =
      true;  // in: false while a -Y connection has not logged in; out: after a login
  uint8_t failed_logins = 0;   // in and out: of the connection, with -Y
  uint64_t connection_id = 0;  // for logs and the AdminHandler
  // Filled by the engine.
  uint32_t frames_done =
      0;  // below frame_count: reply space ran out; the caller submits the rest in a later batch
  uint32_t first_span = 0;  // replies in order: Batch::spans[first_span .. first_span + span_count)
  uint32_t span_count = 0;
  bool waits = false;  // with frames_done below frame_count: for others, submit the rest later
  bool close = false;  // quit, or a stream out of step: send the spans, then close
  // The reply to the last of the frames done comes through this pipe, behind the spans. Whoever
  // takes the entry back becomes its reader. Streams only.
  BytePipe* long_reply = nullptr;
};

// What the worker and the engines have room for from the start, so that a batch goes on where the
// system refuses memory. An engine may need more spans only where values are in thousands of
// pieces.
inline constexpr uint32_t kBatchEntriesMax = 64 * 1024;
inline constexpr uint32_t kBatchSpansMax = 128 * 1024;

// Memory is owned by the worker, reused from turn to turn.
struct Batch {
  uint8_t* input = nullptr;  // the input arena; Frame::offset counts from here. Writable: keys are
                             // decoded in place
  std::vector<protocol::Frame> frames;
  std::vector<BatchEntry> entries;
  std::vector<ReplySpan> spans;     // filled by the engine
  bool stream_not_reached = false;  // by the engine: of some stream no frame was done
};

// What the commands that are not about one key need from the rest of the server. Called by the
// engine's thread, with no epoch held, between the requests before and after it in the batch.
// Implemented above the engine.
class AdminHandler {
 public:
  virtual ~AdminHandler() = default;

  // Runs `request` (protocol::Op kFlushAll to kSasl) and appends its whole reply to `reply`, in the
  // protocol it came in; nothing where it is noreply or quiet. A reply that is long or takes time
  // comes through entry.long_reply instead. `input` is the batch's input base. Takes some tens of
  // microseconds, whatever is stored.
  virtual void run(const protocol::Request& request, const uint8_t* input, BatchEntry& entry,
                   std::string& reply) = 0;

  // A request on a connection that has not logged in (-Y). Appends the reply; sets
  // entry.authenticated on success; counts in entry.failed_logins, and may set entry.close.
  virtual void authenticate(const protocol::Request& request, const uint8_t* input,
                            BatchEntry& entry, std::string& reply) = 0;

  // `stats detail on`: false in the common case, asked once per batch.
  virtual bool wants_keys() const = 0;
  // Only while wants_keys().
  virtual void saw_key(protocol::Op op, Bytes key, bool hit) = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Memory of `bytes` bytes for Batch::input, the engine's own and kept as long as it. Once, before
  // the first submit(). std::bad_alloc where there is not that much.
  virtual uint8_t* input_memory(uint32_t bytes) = 0;

  // Prepares the calling thread, the engine's, for all that follows: once, before the first of it.
  // Where a device's driver needs memory for the thread, this is when it is taken.
  virtual void attach_thread() {}

  // Takes `batch`. REQUIRES: no batch of this engine is under way.
  virtual void submit(Batch* batch) = 0;

  // The submitted batch when its replies are ready, else null.
  virtual Batch* poll() = 0;

  // Gives back a pin of a ReplySpan.
  virtual void release(uint32_t pin) = 0;

  // Space for a body that is received piecewise, straight into the store's memory. kOk gives a
  // nonzero id; kOutOfMemory when too much is reserved already or -M leaves no room; kTooLarge
  // never fits.
  virtual Status reserve(uint8_t key_size, uint32_t body_size, uint32_t* id) = 0;
  // The contiguous writable bytes of the body from `offset` on; at least one byte while offset <
  // body_size.
  virtual MutableBytes reservation_window(uint32_t id, uint32_t offset) = 0;
  // Drops a reservation that will not be submitted (the connection went away). One that was
  // submitted is the engine's.
  virtual void abandon(uint32_t id) = 0;

  // No batch comes for now, or ever: gives back what the engine holds while it waits for one (a
  // kernel that stays keeps a GPU's processors, and giving memory back waits for it). Cheap where
  // there is nothing to give back. The next submit() takes it again. REQUIRES: no batch is under
  // way.
  virtual void release_device() {}
};

}  // namespace warpcache::engine
