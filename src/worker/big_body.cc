// SPDX-License-Identifier: Apache-2.0
//
// Bodies that are too big for the input: received straight into the store, then run as the first
// frame of an entry.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "protocol/framing/frame.h"
#include "protocol/parse/parse.h"
#include "worker/worker.h"

namespace warpcache::worker {

using io::RxChunk;

// Notes the body that begins. Returns false when it cannot be stored: then the frame, refused, is
// in the batch, and frame() swallows the body.
bool Worker::begin_big(Session& session, protocol::Frame frame, const Plan& plan) {
  frame.entry = plan.entry;
  WC_ASSERT(session.big == 0 && frame.head_size <= kBigHeadMax);
  // Who has not logged in takes no memory; and without a key there is nothing to store.
  if (config_.authentication && !session.authenticated) {
    return refuse_big(session, frame, Status::kTooLarge);
  }
  try {
    session.big = bigs_.take();
  } catch (const std::bad_alloc&) {
    return refuse_big(session, frame, Status::kOutOfMemory);
  }
  BigBody& big = bigs_[session.big];
  std::memcpy(big.head, batch_.input + frame.offset, frame.head_size);
  big.frame = frame;
  big.received = big.end_received = big.reservation = 0;
  big.complete = false;
  big.key_size = static_cast<uint8_t>(key_size_of(big));
  if (big.key_size != 0) return true;
  drop_big(session.big, false);
  return refuse_big(session, frame, Status::kTooLarge);
}

bool Worker::refuse_big(Session& session, protocol::Frame frame, Status why) {
  protocol::frame_refuse_big(session.frame, frame, why);
  batch_.frames.push_back(frame);
  return false;
}

// 0: the command has no valid key. Works on a copy, since a message is parsed but once.
uint32_t Worker::key_size_of(BigBody& big) {
  uint8_t head[kBigHeadMax];
  std::memcpy(head, big.head, big.frame.head_size);
  protocol::Frame frame = big.frame;
  frame.offset = 0;
  protocol::Request request;
  protocol::parse_request(frame, head, request);
  return request.op == protocol::Op::kInvalid ? 0 : request.key_size;
}

// Takes room in the store, but not before as much of the body is there as one that lies in the
// input whole may have: clients that stop earlier hold nothing that others need. Returns false when
// more must come. Where there is no room, the body is refused.
bool Worker::reserve_big(Session& session, size_t present, Plan& plan) {
  if (present < kInlineBodyMax) {
    plan.next.need = kInlineBodyMax;
    return false;
  }
  BigBody& big = bigs_[session.big];
  const Status status = engine_.reserve(big.key_size, big.frame.body_size, &big.reservation);
  if (status == Status::kOk) return true;
  if (status != Status::kTooLarge) transport_.body_refused();
  protocol::frame_refuse_big(session.frame, big.frame,
                             status == Status::kTooLarge ? status : Status::kOutOfMemory);
  big.complete = true;
  return true;
}

// Goes on with the session's big body. Returns true when it is in the batch and the input behind it
// can be framed; else plan.next says what is wanted.
bool Worker::continue_big(const RxChunk& chunk, Session& session, Plan& plan) {
  BigBody& big = bigs_[session.big];
  const Bytes input = {arena_.data + chunk.offset + plan.framed_end, chunk.size - plan.framed_end};
  const bool reserves = !big.complete && big.reservation == 0;
  if (reserves && !reserve_big(session, input.size, plan)) return false;
  if (!big.complete && !take_body(big, input, plan)) return false;
  if (!big.complete) {
    big.complete = true;
    protocol::frame_big_done(big.frame, {big.line_end, big.end_received});
    if (big.frame.verdict == protocol::Verdict::kRefusedStore) {
      engine_.abandon(big.reservation);
      big.reservation = 0;
    }
  }
  return add_big(session.big, plan);
}

// Takes body and line end from `input`, which starts at plan.framed_end. Returns whether all is
// there; if not, plan.next says where to receive the rest.
bool Worker::take_body(BigBody& big, Bytes input, Plan& plan) {
  size_t cursor = 0;
  while (big.received < big.frame.body_size && cursor < input.size) {
    const MutableBytes window = engine_.reservation_window(big.reservation, big.received);
    const size_t bytes = std::min(window.size, input.size - cursor);
    std::memcpy(window.data, input.data + cursor, bytes);
    cursor += bytes;
    big.received += static_cast<uint32_t>(bytes);
  }
  const uint32_t end_size = protocol::body_end_size(big.frame);
  if (big.received == big.frame.body_size) {
    while (big.end_received < end_size && cursor < input.size) {
      big.line_end[big.end_received++] = input[cursor++];
    }
  } else {
    plan.next.body = engine_.reservation_window(big.reservation, big.received);
    plan.next.body_ends = big.received + plan.next.body.size == big.frame.body_size;
  }
  plan.framed_end += static_cast<uint32_t>(cursor);
  return big.received == big.frame.body_size && big.end_received == end_size;
}

// Puts the complete body `big` into the batch, as first frame of its entry, and clears `big`.
// Returns false when that has to wait for the next turn.
bool Worker::add_big(uint32_t& big, Plan& plan) {
  const BigBody& body = bigs_[big];
  const uint32_t head_size = body.frame.head_size;
  engine::BatchEntry& entry = batch_.entries[plan.entry];
  const bool first = batch_.frames.size() == entry.first_frame;
  if (!first || head_bytes_ + head_size > kHeadArenaBytes || frame_room(plan) == 0) {
    plan.next.more_now = true;
    return false;
  }
  protocol::Frame frame = body.frame;
  frame.offset = kArenaBytes + head_bytes_;
  frame.entry = plan.entry;
  std::memcpy(memory_ + frame.offset, body.head, head_size);
  head_bytes_ += head_size;
  batch_.frames.push_back(frame);
  entry.reservation = body.reservation;
  plan.first_frame = entry.first_frame + 1;
  plan.big = std::exchange(big, 0);
  return true;
}

void Worker::drop_big(uint32_t& big, bool abandon) {
  const uint32_t reservation = bigs_[big].reservation;
  if (abandon && reservation != 0) engine_.abandon(reservation);
  bigs_.give(big);
  big = 0;
}

}  // namespace warpcache::worker
