// SPDX-License-Identifier: Apache-2.0
//
// What is sent: replies become messages, small pieces packed into one.
#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "base/byte_pipe.h"
#include "io/ucx/am_transport.h"

namespace warpcache::io {

void AmTransport::complete(const RxBurst& burst, const Completion* completions, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) complete_stream(burst, completions[i]);
  delivered_ -= count;
}

void AmTransport::complete_stream(const RxBurst& burst, const Completion& completion) {
  const RxChunk& chunk = *completion.chunk;
  const RxNext& next = *completion.next;
  const uint32_t number = chunk.handle & ~kHandleBit;
  AmStream& stream = stream_of(number);
  WC_ASSERT(stream.delivered);
  stream.delivered = false;
  streams_[number]->has_request.store(next.long_reply != nullptr, std::memory_order_relaxed);
  stream.body = next.body;
  stream.body_ends = next.body_ends;
  stream.need = next.need;
  stream.more_now = next.more_now;
  if (next.more_now) counters_.yields.add(1);
  if (WC_UNLIKELY(next.values_wait)) am_counters_.values_waited.add(1);
  if (WC_UNLIKELY(next.values_refused != 0)) am_counters_.values_refused.add(next.values_refused);
  stream.closing = next.close || stream.ends;
  const bool kept = keep_left_over(stream, burst.arena.data + chunk.offset, completion);
  streams_[number]->in_body.store(next.in_value, std::memory_order_relaxed);
  if (WC_UNLIKELY(next.long_reply != nullptr)) {
    stream.long_reply = next.long_reply;
    long_replies_.push_back(number);
    next.long_reply->set_wake_reader([this] { port_.wake(); });
  }
  if (!kept || stream.broken) {
    release_pins(completion.spans, completion.span_count, *releaser_);
    return set_broken(number);
  }
  send_spans(number, completion.spans, completion.span_count);
  if (WC_UNLIKELY(next.more_now && next.later)) {
    if (later_.empty()) later_due_ = Clock::now() + kLaterAfter;
    stream.later = true;
    later_.push_back(number);
  }
  if (stream.under_way == 0) after_sending(number);
}

// Keeps the unconsumed bytes of a chunk, which lies at `bytes`. False: no memory, or the stream is
// stuck.
bool AmTransport::keep_left_over(AmStream& stream, const uint8_t* bytes,
                                 const Completion& completion) {
  const RxChunk& chunk = *completion.chunk;
  const RxNext& next = *completion.next;
  WC_ASSERT(next.consumed <= chunk.size && next.need <= kChunkBytesMax);
  const uint32_t left = chunk.size - next.consumed;
  if (left == 0) stream.need = 0;
  stream.seen = left;
  if (stream.direct) {
    stream.taken += next.consumed;
    if (left > 0 && !stream.input.insert(0, {bytes + next.consumed, left})) {
      counters_.input_refused.add(1);
      return false;
    }
  } else {
    take(stream, next.consumed);
  }
  // A full chunk of which nothing was consumed leaves no space for new bytes.
  return left < kChunkBytesMax || next.more_now || next.close;
}

AmOut& AmTransport::new_out(uint32_t number, AmHandler handler) {
  if (spare_.empty()) spare_.push_back(std::make_unique<AmOut>());
  AmOut& out = *spare_.back().release();
  spare_.pop_back();
  out.header = {};
  out.header.handler = handler;
  out.data = {out.bytes, 0};
  out.rendezvous = false;
  out.endpoint = number;
  out.size = 0;
  out.capacity = kAmEagerMax;
  return out;
}

// For `bytes` of replies, or as many as a message of the stream may have.
AmOut& AmTransport::new_reply(uint32_t number, uint64_t bytes) {
  AmOut& out = new_out(number, AmHandler::kBytes);
  const uint32_t eager_max = stream_of(number).eager_max;
  if (WC_LIKELY(eager_max == kAmEagerMax || bytes <= kAmEagerMax)) return out;
  out.longer.reset(new (std::nothrow) uint8_t[eager_max]);
  if (out.longer != nullptr) out.capacity = eager_max;
  return out;
}

