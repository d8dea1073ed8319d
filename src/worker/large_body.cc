// SPDX-License-Identifier: Apache-2.0
//
// Large bodies: received directly into the store, then run as the first frame of a batch entry.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "protocol/framing/frame.h"
#include "protocol/parse/parse.h"
#include "worker/worker.h"

namespace warpcache::worker {

using io::RxChunk;

// Starts to receive a body. Returns false if it cannot be stored: its refused frame is then in the
// batch, and frame() discards the body.
bool Worker::begin_body(const RxChunk& chunk, Session& session, protocol::Frame frame, Plan& plan) {
  frame.entry = plan.entry;
  WC_ASSERT(session.incoming_body == 0 && frame.head_size <= kLargeHeadMax);
  // A client that has not logged in gets no memory of the store.
  if (config_.authentication && !session.authenticated) {
    return refuse_body(session, frame, Status::kTooLarge);
  }
  if (WC_UNLIKELY(chunk.value_memory_max != 0 && frame.body_size > chunk.value_memory_max)) {
    ++plan.bodies_refused;
    return refuse_body(session, frame, Status::kOverShare);
  }
  try {
    session.incoming_body = body_pool_.take();
  } catch (const std::bad_alloc&) {
    return refuse_body(session, frame, Status::kOutOfMemory);
  }
  LargeBody& body = body_pool_[session.incoming_body];
  std::memcpy(body.head, burst_->batch.input + frame.offset, frame.head_size);
  body.frame = frame;
  body.received = body.end_received = body.reservation = 0;
  body.complete = false;
  body.waits_since = {};
  body.key_size = static_cast<uint8_t>(key_size_of(body));
  if (body.key_size != 0) return true;
  drop_body(session.incoming_body, false);
  return refuse_body(session, frame, Status::kTooLarge);
}

bool Worker::refuse_body(Session& session, protocol::Frame frame, Status why) {
  protocol::frame_refuse_large(session.frame, frame, why);
  burst_->batch.frames.push_back(frame);
  return false;
}

// 0: the command has no valid key. Parses a copy, because a message can be parsed only once.
uint32_t Worker::key_size_of(LargeBody& body) {
  uint8_t head[kLargeHeadMax];
  std::memcpy(head, body.head, body.frame.head_size);
  protocol::Frame frame = body.frame;
  frame.offset = 0;
  protocol::Request request;
  protocol::parse_request(frame, head, request);
  return request.op == protocol::Op::kInvalid ? 0 : request.key_size;
}

// Reserves space in the store, but only after kInlineBodyMax bytes of the body have come, or the
// client holds them ready: one that stops earlier then holds no memory of the store. Returns false
// if more input is needed first, or if the body waits for its turn. Refuses the body if there is no
// space.
bool Worker::reserve_body(Session& session, size_t present, Plan& plan) {
  if (present < kInlineBodyMax) {
    plan.next.need = kInlineBodyMax;
    return false;
  }
  LargeBody& body = body_pool_[session.incoming_body];
  const Status status = engine_.reserve(body.key_size, body.frame.body_size, &body.reservation);
  if (status == Status::kOk) return true;
  if (status != Status::kTooLarge) transport_.body_refused();
  if (status == Status::kDeferred && may_wait(body)) {
    plan.next.more_now = plan.next.later = true;
    return false;
  }
  protocol::frame_refuse_large(session.frame, body.frame,
                               status == Status::kTooLarge ? status : Status::kOutOfMemory);
  body.complete = true;
  return true;
}

bool Worker::may_wait(LargeBody& body) const {
  const auto now = std::chrono::steady_clock::now();
  if (body.waits_since == std::chrono::steady_clock::time_point{}) body.waits_since = now;
  return now - body.waits_since < config_.body_wait;
}

// Continues with the session's incoming body. Returns true if it is in the batch, so that the input
// after it can be framed; otherwise plan.next says what is needed.
bool Worker::continue_body(const RxChunk& chunk, Session& session, Plan& plan) {
  LargeBody& body = body_pool_[session.incoming_body];
  const Bytes input = {burst_->rx.arena.data + chunk.offset + plan.framed_end,
                       chunk.size - plan.framed_end};
  const bool reserves = !body.complete && body.reservation == 0;
  const size_t present = input.size + chunk.announced;
  if (reserves && !reserve_body(session, present, plan)) return false;
  if (!body.complete && !take_body(body, input, plan)) return false;
  if (!body.complete) {
    body.complete = true;
    protocol::frame_large_done(body.frame, {body.line_end, body.end_received});
    if (body.frame.kind == protocol::FrameKind::kRefusedStore) {
      engine_.abandon(body.reservation);
      body.reservation = 0;
    }
  }
  return add_body(session.incoming_body, plan);
}

// Takes body and line end from `input`, which starts at plan.framed_end. Returns whether both are
// complete; if not, plan.next says where to receive the rest.
bool Worker::take_body(LargeBody& body, Bytes input, Plan& plan) {
  size_t cursor = 0;
  while (body.received < body.frame.body_size && cursor < input.size) {
    const MutableBytes window = engine_.reservation_window(body.reservation, body.received, 0);
    const size_t bytes = std::min(window.size, input.size - cursor);
    std::memcpy(window.data, input.data + cursor, bytes);
    cursor += bytes;
    body.received += static_cast<uint32_t>(bytes);
  }
  const uint32_t end_size = protocol::body_end_size(body.frame);
  if (body.received == body.frame.body_size) {
    while (body.end_received < end_size && cursor < input.size) {
      body.line_end[body.end_received++] = input[cursor++];
    }
  } else {
    plan.next.body = engine_.reservation_window(body.reservation, body.received, 0);
    plan.next.body_ends = body.received + plan.next.body.size == body.frame.body_size;
  }
  plan.framed_end += static_cast<uint32_t>(cursor);
  return body.received == body.frame.body_size && body.end_received == end_size;
}

// Adds the complete body `id` to the batch, as the first frame of its entry, and sets `id` to 0.
// Returns false if that must wait for the next iteration.
bool Worker::add_body(uint32_t& id, Plan& plan) {
  const LargeBody& body = body_pool_[id];
  const uint32_t head_size = body.frame.head_size;
  engine::BatchEntry& entry = burst_->batch.entries[plan.entry];
  const bool first = burst_->batch.frames.size() == entry.first_frame;
  if (!first || burst_->head_bytes + head_size > kHeadArenaBytes || free_frames(plan) == 0) {
    plan.next.more_now = true;
    return false;
  }
  protocol::Frame frame = body.frame;
  frame.offset = kArenaBytes + burst_->head_bytes;
  frame.entry = plan.entry;
  std::memcpy(burst_->rx.arena.data + frame.offset, body.head, head_size);
  burst_->head_bytes += head_size;
  burst_->batch.frames.push_back(frame);
  entry.reservation = body.reservation;
  plan.first_frame = entry.first_frame + 1;
  plan.body = std::exchange(id, 0);
  return true;
}

MutableBytes Worker::body_window(const io::SessionStorage& storage, uint32_t after) {
  const LargeBody& body = body_pool_[session_of(storage).incoming_body];
  if (body.received + after >= body.frame.body_size) return {};
  return engine_.reservation_window(body.reservation, body.received, after);
}

MutableBytes Worker::device_window(const io::SessionStorage& storage, uint32_t size) {
  const LargeBody& body = body_pool_[session_of(storage).incoming_body];
  if (body.frame.body_size - body.received < size) return {};
  return engine_.device_window(body.reservation, body.received, size);
}

// Bytes of the body that are in their place already.
void Worker::note_body(const RxChunk& chunk, const Session& session) {
  LargeBody& body = body_pool_[session.incoming_body];
  if (chunk.body_on_device) {
    engine_.device_bytes_came(body.reservation, body.received, chunk.body_received);
  }
  body.received += chunk.body_received;
}

bool Worker::holds_body(const io::SessionStorage& storage) const {
  const Session& session = session_of(storage);
  return session.incoming_body != 0 && body_pool_[session.incoming_body].reservation != 0;
}

// What follows is as after a refused reservation.
void Worker::cancel_body(io::SessionStorage& storage) {
  Session& session = session_of(storage);
  LargeBody& body = body_pool_[session.incoming_body];
  engine_.abandon(body.reservation);
  body.reservation = 0;
  if (body.complete) {
    // Its line end has come too, but the batch had no space for it.
    protocol::refuse_store(body.frame, Status::kOutOfMemory);
    return;
  }
  protocol::frame_refuse_large(session.frame, body.frame, Status::kOutOfMemory,
                               body.received + body.end_received);
  body.complete = true;
}

void Worker::drop_body(uint32_t& id, bool abandon) {
  const uint32_t reservation = body_pool_[id].reservation;
  if (abandon && reservation != 0) engine_.abandon(reservation);
  body_pool_.give(id);
  id = 0;
}

}  // namespace warpcache::worker
