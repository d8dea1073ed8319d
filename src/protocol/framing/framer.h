// SPDX-License-Identifier: Apache-2.0
//
// The walk over one input, which the framing of all protocols shares. For protocol/framing only.
#pragma once

#include "base/assert.h"
#include "base/bytes.h"
#include "base/hd.h"
#include "protocol/framing/frame_types.h"

namespace warpcache::protocol {

// How a step of the walk ended. A step takes one message, or one key, from the front of the input.
enum class FrameStep : uint8_t {
  kTaken,    // continue
  kMore,     // the message is unfinished; need() may say its size
  kNoSpace,  // `out` is full
  kLarge,    // large() is the next message
  kClosed,
};

class Framer {
 public:
  WC_HD Framer(FrameState& state, const FrameLimits& limits, Bytes input, uint32_t offset,
               uint32_t entry, Frame* out, uint32_t out_capacity)
      : state_(state),
        limits_(limits),
        begin_(input.data),
        at_(input.data),
        end_(input.data + input.size),
        out_(out),
        offset_(offset),
        entry_(entry),
        capacity_(out_capacity) {}

  WC_HD FrameState& state() { return state_; }
  WC_HD const FrameLimits& limits() const { return limits_; }
  WC_HD const uint8_t* begin() const { return begin_; }
  WC_HD const uint8_t* at() const { return at_; }
  WC_HD const uint8_t* end() const { return end_; }
  WC_HD uint64_t left() const { return static_cast<uint64_t>(end_ - at_); }
  WC_HD bool full() const { return count_ == capacity_; }
  WC_HD uint32_t count() const { return count_; }
  WC_HD uint32_t consumed() const { return static_cast<uint32_t>(at_ - begin_); }
  WC_HD const Frame& large() const { return large_; }
  WC_HD uint32_t need() const { return need_; }
  WC_HD bool in_value() const { return in_value_; }
  // The unfinished message has at least this size; `in_value`: all before its value is here.
  WC_HD void set_need(uint64_t need, bool in_value) {
    need_ = need > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(need);
    in_value_ = in_value;
  }

  WC_HD void pass(uint64_t bytes) { at_ += bytes; }
  WC_HD void pass_to(const uint8_t* to) { at_ = to; }

  // Continues where a copy of this walk has come to. (The compiler keeps a copy in registers while
  // no function that it does not inline gets its address.)
  WC_HD void continue_from(const Framer& copy) {
    at_ = copy.at_;
    count_ = copy.count_;
  }

  // Where the next frames go, and how many fit there: for a step that makes many.
  WC_HD Frame* out() const { return out_ + count_; }
  WC_HD uint32_t room() const { return capacity_ - count_; }
  // The frame of a head without a body.
  WC_HD Frame make_head(const uint8_t* head, uint64_t head_size, FrameKind kind,
                        uint8_t detail) const {
    return make(head, head_size, 0, kind, detail);
  }
  // `count` frames were written from out() on.
  WC_HD void add(uint32_t count) { count_ += count; }

  // REQUIRES: !full().
  WC_HD void emit(const uint8_t* head, uint64_t head_size, uint32_t body_size, FrameKind kind,
                  uint8_t detail) {
    WC_DASSERT(!full());
    out_[count_++] = make(head, head_size, body_size, kind, detail);
  }
  WC_HD void emit_status(const uint8_t* head, uint64_t head_size, FrameKind kind, Status status) {
    emit(head, head_size, 0, kind, static_cast<uint8_t>(status));
  }

  // Ends the walk at the message at at(), whose body goes into a reservation.
  WC_HD FrameStep stop_at_large(uint64_t head_size, uint32_t body_size, FrameKind kind) {
    large_ = make(at_, head_size, body_size, kind, 0);
    pass(head_size);
    return FrameStep::kLarge;
  }

  // Discards `bytes` bytes from at() on, of this input and of later ones.
  WC_HD void swallow(uint64_t bytes) {
    state_.swallow = bytes;
    pass_swallowed();
  }
  WC_HD void pass_swallowed() {
    const uint64_t here = state_.swallow < left() ? state_.swallow : left();
    pass(here);
    state_.swallow -= here;
  }

  WC_HD FrameStep close() {
    state_.closed = 1;
    return FrameStep::kClosed;
  }

 private:
  WC_HD Frame make(const uint8_t* head, uint64_t head_size, uint32_t body_size, FrameKind kind,
                   uint8_t detail) const {
    Frame frame;
    frame.offset = offset_ + static_cast<uint32_t>(head - begin_);
    frame.body_size = body_size;
    frame.head_size = static_cast<uint16_t>(head_size);
    frame.kind = kind;
    frame.detail = detail;
    frame.entry = entry_;
    return frame;
  }

  FrameState& state_;
  const FrameLimits& limits_;
  const uint8_t* begin_;
  const uint8_t* at_;
  const uint8_t* end_;
  Frame* out_;
  uint32_t offset_;
  uint32_t entry_;
  uint32_t capacity_;
  uint32_t count_ = 0;
  uint32_t need_ = 0;
  bool in_value_ = false;
  Frame large_ = {};
};

}  // namespace warpcache::protocol
