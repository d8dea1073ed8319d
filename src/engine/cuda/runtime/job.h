// SPDX-License-Identifier: Apache-2.0
//
// The messages between host and device about a batch: plain layouts in pinned host memory.
//
// There are two kinds of jobs. A FrameJob is a batch of framed requests of connections and
// datagrams, cut into groups; a block of threads takes one group at a time. A group holds whole
// entries, or one entry that is larger than a slice. A PacketJob is a batch of independent Ethernet
// frames; a warp takes a chunk of up to 32 frames at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/atomic.h"
#include "base/hd.h"
#include "base/status.h"
#include "net/packet_burst.h"
#include "protocol/framing/frame_types.h"
#include "request/counters.h"
#include "request/key_state.h"
#include "store/layout/clock.h"

namespace warpcache::engine::cuda {

// Frames that a block works on at the same time: one for each thread.
inline constexpr uint32_t kSliceFrames = 256;

// Frames of one job at most.
inline constexpr uint32_t kFramesMax = 64 * 1024;
// Groups of one job at most: two neighbouring groups together hold more than a slice.
inline constexpr uint32_t kGroupsMax = 2 * kFramesMax / kSliceFrames + 1;

// Packets of one job at most.
inline constexpr uint32_t kPacketsMax = 256 * 1024;
// Packets that a warp takes at a time at most: one for each lane.
inline constexpr uint32_t kChunkPackets = 32;
// Bytes of frames that a warp holds at a time. The host handles larger frames.
inline constexpr uint32_t kStageBytes = 3 * 1024;

struct Group {
  uint32_t first_frame;
  uint32_t frame_count;
};

// What the device needs to know of an entry.
struct EntryInfo {
  uint32_t reserved_frame;  // the frame whose body is in `reservation`
  uint32_t reservation;     // 0: none
  uint32_t datagram;        // 1: it is answered as a whole
  uint32_t reserved;
};
static_assert(sizeof(EntryInfo) == 16 && std::is_trivially_copyable_v<EntryInfo>);

// The state of a frame after the job.
enum class FrameState : uint32_t {
  kNotReached,   // an earlier frame of its entry was not done, or the entry has used its share of
                 // reply space
  kDone,         // took effect, and the reply is complete
  kQuit,         // done; later frames of its entry were not executed
  kDeferred,     // no space in the store: submit it again after reclaim(bytes)
  kHost,         // a command that the host runs; it and later frames of its entry were not executed
  kLargeValue,   // its value has `bytes`, more than FrameJob::value_size_max; nothing was executed
  kNoReplySpace  // the arena is full: submit it again with an empty one
};

// Written by the device, one for each frame. The reply is `size` bytes at `offset` of the reply
// arena.
struct FrameReply {
  uint32_t offset;
  uint32_t size;
  FrameState state;
  uint32_t bytes;  // depends on the state; with kDone: the protocol::Outcome
};
static_assert(sizeof(FrameReply) == 16 && std::is_trivially_copyable_v<FrameReply>);

// What is reported to the host of a frame that was done, while a watcher wants it.
struct FrameReport {
  uint64_t cas_before;  // of the item, with kFound
  uint32_t value_size_before;
  uint32_t expiry_before;  // server second
  uint64_t number;         // of the protocol::Result, as what follows
  uint32_t value_size;
  request::KeyState before;
  Status status;
  uint16_t reserved;
};
static_assert(sizeof(FrameReport) == 32 && std::is_trivially_copyable_v<FrameReport>);

using net::FrameRun;
using net::PacketResult;
using net::PacketSlot;
using net::PacketState;

inline constexpr uint32_t kCounterCount = static_cast<uint32_t>(request::Counter::kCount);

// Sums over all blocks of a job. The blocks add them up in device memory; the last one writes them
// to the host.
struct alignas(32) JobResult {
  uint32_t counts[kCounterCount];  // to be added to request::Counters
  uint32_t reserved[32 - kCounterCount - 6];
  uint64_t space_missing;  // bytes that all deferred packets want
  uint32_t undone;         // packets that are not kDone or kDropped
  uint32_t space_wanted;   // bytes that the largest deferred request wants
  uint32_t free_segments;  // of the store, at the end of the job (of a job of one block: at its
                           // start)
  uint32_t low_water;      // with fewer free segments maintenance is needed
};
static_assert(sizeof(JobResult) == 128);

// Words that the blocks of a job share, on separate cache lines. In device memory; 0 before and
// after a job.
struct JobWords {
  alignas(64) uint64_t reply_used;   // reply space that is taken
  alignas(64) uint32_t blocks_done;  // blocks that have finished
  alignas(64) JobResult totals;      // sums of these
};

// The fields of both kinds of jobs. All pointers are valid on the device.
struct Job {
  JobResult* result;       // host
  uint32_t* done;          // host: gets `number` when all results are written
  JobWords* words;         // device
  uint32_t number;         // never 0
  uint32_t first_reader;   // epoch slots of this job's blocks: first_reader + block
  uint32_t shares;         // groups or chunks, distributed over the blocks
  uint32_t item_size_max;  // -I
  store::Clock clock;
  bool cas_enabled;
  bool out_of_memory;  // reclaim() has failed: answer instead of deferring
  bool reports;        // of a FrameJob: see FrameJob::reported()
};

// The host's buffers are pinned. Frames are numbered as in the batch; the job reads only those of
// its groups.
struct FrameJob : Job {
  const uint8_t* input;           // host; Frame::offset counts from here
  const protocol::Frame* frames;  // host
  const Group* groups;            // host
  const EntryInfo* entries;       // host, by entry
  FrameReply* replies;            // host, by frame; FrameReport by frame follow kFramesMax of them
  uint8_t* reply_out;             // host: the reply arena
  uint8_t* input_copy;            // device: mirror of the input
  uint8_t* reply_copy;            // device: mirror of the reply arena
  uint32_t reply_size;            // bytes of the arena
  uint32_t value_size_max;        // longer values get kLargeValue

