// SPDX-License-Identifier: Apache-2.0
//
// An engine takes bursts of requests from a port and returns their replies: a Batch holds segments
// of streams and datagrams, a PacketBurst whole Ethernet frames. There is one instance for each
// worker thread; all instances of a server share one store. Only that thread calls the engine.
// Virtual calls are made per burst, never per request.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_pipe.h"
#include "base/bytes.h"
#include "base/status.h"
#include "engine/rights.h"
#include "engine/watch.h"
#include "net/packet_burst.h"
#include "protocol/framing/frame.h"
#include "protocol/message.h"
#include "protocol/reply_span.h"

namespace warpcache::engine {

// Arena bytes stay until the next submit() of the same batch. Pinned bytes stay until release(pin),
// which may be called in any later iteration, by the same thread.
using protocol::kPinFollows;
using protocol::ReplySpan;

// The part of a batch that belongs to one connection or one datagram. Its frames are contiguous and
// in order; a stream connection is in one batch at a time.
struct BatchEntry {
  // Filled by the worker.
  uint32_t first_frame = 0;
  uint32_t frame_count = 0;
  uint32_t reservation = 0;  // in: the body of the first frame, if it was received into a
                             // reservation (kReserved)
  bool datagram = false;
  bool admin = true;  // its commands may change the server
  bool authenticated =
      true;  // in: false while a -Y or -S connection has not logged in; out: true after a login
  uint8_t failed_logins = 0;      // in and out: of the connection, with -Y or -S
  uint64_t connection_id = 0;     // for logs and the AdminHandler
  uint64_t source = 0;            // with -Y or -S: the client's address, as io::source_of()
  int fd = -1;                    // of the connection, or of the datagram's socket; -1: of frames
  uint64_t value_memory_max = 0;  // bytes of the store that values of one batch's replies may hold
                                  // until they are sent; 0: no limit but the store's own
  // Filled by the engine.
  uint32_t frames_done = 0;  // below frame_count: reply space ran out; the caller submits
                             // the rest in a later batch
  uint32_t first_span = 0;  // replies in order: Batch::spans[first_span .. first_span + span_count)
  uint32_t span_count = 0;
  bool waits = false;           // with frames_done below frame_count: other streams go first
  bool values_wait = false;     // likewise: the next value exceeds value_memory_max
  uint16_t values_refused = 0;  // values that exceed it alone
  bool close = false;           // quit, or a stream out of step: send the spans, then close
  bool refused = false;         // with close: no quit, but a client that broke a rule; for watchers
  uint16_t user = 0;            // in and out: who has logged in, with --access; 0: may do all
  // The reply to the last frame done comes through this pipe, after the spans. The worker that gets
  // the entry back becomes its reader. Streams only.
  BytePipe* long_reply = nullptr;
};

// Ends a long reply that the entry has begun and its client will not get.
inline void drop_long_reply(BatchEntry& entry) {
  if (entry.long_reply != nullptr) std::exchange(entry.long_reply, nullptr)->leave();
}

// Capacities that worker and engines reserve at the start, so that a batch continues where the
// system refuses memory. An engine may need more spans only if values have thousands of pieces.
inline constexpr uint32_t kBatchEntriesMax = 64 * 1024;
inline constexpr uint32_t kBatchSpansMax = 128 * 1024;

// The worker owns the memory and reuses it in each iteration.
struct Batch {
  uint8_t* input = nullptr;  // the input arena; Frame::offset counts from here. Writable: keys are
                             // decoded in place
  std::vector<protocol::Frame> frames;
  std::vector<BatchEntry> entries;
  std::vector<ReplySpan> spans;     // filled by the engine
  bool stream_not_reached = false;  // out: no frame of some stream was reached
};

// Administrative commands need the rest of the server. The engine's thread calls the handler
// between the requests before and after the command, with no epoch held. The layers above the
// engine implement it.
class AdminHandler {
 public:
  virtual ~AdminHandler() = default;

  // Runs `request` (protocol::Op kFlushAll to kSasl) and appends its whole reply to `reply`, in the
  // protocol of the request; nothing if it is noreply or quiet. A reply that is long or takes time
  // comes through entry.long_reply instead. `input` is the batch's input base. Takes some tens of
  // microseconds, however much is stored.
  virtual void run(const protocol::Request& request, const uint8_t* input, BatchEntry& entry,
                   std::string& reply) = 0;

  // A request on a connection that has not logged in (-Y, -S). Appends the reply; sets
  // entry.authenticated after a success; counts failures in entry.failed_logins, and may set
  // entry.close. run() may log a client out again: it clears entry.authenticated.
  virtual void authenticate(const protocol::Request& request, const uint8_t* input,
                            BatchEntry& entry, std::string& reply) = 0;

  // What BatchEntry::user may do; null: all. Asked once for each entry with a user.
  virtual std::shared_ptr<const Rights> rights_of(uint16_t /*user*/) const { return nullptr; }
  // A request that was refused for that.
  virtual void denied() {}

