// SPDX-License-Identifier: Apache-2.0
//
// A burst of Ethernet frames: what a port hands to an engine, and what comes back. All of it is
// plain memory, so that a GPU can read the frames and write the replies.
//
// Ownership: the port fills `input` and `slots`; the engine owns the whole burst between
// Engine::submit_packets() and Engine::poll_packets(); then `results` and `replies` are the port's,
// until the burst is submitted again.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/hd.h"
#include "net/packet_types.h"

namespace warpcache::net {

// A whole Ethernet frame of the input.
struct PacketSlot {
  uint32_t offset;  // of its first byte
  uint32_t size;    // bytes
};
static_assert(sizeof(PacketSlot) == 8 && std::is_trivially_copyable_v<PacketSlot>);

// What became of a packet. The states after kDone and kDropped are seen only inside an engine.
enum class PacketState : uint32_t {
  kDone,         // took effect, and the reply is complete
  kDeferred,     // no space in the store: it runs again after reclaim()
  kHost,         // the host runs it: nothing was executed
  kDropped,      // it is no request
  kNoReplySpace  // the arena is full: it runs again with an empty one
};

// Of one packet. It has four bytes, since each crosses the bus. Replies begin at multiples of
// kReplyGranule, in any order. A reply is one frame, or a FrameRun and its frames.
struct PacketResult {
  static constexpr uint32_t kReplyGranule = 16;    // bytes
  static constexpr uint32_t kSizeMax = 1999;       // of a reply frame; larger numbers are states
  static constexpr uint32_t kRunSize = 2047;       // this size: the reply is a run
  static constexpr uint32_t kArenaMax = 1u << 25;  // bytes
  static constexpr uint32_t kSizeShift = 21;       // the bits below are the offset, in granules
  static constexpr uint32_t kLowMask = (1u << kSizeShift) - 1;
  // In a burst with frame_room: the reply lies in the buffer of its request, and the offset counts
  // from the request's first byte.
  static constexpr uint32_t kBeside = 1u << (kSizeShift - 1);
  static constexpr uint32_t kBesideArenaMax = kArenaMax / 2;  // of such a burst's arena

  uint32_t word;

  WC_HD static PacketResult done(uint32_t offset, uint32_t size) {
    return {size << kSizeShift | offset / kReplyGranule};
  }
  WC_HD static PacketResult done_beside(uint32_t offset, uint32_t size) {
    return {done(offset, size).word | kBeside};
  }
  WC_HD static PacketResult done_run(uint32_t offset) {
    return {kRunSize << kSizeShift | offset / kReplyGranule};
  }
  WC_HD static PacketResult not_done(PacketState state) {
    return {(kSizeMax + static_cast<uint32_t>(state)) << kSizeShift};
  }
  WC_HD static PacketResult dropped(PacketVerdict verdict) {
    return {not_done(PacketState::kDropped).word | static_cast<uint32_t>(verdict)};
  }

  WC_HD PacketState state() const {
    const uint32_t size = word >> kSizeShift;
    if (size <= kSizeMax || size == kRunSize) return PacketState::kDone;
    return static_cast<PacketState>(size - kSizeMax);
  }
  // With kDone, in a burst with this frame_room: the reply lies in the request's buffer.
  constexpr bool is_beside(uint32_t frame_room) const {
    return frame_room != 0 && (word & kBeside) != 0;
  }
  constexpr PacketResult without_beside(uint32_t frame_room) const {
    return {frame_room != 0 ? word & ~kBeside : word};
  }
  // With kDone: where the reply is in the arena.
  WC_HD uint32_t offset() const { return (word & kLowMask) * kReplyGranule; }
  WC_HD bool is_run() const { return word >> kSizeShift == kRunSize; }
  // Of a reply that is no run. 0 bytes: there is no reply.
  WC_HD uint32_t size() const { return word >> kSizeShift; }
  // With kDropped; kRequest: the frame is UDP to our port, but its payload is no request.
  WC_HD PacketVerdict verdict() const { return static_cast<PacketVerdict>(word & kLowMask); }
};
static_assert(sizeof(PacketResult) == 4 && std::is_trivially_copyable_v<PacketResult>);

// The header of a reply of several datagrams. Their frames follow in order, each at the next
// multiple of kReplyGranule; all but the last have the same size.
struct FrameRun {
  uint32_t count;
  uint32_t frame_bytes;
  uint32_t last_bytes;
  uint32_t reserved;