  WC_HD bool reads_host() const { return true; }  // data besides the job itself
  // Written by the device if `reports`: of each frame that is done. Host.
  WC_HD FrameReport* reported() const {
    return reinterpret_cast<FrameReport*>(replies + kFramesMax);
  }
};
static_assert(std::is_trivially_copyable_v<FrameJob>);

// Write combining. Of the SETs of one key in a job one is applied; the others are answered as if it
// had overwritten them at once. Without it, thousands of SETs of a hot key wait for its lock one by
// one.
inline constexpr uint32_t kCombineEntries = 64 * 1024;
inline constexpr uint32_t kCombineRoundMax = (1u << 24) - 1;
// An entry of the combine table: round, key size, and where the key is in the input.
WC_HD constexpr uint64_t combine_entry(uint32_t round, uint32_t key_size, uint32_t key_offset) {
  return uint64_t{round} << 40 | uint64_t{key_size} << 32 | key_offset;
}
WC_HD constexpr uint32_t combine_round(uint64_t entry) {
  return static_cast<uint32_t>(entry >> 40);
}
WC_HD constexpr uint32_t combine_key_size(uint64_t entry) { return entry >> 32 & 0xff; }
WC_HD constexpr uint32_t combine_key_offset(uint64_t entry) { return static_cast<uint32_t>(entry); }

// Input and arena are in pinned host memory or in device memory.
struct PacketJob : Job {
  static constexpr uint32_t kInlineMax = 96;  // bytes: a short request in its frame
  static constexpr uint32_t kInlineSlots = kInlineMax / sizeof(PacketSlot);

  uint8_t* input;           // begins at a multiple of 16 bytes, and is readable up to the next one
  const PacketSlot* slots;  // host; null: inline, or contiguous slots of slot_bytes
  PacketResult* packets;    // host, by packet
  uint8_t* reply_out;       // the reply arena; begins at a multiple of 16 bytes
  uint64_t* combine_table;  // device: kCombineEntries, see combine_entry()
  uint32_t* reply_end;      // host: gets the bytes of the arena that hold replies
  uint32_t combine_round;   // another number in each job, up to kCombineRoundMax
  uint32_t slot_bytes;
  uint32_t frame_room;  // see net::PacketBurst
  uint32_t count;
  uint32_t reply_begin;  // bytes of the arena that are taken
  uint32_t reply_size;   // of the arena, at most PacketResult::kArenaMax
  uint16_t udp_port;     // packets to other ports are dropped
  uint8_t protocol;      // -B: see protocol::FrameLimits
  uint8_t chunk;         // packets that a warp takes at a time, up to kChunkPackets
  // A short input, or the slots of few packets, are copied into the job itself, which saves one
  // transfer over the bus.
  uint32_t inline_bytes;  // of the input; 0: it is not here
  bool slots_inline;      // `slots` is null, and they are here
  alignas(16) uint8_t inline_data[kInlineMax];