// The message's memory may be used again.
void AmTransport::give_out(AmOut& out) {
  out.longer.reset();
  if (spare_.size() < kSpareMax) {
    spare_.emplace_back(&out);
  } else {
    delete &out;
  }
}

void AmTransport::send_out(AmOut& out) {
  AmStream& stream = stream_of(out.endpoint);
  if (!out.rendezvous) out.data = {out.start(), out.size};
  out.header.sequence = stream.next_out++;
  out.header.taken = stream.reported = stream.taken;
  counters_.bytes_written.add(out.size);
  am_counters_.messages_sent.add(1);
  switch (port_.send(out)) {
    case AmSent::kUnderWay:
      ++stream.under_way;
      stream.unsent.push_back(&out);
      counters_.replies_deferred.add(1);
      if (out.rendezvous) {
        ++stream.pinned;
        count_unread(stream, out.size);
      } else {
        output_bytes_ += out.held();
      }
      return;
    case AmSent::kFailed:
      set_broken(out.endpoint);
      [[fallthrough]];
    case AmSent::kDone:
      return give_out(out);
  }
}

namespace {

// Bytes of the value that begins with span `first`: its pieces have one pin, that of the last.
uint64_t value_size(const ReplySpan* spans, uint32_t first, uint32_t span_count) {
  uint64_t size = 0;
  for (uint32_t i = first; i < span_count; ++i) {
    size += spans[i].size;
    if (spans[i].pin != kPinFollows) break;
  }
  return size;
}

}  // namespace

void AmTransport::send_spans(uint32_t number, const ReplySpan* spans, uint32_t span_count) {
  AmOut* out = nullptr;
  const bool is_long = stream_of(number).eager_max > kAmEagerMax;
  bool in_value = false;
  bool copies = false;  // the value, whatever the size of its pieces
  uint64_t left = 0;
  for (uint32_t i = 0; i < span_count; ++i) left += spans[i].size;
  for (uint32_t i = 0; i < span_count; ++i) {
    const ReplySpan& span = spans[i];
    if (span.pinned() && !in_value) {
      copies = is_long && value_size(spans, i, span_count) <= kAmCopiedByTcpMax;
    }
    in_value = span.pin == kPinFollows;
    if (span.pinned() && !copies && span.size > kAmEagerMax) {
      left -= span.size;
      if (out != nullptr) send_out(*std::exchange(out, nullptr));
      send_pinned(number, span);
      continue;
    }
    for (uint32_t sent = 0; sent < span.size;) {
      if (out == nullptr) out = &new_reply(number, left);
      const uint32_t piece = std::min(span.size - sent, out->capacity - out->size);
      std::memcpy(out->start() + out->size, span.data + sent, piece);
      out->size += piece;
      sent += piece;
      left -= piece;
      if (out->size == out->capacity) send_out(*std::exchange(out, nullptr));
    }
    release_later(number, span);
  }
  if (out != nullptr) send_out(*out);
  if (WC_UNLIKELY(output_bytes_ > config_.output_bytes_max)) reclaim_output();
}

// Straight from the store. The pin of a value in pieces is that of the last one, but the client may
// fetch them in any order; so the pins are released when all are sent.
void AmTransport::send_pinned(uint32_t number, const ReplySpan& span) {
  AmOut& out = new_out(number, AmHandler::kBytes);
  out.rendezvous = true;
  out.data = {span.data, span.size};
  out.size = span.size;
  am_counters_.pinned_bytes.add(span.size);
  send_out(out);
  release_later(number, span);
}

// The span was sent or copied. Its pin may be that of earlier pieces too.
void AmTransport::release_later(uint32_t number, const ReplySpan& span) {
  if (!has_pin_to_release(span)) return;
  AmStream& stream = stream_of(number);
  stream.pins.push_back(span.pin);
  if (stream.pinned == 0) release_all(stream);
}

// `more` may be the negative of a number.
void AmTransport::count_unread(AmStream& stream, uint64_t more) {
  stream.unread += more;
  unread_bytes_.store(unread_bytes() + more, std::memory_order_relaxed);
  const uint64_t most = am_counters_.unread_most.get();
  if (stream.unread > most) am_counters_.unread_most.add(stream.unread - most);
}

