// SPDX-License-Identifier: Apache-2.0
//
// The single-key fast path for GETs (protocol/single_key/get.h): one lane each, for up to 32 frames
// in the staging buffer. It answers hits. Hits on short values come first; longer ones are looked
// up again, by a second instance. A key that was not found in its usual place is looked up by
// answer_single_key_misses(), as thoroughly as store::find_key(). Both of these are separate
// functions: a warp that hits short values only does not fetch their code.
//
// Device code.
#pragma once

#include <cstdint>

#include "engine/cuda/packets/packet_stage.cuh"
#include "engine/cuda/packets/past_l1.cuh"
#include "protocol/single_key/get.h"

namespace warpcache::engine::cuda {

static_assert(protocol::kSingleKeyReplyMax <= kStageBytes);

namespace single_key_gets_detail {

// Called by one lane. `frame` lies in the stage.
__device__ inline protocol::SingleKeyGet open(const PacketJob& job, Bytes frame) {
  if (!may_be_single_key(job, frame.data)) return {};
  return protocol::parse_single_key_get(frame.data, static_cast<uint32_t>(frame.size),
                                        job.udp_port);
}

__device__ inline protocol::SingleKeyBytes key_of(Bytes frame,
                                                  const protocol::SingleKeyGet& request) {
  return {{frame.data + protocol::kSingleKeyOffset, request.key_size}};
}

}  // namespace single_key_gets_detail

// The outcome of a packet on this path.
enum class SingleKeyFate : uint8_t {
  kOther,   // no single-key GET, or not one for this path
  kMissed,  // a key that is not in its usual place: see answer_single_key_misses()
  kLong,    // a hit on a long value, where this instance answers short ones
  kDone     // answered; `result` is set
};

// The hits that an instance answers: values up to kLaneValueMax, copied by one lane each, or longer
// ones, copied by the whole warp.
enum class ValueSizes : uint8_t { kShort, kLong };

// One chunk, as seen by one lane. Every function is called by the whole warp unless it says
// otherwise.
template <ValueSizes kSizes>
class SingleKeyGets {
 public:
  // REQUIRES: the block is in its epoch when run() is called.
  __device__ SingleKeyGets(const store::Core& core, const PacketJob& job, WarpStage& stage,
                           Tally& tally)
      : core_(core),
        job_(job),
        stage_(stage),
        tally_(tally),
        pairs_(load_relaxed(&core.shared->pair_count)),
        flush_generation_(load_relaxed(&core.shared->flush_generation)) {}

  // Answers this lane's `frame` if it has one (`here`) and it is a single-key GET; it is at
  // `offset` of the job's input.
  __device__ SingleKeyFate run(Bytes frame, uint32_t offset, bool here, PacketResult& result);

 private:
  __device__ SingleKeyFate look_up(Bytes frame);
  __device__ void compose(const uint8_t* frame, uint8_t* out, bool mine);
  // REQUIRES: it is a hit.
  __device__ const uint8_t* value() const { return found_.item->key_data() + request_.key_size; }

