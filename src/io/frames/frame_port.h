// SPDX-License-Identifier: Apache-2.0
//
// The interface of a port of Ethernet frames: it receives frames into memory that an engine can
// read, and sends the frames of replies. It knows nothing of UDP or memcached: the engine reads the
// headers, and the worker reports to the port what became of each frame.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "io/counters.h"
#include "net/packet_burst.h"

namespace warpcache::io {

// The longest frame that a port receives. Longer ones are dropped and counted.
inline constexpr uint32_t kFrameBytesMax = 64 * 1024 + 64;

// The most bursts of a port that are under way.
inline constexpr uint32_t kFrameBurstsMax = 8;

// What a port receives a burst into; the caller owns it and empties it. A port with memory of its
// own leaves the frames there: `data` is its memory, and `size` and `used` say nothing.
struct FrameBuffer {
  uint32_t number = 0;      // of the burst, below kFrameBurstsMax
  uint8_t* data = nullptr;  // begins at a multiple of 16 bytes
  uint32_t size = 0;        // bytes, a multiple of 16. REQUIRES: at least kFrameBytesMax
  net::PacketSlot* slots = nullptr;
  // When each frame was captured. The owner sets them to 0; a port that does not know the time
  // leaves them so.
  uint64_t* times_ns = nullptr;
  uint32_t frames_max = 0;  // of `slots` and `times_ns`
  uint32_t count = 0;       // out: frames
  uint32_t used = 0;        // out: bytes, a multiple of 16
  // Out: see net::PacketBurst. A port that sets it sends a reply from where its request was.
  uint32_t frame_room = 0;
  // Out: a peer writes frames to slots of this size at `data`, and says itself when the burst
  // begins. `count` is how many slots there are. 0: the frames are those above.
  uint32_t peer_slot_bytes = 0;

  void clear() { count = used = frame_room = peer_slot_bytes = 0; }
  bool has_space() const { return count < frames_max && size - used >= kFrameBytesMax; }
  uint8_t* next() const { return data + used; }
  // The frame at next() has been received.
  void add(uint32_t bytes, uint64_t time_ns) {
    add_at(used, bytes, time_ns);
    used += (bytes + 15) / 16 * 16;
  }
  // A frame lies at `offset` in the port's memory.
  void add_at(uint32_t offset, uint32_t bytes, uint64_t time_ns) {
    slots[count] = {offset, bytes};
    times_ns[count++] = time_ns;
  }
};

// A frame to be sent, for the request with this number in the burst, which was captured at
// `time_ns`.
struct TxFrame {
  Bytes bytes;
  uint64_t time_ns;
  uint32_t request = 0;
  bool is_beside = false;  // it lies in the request's buffer
};

// Packets of a burst that follow each other, with their results, of one reply frame beside the
// request or something else.
struct RepliesBeside {
  uint32_t burst;                    // its number
  const net::PacketResult* results;  // of all its packets
  uint32_t first;                    // packet
  uint32_t count;                    // packets, at most kBesideMax
  uint32_t size_max;                 // bytes of a reply

  static constexpr uint32_t kBesideMax = 64;

  net::PacketResult result(uint32_t number) const { return results[first + number]; }
  // Whether a result is such a reply. REQUIRES: it is of a burst with frame_room.
  bool takes(net::PacketResult result) const {
    return (result.word & net::PacketResult::kBeside) != 0 && result.size() - 1 < size_max;
  }
};

// The worker's thread calls all functions; any thread may call stop() and read the counters.
class FramePort {
 public:
  virtual ~FramePort() = default;

  // The port's own memory, if it has some, which engines read and write: the frames that it
  // receives lie there. It begins at a multiple of 16 bytes and is smaller than 4 GB. Empty: the
  // port copies frames to FrameBuffer::data.
  virtual MutableBytes memory() const { return {}; }

  // Where the GPU has memory(), if that is the GPU's own. The CPU then sees it over the bus, and
  // reads it slowly. Null: it is the host's.
  virtual uint8_t* gpu_memory() const { return nullptr; }

  // A piece of memory() for the replies of a burst, which send() then need not copy; it begins at a
  // multiple of 16 bytes. The port takes it back after the burst's send(), or by take_back().
  // Empty: none is free, or the port has none.
  virtual MutableBytes reply_memory(uint32_t /*burst*/) { return {}; }

  // Waits at most timeout_ms (0: not at all) for frames, and appends those that are there to
  // `buffer` while it has space. False: none will come any more.
  virtual bool receive(FrameBuffer& buffer, int timeout_ms) = 0;

  // A burst that receive() left to a peer waits for this doorbell now. Empty: the engine cannot be
  // rung, and the port ends.
  virtual void wait_for_ring(const FrameBuffer& /*buffer*/, const net::PeerDoorbell& /*bell*/) {}
  // How many frames the peer has written, when the burst has ended.
  virtual uint32_t peer_frames(const FrameBuffer& buffer) { return buffer.count; }
  // Nothing has come and nothing has ended. A port whose peers ring waits a little, and rings by
  // itself after stop().
  virtual void rest() {}

  // Sends replies of a burst, in their order; a burst may have several calls. Their memory is free
  // again afterwards, unless it is the port's. What the port cannot send is dropped and counted.
  virtual void send(uint32_t burst, const TxFrame* frames, uint32_t count) = 0;

  // The usual case of send(), without a descriptor for each frame: sends the replies of packets if
  // each is a frame beside its request. False, and nothing was sent: one is not, or the port
  // cannot. REQUIRES: FrameBuffer::frame_room of the burst is not 0.
  virtual bool send_beside(const RepliesBeside& /*replies*/) { return false; }

  // Takes frames that were received and that the engine does not answer: ARP, ICMP, TCP, other
  // ports, fragments. A port that shares an address with the kernel answers them or gives them to
  // it; others drop them. May change the frames.
  virtual void pass_on(const MutableBytes* frames, uint32_t count) = 0;

  // The frames of a burst, and what was not sent of its reply memory, are not used any more. A port
  // with memory of its own uses them again.
  virtual void take_back(const FrameBuffer& /*buffer*/) {}

  // Ends the port: wakes receive(), which returns false from then on. Any thread.
  virtual void stop() = 0;

  // Why the port has ended, in words; empty: there is nothing more to receive, or it was stopped.
  virtual std::string failure() const { return ""; }

  // The port in words, for the banner and the log.
  virtual std::string describe() const = 0;

  const FrameCounters& counters() const { return counters_; }
  FrameCounters& counters() { return counters_; }

 protected:
  FrameCounters counters_;
};

}  // namespace warpcache::io
