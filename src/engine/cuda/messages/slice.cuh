// SPDX-License-Identifier: Apache-2.0
//
// A block of threads executes a slice: up to 256 frames, one thread each. The threads of the block
// share their data in shared memory.
//
// Steps; the whole block meets between them:
//   stage     copies the slice's bytes over the bus, coalesced, to the device's copy of the input
//   decode    Frame to Request; looks the key up to learn the size of its value
//   admit     an entry ends at the first frame that the host must run or that has no reply space
//   order     links the frames of one entry on one key into a chain, if one of them writes
//   grow      the index gets ways for all keys that the slice may add
//   prepare   plain stores get their items; many threads copy the values there
//   execute   the first thread of each chain runs the whole chain, in order
//   compose   heads and tails of the replies, then their places, then all bytes
//   publish   copies replies and results over the bus, coalesced
//
// Device code.
#pragma once

#include <cstdint>

#include "engine/cuda/runtime/kernels.h"
#include "engine/cuda/runtime/prepare_items.cuh"
#include "engine/replies.h"
#include "protocol/framing/frame_types.h"
#include "request/stages.h"
#include "request/watched.h"

namespace warpcache::engine::cuda {

inline constexpr uint32_t kSliceWarps = kSliceFrames / gpu::kWarpSize;

// Longer values are copied by all warps of the block, others by one warp each. Bytes.
inline constexpr uint32_t kWarpValueMax = 4096;

// Device memory of one block for the heads and tails of replies.
inline constexpr uint32_t kScratchBytes = kSliceFrames * kReplyFrameMax;

// Multiplier that spreads the frames of different entries with one key over the buckets.
inline constexpr uint32_t kEntrySpread = 0x9e3779b1;

// In shared memory.
struct alignas(16) Slice {
  static constexpr uint16_t kNone = 0xffff;

  request::RequestState state[kSliceFrames];
  protocol::Result result[kSliceFrames];
  FrameReply reply[kSliceFrames];
  uint32_t entry[kSliceFrames];
  uint32_t reservation[kSliceFrames];
  uint32_t bound[kSliceFrames];      // upper bound for the size of the reply
  uint32_t before[kSliceFrames];     // bytes of all earlier replies
  uint16_t head_size[kSliceFrames];  // bytes of the reply before its value
  uint16_t tail_size[kSliceFrames];
  store::Item* prepared[kSliceFrames];  // item of a store, before it is published; null: none yet
  const uint8_t* body[kSliceFrames];    // where its value was copied from; null: it was not
  uint16_t next[kSliceFrames];          // the next frame of the chain
  uint32_t bucket[kSliceFrames];        // frames by entry and key: the first of each bucket ...
  uint16_t in_bucket[kSliceFrames];     // ... and the next one after a frame
  bool stops[kSliceFrames];             // later frames of the entry are not executed
  bool writes[kSliceFrames];
  bool runs[kSliceFrames];   // will be executed
  bool first[kSliceFrames];  // is the first of its chain
  uint32_t warp_sum[kSliceWarps];
  uint32_t total;        // of the last sum
  uint64_t base;         // where the slice's replies begin in the arena
  uint64_t entry_bytes;  // reply bytes of earlier slices, where the group has one entry
  uint32_t low;          // first input byte of the slice's frames
  uint32_t high;
  uint32_t covered;
  int32_t new_items;       // keys added minus keys removed
  int32_t expected_items;  // of these, reported in advance
  uint64_t cas_batch;
  bool ended;  // the only entry of the group has ended before its last frame
};

// A slice, as seen by one thread. Every function is called by the whole block.
class SliceRunner {
 public:
  __device__ SliceRunner(const BlockResources& resources, const FrameJob& job, Slice& slice,
                         request::Counters& counters)
      : job_(job), slice_(slice) {
    const uint32_t reader = job.first_reader + blockIdx.x;
    scratch_ = resources.scratch + uint64_t{reader} * kScratchBytes + threadIdx.x * kReplyFrameMax;
    thread_.slot = &resources.core.epochs[reader];
    thread_.counters = &resources.counters[reader];
    thread_.append_point = reader % resources.core.shared->append_point_count;
    context_.store = {resources.core};
    context_.thread = &thread_;
    context_.input = job.input_copy;
    context_.clock = job.clock;
    context_.counters = &counters;
    context_.item_size_max = job.item_size_max;
    context_.cas_enabled = job.cas_enabled;
    context_.out_of_memory = job.out_of_memory;
  }

  // Executes `count` frames from `first` on. All results are written when it returns.
  __device__ void run(uint32_t first, uint32_t count) {
    first_ = first;
    count_ = count;
    me_ = threadIdx.x;
    here_ = me_ < count;
    stage();
    if (me_ == 0) {
      context_.store.enter_batch(thread_);
      slice_.cas_batch = fetch_add(&context_.store.core.shared->cas_batch, 1) + 1;
      slice_.new_items = 0;
    }
    __syncthreads();
    decode();
    admit();
    order();
    reserve_index_growth();
    prepare();
    execute();
    compose();
    __syncthreads();
    if (me_ == 0) context_.store.leave_batch(thread_);
    publish();
  }

 private:
  __device__ void stage();
  __device__ uint32_t load_frame();
  __device__ void bring_in(uint32_t size);
  __device__ void decode();
  __device__ void decode_own();
  __device__ void look_ahead(request::RequestState& state);
  __device__ void admit();
  __device__ void share();
  __device__ uint64_t take_reply_space(uint64_t bytes);
  __device__ void order();
  __device__ void reserve_index_growth();
  __device__ void prepare();
  __device__ const uint8_t* body_of(uint32_t index, uint32_t size) const;
  __device__ void fill_prepared();
  __device__ void execute();
  __device__ bool has_space(uint32_t index) const;
  __device__ bool outgrew(uint32_t index) const;
  __device__ void execute_one(uint32_t index);
  __device__ void compose();
  __device__ void put_bytes();
  __device__ bool carries_value(uint32_t index) const {
    const protocol::Request& request = slice_.state[index].request;
    return slice_.reply[index].size != 0 &&
           protocol::reply_carries_value(request, slice_.result[index]);
  }
  template <typename Copy>
  __device__ void put_value(uint32_t index, const Copy& copy) const;
  __device__ void place(uint32_t size);
  __device__ bool is_apart(const FrameReply& reply) const {
    const uint64_t end = slice_.base + slice_.total;
    return reply.size != 0 && (reply.offset < slice_.base || reply.offset >= end);
  }
  __device__ void publish();
  __device__ bool has_body() const {
    return frame_.kind == protocol::FrameKind::kTextStore ||
           frame_.kind == protocol::FrameKind::kMetaStore ||
           frame_.kind == protocol::FrameKind::kBinary;
  }
  __device__ bool is_reserved() const {
    return info_.reservation != 0 && info_.reserved_frame == first_ + me_;
  }

  const FrameJob& job_;
  Slice& slice_;
  uint8_t* scratch_;
  store::ThreadContext thread_;
  request::Context context_;
  protocol::Frame frame_ = {};
  EntryInfo info_ = {};
  uint32_t first_ = 0;
  uint32_t count_ = 0;
  uint32_t me_ = 0;
  bool here_ = false;
};

}  // namespace warpcache::engine::cuda

#include "engine/cuda/messages/slice_input.cuh"
#include "engine/cuda/messages/slice_reply.cuh"