  // Slots lie at offsets of the input, and are not contiguous.
  WC_HD bool has_slots() const { return slots_inline || slots != nullptr; }
  // The device has to read what the host has written outside of the job.
  WC_HD bool reads_host() const { return inline_bytes == 0 || slots != nullptr; }
};
static_assert(std::is_trivially_copyable_v<PacketJob>);

// How host and device signal each other. In pinned host memory; each word has one writer.
//
// The host tells a persistent kernel what differs from the latest job, in few words: a kernel that
// waits reads the first line over the bus again and again, and so do all others. Each word carries
// four bytes of the job, their position and a tag, so that one read gets them and says whether they
// are of this job.
template <typename JobKind>
struct Doorbell {
  static constexpr uint32_t kJobWords = sizeof(JobKind) / sizeof(uint32_t);
  static constexpr uint32_t kLineWords = 128 / sizeof(uint64_t);  // that a waiting kernel reads
  static_assert(sizeof(JobKind) % sizeof(uint32_t) == 0);

  // The call, then as many words of the job as it says.
  alignas(128) uint64_t words[1 + kJobWords];
  // Device to host: number of the latest complete job.
  alignas(128) uint32_t done;
};

// A word of a Doorbell. Bits 31:0: four bytes of the job, or in the first word the job's number;
// 39:32: their position in the job, in words, or in the first word how many words follow; 63:40:
// the tag, never 0, which words of one job have in common.
struct BellWord {
  static constexpr uint32_t kTags = (1u << 24) - 1;
  static constexpr uint32_t kEnd = 255;  // instead of how many words follow: the kernel ends

  uint64_t bits;

  static uint32_t tag_of_job(uint32_t number) { return number % kTags + 1; }
  static BellWord make(uint32_t tag, uint32_t position, uint32_t value) {
    return {uint64_t{tag} << 40 | uint64_t{position} << 32 | value};
  }
  WC_HD uint32_t tag() const { return static_cast<uint32_t>(bits >> 40); }
  WC_HD uint32_t position() const { return static_cast<uint32_t>(bits >> 32) & 255; }
  WC_HD uint32_t value() const { return static_cast<uint32_t>(bits); }
};

// The host's side of a Doorbell.
template <typename JobKind>
class BellRinger {
 public:
  // Before a kernel starts, which knows no job and waits for one after `latest`.
  void start(Doorbell<JobKind>& bell, uint32_t latest) {
    is_known_ = false;
    clear(bell);
    store_relaxed(&bell.words[0], BellWord::make(BellWord::tag_of_job(latest), 0, latest).bits);
  }

  // Starts a job. REQUIRES: none is in progress; `number` follows that of the call before, or is 1
  // after the largest.
  void ring(Doorbell<JobKind>& bell, const JobKind& job, uint32_t number) {
    const uint32_t tag = BellWord::tag_of_job(number);
    // Tags begin anew: words with this one may be left from long ago.
    if (tag <= tag_) clear(bell);
    tag_ = tag;
    uint32_t words[kJobWords];
    std::memcpy(words, &job, sizeof(job));
    uint32_t count = 0;
    for (uint32_t i = 0; i < kJobWords; ++i) {
      if (is_known_ && words[i] == latest_[i]) continue;
      latest_[i] = words[i];
      store_relaxed(&bell.words[++count], BellWord::make(tag, i, words[i]).bits);
    }
    is_known_ = true;
    store_release(&bell.words[0], BellWord::make(tag, count, number).bits);
  }

  // Ends the kernel. REQUIRES: as ring().
  void end(Doorbell<JobKind>& bell, uint32_t number) {
    const uint32_t tag = BellWord::tag_of_job(number);
    store_release(&bell.words[0], BellWord::make(tag, BellWord::kEnd, number).bits);
  }

 private:
  static constexpr uint32_t kJobWords = Doorbell<JobKind>::kJobWords;
  static_assert(kJobWords < BellWord::kEnd);

  // No word has a job's tag then. The call stays: it says which job was the latest.
  static void clear(Doorbell<JobKind>& bell) {
    for (uint32_t i = 1; i <= kJobWords; ++i) store_relaxed(&bell.words[i], uint64_t{0});
  }

  bool is_known_ = false;
  uint32_t tag_ = 0;            // of the latest job
  uint32_t latest_[kJobWords];  // what the kernel knows, if it knows a job
};

// How the first block of a persistent kernel starts the others. In device memory.
template <typename JobKind>
struct DeviceDoorbell {
  uint64_t go;  // job number << 32 | blocks that work on it; kStopAll: the kernel ends
  JobKind job;
};
inline constexpr uint32_t kStopAll = 0xffffffffu;

}  // namespace warpcache::engine::cuda
