// SPDX-License-Identifier: Apache-2.0
//
// The first half of a slice: stage, decode, admit, order, grow. Part of slice.cuh.
#pragma once

#include "engine/cuda/messages/slice.cuh"

namespace warpcache::engine::cuda {

__device__ inline void SliceRunner::stage() {
  if (me_ == 0) {
    slice_.low = 0xffffffffu;
    slice_.high = slice_.covered = 0;
  }
  __syncthreads();
  uint32_t size = 0;
  if (here_) {
    size = load_frame();
    if (size != 0) {
      atomicMin(&slice_.low, frame_.offset);
      atomicMax(&slice_.high, frame_.offset + size);
      atomicAdd(&slice_.covered, size);
    }
    slice_.entry[me_] = frame_.entry;
    slice_.reply[me_] = {0, 0, FrameState::kNotReached, 0};
    slice_.runs[me_] = slice_.stops[me_] = slice_.writes[me_] = false;
    slice_.bound[me_] = 0;
    slice_.head_size[me_] = slice_.tail_size[me_] = 0;
    slice_.prepared[me_] = nullptr;
    slice_.body[me_] = nullptr;
  }
  __syncthreads();
  if (slice_.covered != 0) bring_in(size);
}

// Returns the bytes of the frame, with its data.
__device__ inline uint32_t SliceRunner::load_frame() {
  const uint4 words =
      gpu::load_from_host(reinterpret_cast<const uint4*>(job_.frames + first_ + me_));
  frame_ = load_as<protocol::Frame>(&words);
  const uint4 info =
      gpu::load_from_host(reinterpret_cast<const uint4*>(job_.entries + frame_.entry));
  info_ = load_as<EntryInfo>(&info);
  return frame_.head_size + (has_body() && !is_reserved() ? frame_.body_size : 0);
}

__device__ inline void SliceRunner::bring_in(uint32_t size) {
  if (slice_.high - slice_.low <= 2 * slice_.covered + 4096) {
    gpu::copy_in(job_.input_copy, job_.input, slice_.low, slice_.high, me_, blockDim.x);
  } else {
    // Frames that lie far apart are copied one by one.
    for (int lane = 0; lane < static_cast<int>(gpu::kWarpSize); ++lane) {
      const uint32_t low = __shfl_sync(gpu::kAllLanes, frame_.offset, lane);
      const uint32_t bytes = __shfl_sync(gpu::kAllLanes, size, lane);
      if (bytes != 0)
        gpu::copy_in(job_.input_copy, job_.input, low, low + bytes, gpu::lane_id(), gpu::kWarpSize);
    }
  }
  __syncthreads();
}

__device__ inline void SliceRunner::decode() {
  if (here_) decode_own();
  __syncthreads();
}

__device__ inline void SliceRunner::decode_own() {
  request::RequestState& state = slice_.state[me_];
  request::decode(context_, frame_, state);
  protocol::Request& request = state.request;
  if (is_reserved()) request.bits |= protocol::kReserved;
  slice_.reservation[me_] = is_reserved() ? info_.reservation : 0;
  const bool host = request::is_administrative(request.op);
  slice_.stops[me_] = host || request.op == protocol::Op::kQuit;
  slice_.runs[me_] = !host;
  if (host) slice_.reply[me_].state = FrameState::kHost;
  slice_.writes[me_] = request::acts_on_key(request.op) && request.op != protocol::Op::kGet;
  slice_.bound[me_] = protocol::reply_bound_max(request);
  if (request.op == protocol::Op::kGet && request.status == Status::kOk) look_ahead(state);
}

// Estimates the reply of a get, and notes whether it may change the item or add one.
__device__ inline void SliceRunner::look_ahead(request::RequestState& state) {
  const protocol::Request& request = state.request;
  const store::Found found = context_.store.find(request.hash, context_.key(request));
  slice_.writes[me_] = (request.bits & (protocol::kTouchBit | protocol::kVivify)) != 0;
  if (!found) return;
  state.hint.set = found.set;
  state.hint.way = found.way;
  state.hint.slot = load_acquire(&found.set->slots[found.way]);
  const uint32_t size = found.item->value_size;
  if (size <= job_.value_size_max) {
    slice_.bound[me_] += size;
  } else if (context_.store.alive(*found.item, context_.clock.now)) {
    slice_.reply[me_].state = FrameState::kLargeValue;
    slice_.reply[me_].bytes = size;
    slice_.stops[me_] = true;
    slice_.runs[me_] = false;
  }
}

__device__ inline void SliceRunner::admit() {
  // No frame after the end of its entry runs.
  const bool any_stops = __syncthreads_or(here_ && slice_.stops[me_]) != 0;
  if (any_stops && here_) {
    for (uint32_t i = 0; i < me_; ++i) {
      if (!slice_.stops[i] || slice_.entry[i] != slice_.entry[me_]) continue;
      slice_.runs[me_] = false;
      slice_.reply[me_].state = FrameState::kNotReached;
      break;
    }
  }
  share();
  // Every frame that runs has space for its reply.
  const bool runs = here_ && slice_.runs[me_];
  const uint32_t bound = runs ? slice_.bound[me_] : 0;
  const uint32_t before = gpu::sum_before(bound, slice_.warp_sum, &slice_.total);
  if (me_ == 0) {
    const uint64_t wanted = (uint64_t{slice_.total} + 15) / 16 * 16;
    slice_.base = take_reply_space(wanted);
  }
  __syncthreads();
  if (runs && slice_.base + before + bound > job_.reply_size) {
    slice_.runs[me_] = false;
    slice_.reply[me_].state = FrameState::kNoReplySpace;
  }
  __syncthreads();
}

// Limits a stream to `kEntryReplySlice` reply bytes a job; its remaining requests run in the next
// job.
__device__ inline void SliceRunner::share() {
  const bool runs = here_ && slice_.runs[me_];
  const uint32_t bound = runs ? slice_.bound[me_] : 0;
  const uint32_t before = gpu::sum_before(bound, slice_.warp_sum, &slice_.total);
  if (slice_.total + slice_.entry_bytes <= kEntryReplySlice) return;
  if (here_) slice_.before[me_] = before;
  __syncthreads();
  if (runs && info_.datagram == 0) {
    uint32_t begin = me_;
    while (begin > 0 && slice_.entry[begin - 1] == slice_.entry[me_]) --begin;
    const uint64_t had = slice_.entry_bytes + before - slice_.before[begin];
    if (had >= kEntryReplySlice) {
      slice_.runs[me_] = false;
      slice_.reply[me_].state = FrameState::kNotReached;
    }
  }
  __syncthreads();
}

__device__ inline uint64_t SliceRunner::take_reply_space(uint64_t bytes) {
  auto* used = reinterpret_cast<unsigned long long*>(&job_.words->reply_used);
  return atomicAdd(used, static_cast<unsigned long long>(bytes));
}

// Links the frames of one entry on one key; they are executed in order. That includes reads: other
// threads may write meanwhile, and a read must not see an older value than the read before it.
__device__ inline void SliceRunner::order() {
  const bool links =
      here_ && slice_.runs[me_] && request::acts_on_key(slice_.state[me_].request.op);
  const uint64_t hash = links ? slice_.state[me_].request.hash : 0;
  const uint32_t entry = links ? slice_.entry[me_] : 0;
  slice_.bucket[me_] = Slice::kNone;
  if (here_) {
    slice_.next[me_] = Slice::kNone;
    slice_.first[me_] = slice_.runs[me_];
  }
  __syncthreads();
  uint32_t* const bucket =
      &slice_.bucket[(static_cast<uint32_t>(hash) ^ entry * kEntrySpread) % kSliceFrames];
  if (links) slice_.in_bucket[me_] = static_cast<uint16_t>(atomicExch(bucket, me_));
  __syncthreads();
  if (!links) return;
  uint32_t before = Slice::kNone;  // the last earlier frame of the chain
  for (uint32_t i = *bucket; i != Slice::kNone; i = slice_.in_bucket[i]) {
    const bool is_later = before == Slice::kNone || i > before;
    if (i >= me_ || !is_later || slice_.entry[i] != entry) continue;
    if (slice_.state[i].request.hash == hash) before = i;
  }
  if (before == Slice::kNone) return;
  slice_.next[before] = static_cast<uint16_t>(me_);
  slice_.first[me_] = false;
}

__device__ inline void SliceRunner::reserve_index_growth() {
  const bool adds = here_ && slice_.runs[me_] && slice_.writes[me_] &&
                    request::acts_on_key(slice_.state[me_].request.op) &&
                    slice_.state[me_].request.op != protocol::Op::kDelete;
  const int count = __syncthreads_count(adds);
  if (me_ == 0) slice_.expected_items = count;
  if (me_ == 0 && count != 0) store::reserve_growth(context_.store.core, thread_, count);
  __syncthreads();
}

// Copies values with many threads: the single thread that executes a store copies only a few bytes
// with each memory access.
__device__ inline void SliceRunner::prepare() {
  const store::Core& core = context_.store.core;
  const bool writes = here_ && slice_.runs[me_] && slice_.writes[me_];
  const bool crowded = core.shared->keep_all && store::is_crowded(core);
  bool wants = writes && !job_.out_of_memory && !crowded &&
               request::will_store_body(context_, slice_.state[me_]);
  if (!__syncthreads_or(wants)) return;
  uint32_t key_size = 0;
  uint32_t value_size = 0;
  uint32_t expiry = 0;
  if (wants) {
    const protocol::Request& request = slice_.state[me_].request;
    key_size = request.key_size;
    value_size = request.value_size;
    expiry = request::expiry_second(request.exptime, context_.clock);
    // A chain is published where it lies, or written by its own thread.
    wants = footprint_of(true, key_size, value_size) <= core.plain_size_max();
  }
  const uint32_t expiry_class = wants ? store::expiry_class(*core.shared, expiry) : 0;
  prepare_items(core, thread_, wants, key_size, value_size, expiry, expiry_class);
  store::Item* const item = thread_.prepared;
  thread_.prepared = nullptr;
  // The threads of a warp write their own short values at the same time.
  const uint32_t writers = __popc(__ballot_sync(gpu::kAllLanes, item != nullptr));
  const bool fills =
      item != nullptr && (slice_.reservation[me_] != 0 || value_size >= 16 * writers);
  if (here_) {
    slice_.prepared[me_] = item;
    slice_.body[me_] = fills ? body_of(me_, value_size) : nullptr;
  }
  if (__syncthreads_or(fills)) fill_prepared();
}

// The body of a store, `size` bytes in device memory. Null: it is not in one piece. Called by one
// thread.
__device__ inline const uint8_t* SliceRunner::body_of(uint32_t index, uint32_t size) const {
  if (slice_.reservation[index] == 0) {
    return context_.input + slice_.state[index].request.value_offset;
  }
  const store::Item* const staged =
      store::reservation_item(context_.store.core, slice_.reservation[index]);
  const bool whole = staged != nullptr && !staged->chained() && staged->value_size == size;
  return whole ? staged->value_data() : nullptr;
}

__device__ inline void SliceRunner::fill_prepared() {
  const auto size_of = [this](uint32_t i) {
    return slice_.body[i] != nullptr ? slice_.prepared[i]->value_size : 0;
  };
  for (uint32_t i = gpu::warp_id(); i < count_; i += kSliceWarps) {
    const uint32_t size = size_of(i);
    if (size == 0 || size > kWarpValueMax) continue;
    gpu::warp_copy(slice_.prepared[i]->value_data(), slice_.body[i], size);
  }
  if (!__syncthreads_or(here_ && size_of(me_) > kWarpValueMax)) return;
  for (uint32_t i = 0; i < count_; ++i) {
    const uint32_t size = size_of(i);
    if (size > kWarpValueMax)
      gpu::block_copy(slice_.prepared[i]->value_data(), slice_.body[i], size);
  }
}

}  // namespace warpcache::engine::cuda