  WC_HD static constexpr uint32_t words_of(uint32_t bytes) {  // granules
    return divided_up(bytes, PacketResult::kReplyGranule);
  }
  // Where a frame begins, in granules from the start of the run.
  WC_HD static constexpr uint32_t begin_of(uint32_t frame, uint32_t frame_bytes) {
    return words_of(sizeof(FrameRun)) + frame * words_of(frame_bytes);
  }
};
static_assert(sizeof(FrameRun) == PacketResult::kReplyGranule);

// Bytes of the arena that a reply frame takes.
WC_HD constexpr uint32_t arena_bytes(uint32_t frame_bytes) {
  return FrameRun::words_of(frame_bytes) * PacketResult::kReplyGranule;
}

// Whether a reply of `reply_bytes` fits into the buffer of its request, after that.
WC_HD constexpr bool fits_beside(uint32_t frame_bytes, uint32_t reply_bytes, uint32_t frame_room) {
  return arena_bytes(frame_bytes) + arena_bytes(reply_bytes) <= frame_room;
}

// Reply space that an engine may reserve for a packet that writes, beyond the size of its reply.
inline constexpr uint32_t kReservedReplyBytes = 160;

// How another process starts a burst: it stores `value` at `word`, as one store of eight bytes. A
// second store of it changes nothing. `offset`: of the word in the memory that both share.
struct PeerDoorbell {
  uint64_t* word = nullptr;
  uint64_t value = 0;
  uint64_t offset = 0;
};

// `input`, `replies`, `slots` and `results` lie in memory of Engine::packet_memory(); frames and
// replies of an engine on a GPU may also lie in that GPU's memory.
struct PacketBurst {
  uint8_t* input = nullptr;  // begins at a multiple of 16 bytes. Keys may be decoded in place
  // Of all frames, a multiple of 16. 0: the frames are scattered over more memory than they fill,
  // so an engine reads each where it is.
  uint32_t input_bytes = 0;
  uint32_t count = 0;  // packets
  // Where the frames are in the input, in any order. Null: in contiguous slots of slot_bytes; bytes
  // of a slot after its frame are ignored.
  const PacketSlot* slots = nullptr;
  uint32_t slot_bytes = 0;
  // Bytes from the start of each frame that no other frame uses: an engine may write a reply there,
  // at the first multiple of kReplyGranule after the request (PacketResult::kBeside), which spares
  // the port a buffer. All frames begin at multiples of kReplyGranule then. 0: replies are written
  // to `replies` only.
  uint32_t frame_room = 0;
  uint8_t* replies = nullptr;       // the reply arena; begins at a multiple of 16 bytes
  uint32_t reply_bytes = 0;         // of `replies`, at most PacketResult::kArenaMax
  PacketResult* results = nullptr;  // one for each packet; out: kDone or kDropped
  // Frames and replies are in the GPU's memory. Packets that the host would have to run get no
  // reply then.
  bool on_device = false;
  // The burst does not start by itself: after submit_packets() a peer in another process fills its
  // slots and rings `doorbell`, which submit_packets() has set. An engine that nobody else can ring
  // leaves it empty, and drops all packets. REQUIRES: slots is null, and count more than 1.
  bool rung_by_peer = false;
  PeerDoorbell doorbell;
  // Out: replies that did not fit into the arena, or into the largest number of datagrams.
  uint32_t replies_dropped = 0;

  PacketSlot slot(uint32_t packet) const {
    return slots != nullptr ? slots[packet] : PacketSlot{packet * slot_bytes, slot_bytes};
  }
  MutableBytes frame(uint32_t packet) const {
    const PacketSlot place = slot(packet);
    return {input + place.offset, place.size};
  }
  // No packet is answered.
  void drop_all() {
    for (uint32_t i = 0; i < count; ++i) results[i] = PacketResult::done(0, 0);
    replies_dropped = count;
  }
};

// The frames of one packet's reply.
class ReplyFrames {
 public:
  // The burst's memory must stay while the frames are used. A packet that is not done has no
  // frames.
  ReplyFrames(const PacketBurst& burst, uint32_t packet)
      : ReplyFrames(burst.results[packet].is_beside(burst.frame_room) ? burst.frame(packet).data
                                                                      : burst.replies,
                    burst.results[packet].without_beside(burst.frame_room)) {
    is_beside_ = burst.results[packet].is_beside(burst.frame_room);
    // The header of a run may lie where a peer writes.
    if (burst.results[packet].is_run() && !run_fits(burst, burst.results[packet])) run_ = {};
  }
  // Of a burst without frame_room.
  ReplyFrames(const uint8_t* arena, PacketResult result) {
    if (result.state() != PacketState::kDone) return;
    first_ = arena + result.offset();
    run_.last_bytes = result.size();
    run_.count = result.size() != 0 ? 1 : 0;
    if (!result.is_run()) return;
    std::memcpy(&run_, first_, sizeof(run_));
    first_ += sizeof(run_);
  }

  uint32_t count() const { return run_.count; }
  // The reply, one frame, lies in the buffer of its request.
  bool is_beside() const { return is_beside_; }
  // REQUIRES: number < count().
  Bytes operator[](uint32_t number) const {
    const uint32_t granules = number * FrameRun::words_of(run_.frame_bytes);
    return {first_ + uint64_t{granules} * PacketResult::kReplyGranule,
            number + 1 == run_.count ? run_.last_bytes : run_.frame_bytes};
  }

 private:
  bool run_fits(const PacketBurst& burst, PacketResult result) const {
    constexpr uint32_t kMax = PacketResult::kArenaMax;
    if (run_.count == 0 || run_.count > kMax || run_.frame_bytes > kMax || run_.last_bytes > kMax) {
      return false;
    }
    const uint64_t before = uint64_t{run_.count - 1} * FrameRun::words_of(run_.frame_bytes);
    return result.without_beside(burst.frame_room).offset() + sizeof(FrameRun) +
               before * PacketResult::kReplyGranule + run_.last_bytes <=
           burst.reply_bytes;
  }

  const uint8_t* first_ = nullptr;
  bool is_beside_ = false;
  FrameRun run_ = {};
};

}  // namespace warpcache::net
