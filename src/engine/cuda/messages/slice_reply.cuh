// SPDX-License-Identifier: Apache-2.0
//
// The second half of a slice: execute, compose, publish. Part of slice.cuh.
#pragma once

#include "engine/cuda/messages/slice.cuh"

namespace warpcache::engine::cuda {

// Reports to a watcher what was at the key, and the outcome of the request. Not inlined, with the
// context as a value, and in two parts with nothing between them but memory of the host: without
// watchers the kernel needs no register for it.
__device__ __noinline__ inline void report_before(request::Context context,
                                                  const request::RequestState& state,
                                                  FrameReport& report) {
  const request::KeyBefore before = request::look_before(context, state);
  report.cas_before = before.cas;
  report.value_size_before = before.value_size;
  report.expiry_before = before.expiry;
  report.before = before.state;
}

__device__ __noinline__ inline void report_result(const protocol::Result& result,
                                                  FrameReport& report) {
  report.number = result.number;
  report.value_size = result.value_size;
  report.status = result.status;
}

__device__ inline void SliceRunner::execute_one(uint32_t index) {
  thread_.cas_next = slice_.cas_batch << store::StoreRef::kCasIndexBits | index;
  thread_.cas_end = thread_.cas_next + 1;
  thread_.prepared = slice_.prepared[index];
  slice_.prepared[index] = nullptr;
  thread_.prepared_holds_value = slice_.body[index] != nullptr;
  request::RequestState& state = slice_.state[index];
  context_.reservation = slice_.reservation[index];
  protocol::Result& result = slice_.result[index];
  if (job_.reports) report_before(context_, state, job_.reported()[first_ + index]);
  const Status status = request::execute(context_, state, result);
  abandon_prepared(context_.store, thread_);
  FrameReply& reply = slice_.reply[index];
  if (status == Status::kDeferred) {
    reply.state = FrameState::kDeferred;
    reply.bytes = state.bytes_wanted;
    return;
  }
  reply.state = state.request.op == protocol::Op::kQuit ? FrameState::kQuit : FrameState::kDone;
  reply.bytes = static_cast<uint32_t>(result.outcome);
  if (job_.reports) report_result(result, job_.reported()[first_ + index]);
}

// The reply of a read that changes its item still fits, after what its chain has executed before
// it. (A meta get may change an item that has become stale.) A read that takes effect must be
// answered.
__device__ inline bool SliceRunner::has_space(uint32_t index) const {
  const protocol::Request& request = slice_.state[index].request;
  const bool changes = slice_.writes[index] || request.protocol == protocol::Protocol::kMeta;
  if (request.op != protocol::Op::kGet || !changes) return true;
  const store::Found found = context_.store.find(request.hash, context_.key(request));
  if (!found) return true;
  return uint64_t{protocol::reply_bound_max(request)} + found.item->value_size <=
         slice_.bound[index];
}

// The reply of a read may not fit, since the value became longer after space was reserved. The read
// is then repeated, and no later frame of its chain may have run.
__device__ inline bool SliceRunner::outgrew(uint32_t index) const {
  const protocol::Request& request = slice_.state[index].request;
  const protocol::Result& result = slice_.result[index];
  if (request.op != protocol::Op::kGet || !protocol::reply_carries_value(request, result))
    return false;
  return uint64_t{protocol::reply_bound_max(request)} + result.value_size > slice_.bound[index];
}

__device__ inline void SliceRunner::execute() {
  __syncthreads();
  if (here_ && slice_.first[me_]) {
    for (uint32_t index = me_; index != Slice::kNone; index = slice_.next[index]) {
      if (index != me_ && !has_space(index)) {
        slice_.reply[index].state = FrameState::kNoReplySpace;
        break;
      }
      execute_one(index);
      if (slice_.reply[index].state == FrameState::kDeferred || outgrew(index)) break;
    }
  }
  if (thread_.new_items != 0) atomicAdd(&slice_.new_items, thread_.new_items);
  thread_.new_items = 0;
  __syncthreads();
  if (!here_) return;
  thread_.prepared = slice_.prepared[me_];  // of a frame that its chain did not reach
  abandon_prepared(context_.store, thread_);
}

// Sets where the reply of this thread's frame goes: after the one before, so that the replies of an
// entry are contiguous. A value that has grown since the frame was admitted goes elsewhere.
__device__ inline void SliceRunner::place(uint32_t size) {
  const bool fits = !here_ || size <= slice_.bound[me_];
  const uint32_t before = gpu::sum_before(fits ? size : 0, slice_.warp_sum, &slice_.total);
  if (!here_) return;
  FrameReply& reply = slice_.reply[me_];
  reply.offset = static_cast<uint32_t>(slice_.base + before);
  if (fits) return;
  const uint64_t wanted = (uint64_t{size} + 15) / 16 * 16;
  const uint64_t apart = take_reply_space(wanted);
  if (apart + wanted <= job_.reply_size) {
    reply.offset = static_cast<uint32_t>(apart);
  } else {
    reply = {0, 0, FrameState::kNoReplySpace, 0};
  }
}

__device__ inline void SliceRunner::compose() {
  const bool done = here_ && (slice_.reply[me_].state == FrameState::kDone ||
                              slice_.reply[me_].state == FrameState::kQuit);
  if (done) {
    const protocol::Request& request = slice_.state[me_].request;
    const protocol::Result& result = slice_.result[me_];
    uint8_t* head = protocol::compose_head(request, result, context_.input, scratch_);
    uint8_t* tail = protocol::compose_tail(request, result, context_.input, head);
    slice_.head_size[me_] = static_cast<uint16_t>(head - scratch_);
    slice_.tail_size[me_] = static_cast<uint16_t>(tail - head);
    uint32_t size = static_cast<uint32_t>(tail - scratch_);
    if (protocol::reply_carries_value(request, result)) size += result.value_size;
    slice_.reply[me_].size = size;
  }
  __syncthreads();
  place(here_ ? slice_.reply[me_].size : 0);
  __syncthreads();
  put_bytes();
}

// Copies head, value and tail of every reply to its place: one warp for each reply, all warps for
// long values.
__device__ inline void SliceRunner::put_bytes() {
  const uint8_t* block_scratch = scratch_ - me_ * kReplyFrameMax;
  for (uint32_t i = gpu::warp_id(); i < count_; i += kSliceWarps) {
    const FrameReply& reply = slice_.reply[i];
    if (reply.size == 0) continue;
    const uint8_t* frame = block_scratch + i * kReplyFrameMax;
    uint8_t* const out = job_.reply_copy + reply.offset;
    const uint32_t tail = slice_.tail_size[i];
    gpu::warp_put(out, {frame, slice_.head_size[i]});
    gpu::warp_put(out + reply.size - tail, {frame + slice_.head_size[i], tail});
    if (carries_value(i) && slice_.result[i].value_size <= kWarpValueMax)
      put_value(i, gpu::warp_copy);
  }
  const bool is_long = here_ && carries_value(me_) && slice_.result[me_].value_size > kWarpValueMax;
  if (!__syncthreads_or(is_long)) return;
  for (uint32_t i = 0; i < count_; ++i) {
    if (carries_value(i) && slice_.result[i].value_size > kWarpValueMax)
      put_value(i, gpu::block_copy);
  }
}

template <typename Copy>
__device__ void SliceRunner::put_value(uint32_t index, const Copy& copy) const {
  const protocol::Result& result = slice_.result[index];
  uint8_t* out = job_.reply_copy + slice_.reply[index].offset + slice_.head_size[index];
  copy(out, result.value.data, static_cast<uint32_t>(result.value.size));
  if (!result.chained) return;
  out += result.value.size;
  store::ValuePieces pieces = context_.store.pieces(*slice_.state[index].item);
  for (Bytes piece = pieces.next(); !piece.empty(); piece = pieces.next()) {
    copy(out, piece.data, static_cast<uint32_t>(piece.size));
    out += piece.size;
  }
}

__device__ inline void SliceRunner::publish() {
  if (slice_.total != 0) {
    const uint32_t base = static_cast<uint32_t>(slice_.base);
    gpu::copy_out(job_.reply_out, job_.reply_copy, base, base + slice_.total, me_, blockDim.x);
  }
  if (__syncthreads_or(here_ && is_apart(slice_.reply[me_]))) {
    for (uint32_t i = gpu::warp_id(); i < count_; i += kSliceWarps) {
      const FrameReply& reply = slice_.reply[i];
      if (!is_apart(reply)) continue;
      const uint32_t end = reply.offset + reply.size;
      gpu::copy_out(job_.reply_out, job_.reply_copy, reply.offset, end, gpu::lane_id(),
                    gpu::kWarpSize);
    }
  }
  if (here_) {
    const FrameReply& reply = slice_.reply[me_];
    const uint4 words = load_as<uint4>(&reply);
    *reinterpret_cast<uint4*>(job_.replies + first_ + me_) = words;
    if (reply.state != FrameState::kDone) slice_.ended = true;
  }
  if (me_ == 0) slice_.entry_bytes += slice_.total;
  if (me_ == 0 && slice_.new_items != slice_.expected_items) {
    thread_.new_items = slice_.new_items - slice_.expected_items;
    store::settle_growth(context_.store.core, thread_);
    thread_.new_items = 0;
  }
  __syncthreads();
}

}  // namespace warpcache::engine::cuda