  const store::Core& core_;
  const PacketJob& job_;
  WarpStage& stage_;
  Tally& tally_;
  // An outdated count only makes the search longer. An item flushed since takes the general path.
  uint32_t pairs_;
  uint32_t flush_generation_;
  // Of the lane's packet:
  protocol::SingleKeyGet request_;
  PastL1::Found found_;
  uint32_t size_ = 0;  // of the reply frame
};

// Called by one lane.
template <ValueSizes kSizes>
__device__ inline SingleKeyFate SingleKeyGets<kSizes>::look_up(Bytes frame) {
  request_ = single_key_gets_detail::open(job_, frame);
  if (request_.key_size == 0) return SingleKeyFate::kOther;
  const protocol::SingleKeyBytes key = single_key_gets_detail::key_of(frame, request_);
  found_ = find_past_l1(core_, pairs_, hash_key(core_.seed, key), key);
  if (!found_) return SingleKeyFate::kMissed;
  const bool expired = store::has_expired(found_.expiry, job_.clock.now);
  if (expired || found_.flush_generation != flush_generation_ || found_.chained()) {
    return SingleKeyFate::kOther;
  }
  if (kSizes == ValueSizes::kShort && found_.value_size > kLaneValueMax)
    return SingleKeyFate::kLong;
  if (found_.value_size > protocol::kUdpPayloadMax) return SingleKeyFate::kOther;
  size_ = protocol::single_key_hit_size(request_, found_.client_flags, found_.value_size);
  if (size_ > protocol::kSingleKeyReplyMax) return SingleKeyFate::kOther;
  store::record_hit(found_, job_.clock.now);
  return SingleKeyFate::kDone;
}

template <ValueSizes kSizes>
__device__ inline SingleKeyFate SingleKeyGets<kSizes>::run(Bytes frame, uint32_t offset, bool here,
                                                           PacketResult& result) {
  SingleKeyFate fate = SingleKeyFate::kOther;
  if (here) fate = look_up(frame);
  __syncwarp();
  const bool hit = fate == SingleKeyFate::kDone;
  const uint32_t words = (size_ + 15) / 16;
  bool waits = hit;
  while (__any_sync(gpu::kAllLanes, waits)) {
    // A round is for replies beside their requests, or for those to the arena.
    bool chosen = waits;
    bool beside = false;
    if (job_.frame_room != 0) {
      const bool fits = waits && fits_beside(job_, frame, size_);
      beside = __any_sync(gpu::kAllLanes, fits);
      if (beside) chosen = fits;
    }
    const gpu::LaneRanges space(chosen ? words : 0);
    const bool mine = chosen && space.end() <= kStageWords;
    const uint32_t total = __reduce_max_sync(gpu::kAllLanes, mine ? space.end() : 0);
    // The atomic is issued before its result is needed.
    const ReplyArena arena(job_);
    uint64_t answer = 0;
    if (!beside && gpu::lane_id() == 0) answer = arena.ask(total, 0);
    compose(frame.data, stage_.reply + space.begin() * 16, mine);
    if (beside) {
      const uint32_t to = beside_word(offset, frame);
      send_beside(job_, stage_, 0, space, total, to);
      if (mine) result = PacketResult::done_beside(to * 16 - offset, size_);
    } else {
      uint32_t base = 0;
      uint32_t fits = 0;
      if (gpu::lane_id() == 0) fits = arena.settle(answer, total, 0, &base) ? 1 : 0;
      base = __shfl_sync(gpu::kAllLanes, base, 0);
      const bool sent = __shfl_sync(gpu::kAllLanes, fits, 0) != 0;
      if (sent) send_staged(job_, stage_, total, base);
      if (mine) {
        result = sent ? PacketResult::done((base + space.begin()) * 16, size_)
                      : PacketResult::not_done(PacketState::kNoReplySpace);
      }
    }
    waits = waits && !mine;
  }
  const uint32_t hits = __popc(__ballot_sync(gpu::kAllLanes, hit));
  if (gpu::lane_id() == 0 && hits != 0) {
    tally_.counters.add(request::Counter::kCmdGet, hits);
    tally_.counters.add(request::Counter::kGetHits, hits);
  }
  return fate;
}

// Composes the reply frames of the lanes that have space in the staging buffer (`mine`), at `out`.
template <ValueSizes kSizes>
__device__ inline void SingleKeyGets<kSizes>::compose(const uint8_t* frame, uint8_t* out,
                                                      bool mine) {
  uint8_t* place = nullptr;
  if (mine) {
    place = protocol::compose_single_key_hit(frame, request_, found_.client_flags,
                                             found_.value_size, size_, out);
  }
  if (kSizes == ValueSizes::kShort) {
    if (mine) copy_past_l1(place, value(), found_.value_size);
    __syncwarp();
  } else {
    copy_values(mine, place, mine ? value() : nullptr, found_.value_size);
  }
  if (mine) protocol::finish_single_key_hit(request_, size_, out);
  __syncwarp();
}

// Answers the single-key GETs of the lanes that have `missed`. Returns false for a key that is
// there after all, because it has moved meanwhile: it takes the general path. Called by the whole
// warp.
__device__ inline bool answer_single_key_misses(const store::Core& core, const PacketJob& job,
                                                WarpStage& stage, Tally& tally, Bytes frame,
                                                uint32_t offset, bool missed,
                                                PacketResult& result) {
  protocol::SingleKeyGet request;
  bool mine = missed;
  if (missed) {
    request = single_key_gets_detail::open(job, frame);
    const Bytes key = single_key_gets_detail::key_of(frame, request);
    mine = !store::find_key(core, hash_key(core.seed, key), key);
  }
  const uint32_t lanes = __ballot_sync(gpu::kAllLanes, mine);
  if (lanes == 0) return false;
  const auto compose = [&](uint8_t* out) {
    return protocol::compose_single_key_miss(frame.data, request, out);
  };
  send_short_replies(job, stage, frame, offset, mine, 0, compose, result);
  if (gpu::lane_id() == 0) {
    tally.counters.add(request::Counter::kCmdGet, __popc(lanes));
    tally.counters.add(request::Counter::kGetMisses, __popc(lanes));
  }
  return mine;
}

}  // namespace warpcache::engine::cuda