void AmTransport::release_all(AmStream& stream) {
  for (const uint32_t pin : stream.pins) releaser_->release(pin);
  stream.pins.clear();
}

// A message without bytes of the stream. REQUIRES: data.size <= kAmEagerMax.
void AmTransport::send_control(uint32_t number, AmHandler handler, Bytes data) {
  AmOut& out = new_out(number, handler);
  if (!data.empty()) std::memcpy(out.bytes, data.data, data.size);
  out.size = static_cast<uint32_t>(data.size);
  send_out(out);
}

void AmTransport::sent(AmSend& message, bool whole) {
  AmOut& out = static_cast<AmOut&>(message);
  const uint32_t number = out.endpoint;
  AmStream& stream = stream_of(number);
  if (out.rendezvous) {
    count_unread(stream, 0 - uint64_t{out.size});
    if (--stream.pinned == 0) release_all(stream);
  } else {
    output_bytes_ -= out.held();
  }
  std::erase(stream.unsent, &out);
  give_out(out);
  --stream.under_way;
  if (stream.state == AmStream::State::kClosed) return;
  stream.active_at = now_s_;
  if (!whole) return set_broken(number);
  if (stream.under_way == 0 && !stream.delivered && stream.is_open()) after_sending(number);
}

// REQUIRES: nothing of the stream is under way.
void AmTransport::after_sending(uint32_t number) {
  AmStream& stream = stream_of(number);
  if (WC_UNLIKELY(stream.long_reply != nullptr)) return pump_long_reply(number);
  if (WC_UNLIKELY(stream.closing)) return leave(number);
  constexpr uint32_t kReportAfter = kAmWindow / 4;
  if (stream.taken - stream.reported >= kReportAfter) {
    send_control(number, AmHandler::kTaken, {});
  }
  schedule(number);
}

// Sends the last message. The client closes then.
void AmTransport::leave(uint32_t number) {
  AmStream& stream = stream_of(number);
  if (!stream.is_open()) return;
  stream.state = AmStream::State::kLeaving;
  stream.leave_at_s = now_s_ + kPatienceS;
  send_control(number, AmHandler::kBye, bytes_of(std::string_view(stream.why)));
}

// Sends bytes of the pipe, some messages at a time. REQUIRES: nothing of the stream is under way.
void AmTransport::pump_long_reply(uint32_t number) {
  AmStream& stream = stream_of(number);
  BytePipe& pipe = *stream.long_reply;
  for (uint32_t i = 0; i < kLongReplyMessages; ++i) {
    const Bytes bytes = pipe.readable();
    if (bytes.empty()) break;
    AmOut& out = new_out(number, AmHandler::kBytes);
    out.size = static_cast<uint32_t>(std::min<size_t>(bytes.size, kAmEagerMax));
    std::memcpy(out.bytes, bytes.data, out.size);
    pipe.consume(out.size);
    stream.active_at = now_s_;
    send_out(out);
  }
  if (stream.broken || stream.under_way != 0) return;
  switch (pipe.state()) {
    case BytePipe::State::kOpen:
      return;
    case BytePipe::State::kBroken:
      return set_broken(number);
    case BytePipe::State::kEnded:
      break;
  }
  std::exchange(stream.long_reply, nullptr)->leave();
  std::erase(long_replies_, number);
  streams_[number]->has_request.store(false, std::memory_order_relaxed);
  after_sending(number);
}

void AmTransport::pump_long_replies() {
  for (size_t i = long_replies_.size(); i-- > 0;) {
    const uint32_t number = long_replies_[i];
    const AmStream& stream = stream_of(number);
    if (stream.under_way == 0 && !stream.broken && stream.is_open()) pump_long_reply(number);
  }
}

// As SocketTransport's: the first of them, in the order in which they came.
void AmTransport::ready_later() {
  const Clock::time_point now = Clock::now();
  if (now < later_due_) return;
  later_due_ = now + kLaterAfter;
  const size_t count = std::min<size_t>(later_.size(), kLaterAtOnce);
  for (size_t i = 0; i < count; ++i) {
    stream_of(later_[i]).later = false;
    schedule(later_[i]);
  }
  later_.erase(later_.begin(), later_.begin() + static_cast<ptrdiff_t>(count));
}

}  // namespace warpcache::io