  // `stats detail on`, or a watcher of requests. Usually false; asked once per batch.
  virtual bool wants_keys() const = 0;
  // Of these: a watcher of requests, who gets all that SeenRequest has.
  virtual bool watches_requests() const { return false; }
  // Only while wants_keys().
  virtual void saw_key(protocol::Op op, Bytes key, bool hit) = 0;
  // The same by an engine that can report more.
  virtual void saw_request(const SeenRequest& seen) {
    saw_key(seen.request.op, seen.key, seen.hit);
  }
};

// What an engine must know of the port that hands it Ethernet frames.
struct PacketSettings {
  uint16_t udp_port = 11211;
  uint8_t protocol = 0;  // -B: protocol::kProtocolAuto, kProtocolText or kProtocolBinary
};

class Engine {
 public:
  virtual ~Engine() = default;

  // How many batches may be under way at a time. More than this would only wait.
  virtual uint32_t batches() const { return 1; }

  // Memory of `bytes` bytes for Batch::input. The engine owns it and keeps it until its own end.
  // Called once for each of batches(), before the first submit(). Throws std::bad_alloc if there is
  // not enough.
  virtual uint8_t* input_memory(uint32_t bytes) = 0;

  // Prepares the calling thread, the engine's, for all later calls; called once, before all others.
  // A device's driver takes the memory that it needs for the thread here.
  virtual void attach_thread() {}

  // Takes `batch`. REQUIRES: fewer than batches() are under way; no stream is in two of them.
  virtual void submit(Batch* batch) = 0;

  // A batch whose replies are ready, else null. Batches end in any order.
  virtual Batch* poll() = 0;

  // Gives back a pin of a ReplySpan.
  virtual void release(uint32_t pin) = 0;

  // Space for a body that is received piece by piece, directly into the store's memory. kOk returns
  // a nonzero id; kDeferred: others' bodies hold all that may be reserved, so try again later;
  // kOutOfMemory: no space can be reclaimed, as with -M; kTooLarge: it never fits.
  virtual Status reserve(uint8_t key_size, uint32_t body_size, uint32_t* id) = 0;
  // Contiguous writable bytes of the body, from `after` bytes after the first `received` ones on.
  // These have come and do not change any more; a later call says at least as many. With `after` 0
  // at least one byte, and earlier windows end; otherwise the engine may have no place yet: empty.
  // REQUIRES: received + after < body_size.
  virtual MutableBytes reservation_window(uint32_t id, uint32_t received, uint32_t after) = 0;
  // The place of the body's next `size` bytes in a device's memory, for a transport that writes
  // there: nothing is copied on the way. Empty: they have no such place in one piece, so
  // reservation_window() says where they go. The last window of that stays valid. REQUIRES:
  // received + size <= body_size.
  virtual MutableBytes device_window(uint32_t /*id*/, uint32_t /*received*/, uint32_t /*size*/) {
    return {};
  }
  // The transport has written these bytes into the device_window().
  virtual void device_bytes_came(uint32_t /*id*/, uint32_t /*received*/, uint32_t /*size*/) {}
  // Drops a reservation that will not be submitted (the connection was closed). One that was
  // submitted belongs to the engine.
  virtual void abandon(uint32_t id) = 0;

  // --- Ethernet frames. The engine reads headers and writes those of the replies.

  // Prepares for packet bursts; called once, before the functions below, by an owner that then
  // calls neither input_memory() nor submit(). Returns the error as text, or "".
  virtual std::string open_packets(const PacketSettings& settings) = 0;

  // How many bursts may be under way at a time. More than this would only wait.
  virtual uint32_t packet_bursts() const = 0;

  // The most packets of a burst that it serves well: a larger one leaves a CPU's caches.
  virtual uint32_t packets_per_burst() const { return 1024; }

  // Memory for the parts of a PacketBurst, which the engine can reach fastest. The engine owns it
  // and keeps it until its own end. Throws std::bad_alloc if there is not enough.
  virtual uint8_t* packet_memory(uint64_t bytes) = 0;

  // Prepares memory of a port, in which frames lie, so that the engine can read and write it; it
  // stays until the engine's end. Returns the error as text, or "".
  virtual std::string use_packet_memory(MutableBytes memory) = 0;

  // Takes a burst. REQUIRES: fewer than packet_bursts() are under way.
  virtual void submit_packets(net::PacketBurst* burst) = 0;

  // A burst whose replies are all ready, else null. Bursts end in any order.
  virtual net::PacketBurst* poll_packets() = 0;

  // Releases what the engine holds while it waits for a batch: a persistent kernel occupies
  // processors of the GPU, and freeing device memory waits for its end. The worker calls it when no
  // batch has come for a while. Cheap if nothing is held; the next submit() takes it again.
  // REQUIRES: the engine has no batch.
  virtual void release_device() {}
};

}  // namespace warpcache::engine
