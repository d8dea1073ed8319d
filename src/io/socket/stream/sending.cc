// SPDX-License-Identifier: Apache-2.0
//
// Replies that are not sent at once. A stream either waits until its client has read (EPOLLOUT), or
// it is in `sending_`: the system may take more of it. These take turns, and all together send
// little more than kSendBytesAtOnce in an iteration, so that other streams are served meanwhile.
#include <sys/epoll.h>

#include <memory>
#include <utility>

#include "io/socket/socket_transport.h"

namespace warpcache::io {

// Sends the spans. Returns false if the connection has ended or there is no memory for its unsent
// output. All pins are released, or the OutQueue owns them.
bool SocketTransport::send_reply(uint32_t index, const TxSpan* spans, uint32_t span_count) {
  Connection& connection = connections_[index];
  const SendResult result = send_spans(connection.fd, spans, span_count, 0);
  counters_.bytes_written.add(result.sent);
  uint64_t end = 0;
  uint32_t whole = 0;  // spans that are completely sent
  while (whole < span_count && end + spans[whole].size <= result.sent) end += spans[whole++].size;
  if (WC_LIKELY(whole == span_count)) {
    release_pins(spans, span_count, *releaser_);
    return true;
  }
  std::unique_ptr<OutQueue> out;
  if (!result.failed && reclaim_output(OutQueue::bytes_to_copy(spans, span_count, result.sent))) {
    out = OutQueue::create(spans, span_count, result.sent);
  }
  if (!out) {
    if (!result.failed) counters_.stalled_closed.add(1);
    release_pins(spans, span_count, *releaser_);
    connection.closing = false;
    return false;
  }
  counters_.replies_deferred.add(1);
  release_pins(spans, whole, *releaser_);
  add_output(index, std::move(out));
  connection.writing.store(true, std::memory_order_relaxed);
  if (result.sent < kSendBytesMax) {
    watch_for(index, EPOLLOUT);
  } else {
    go_on_sending(index);
  }
  return true;
}

void SocketTransport::go_on_sending(uint32_t index) {
  Connection& connection = connections_[index];
  if (std::exchange(connection.sends, true)) return;
  sending_.push_back(index);
}

// REQUIRES: some stream goes on.
void SocketTransport::send_more() {
  uint64_t sent = 0;
  size_t taken = 0;
  const size_t count = sending_.size();  // who has more to send goes to the end
  while (taken < count && sent < kSendBytesAtOnce) {
    const uint32_t index = sending_[taken];
    sending_[taken++] = kNoConnection;
    connections_[index].sends = false;
    sent += continue_sending(index);
  }
  sending_.erase(sending_.begin(), sending_.begin() + static_cast<ptrdiff_t>(taken));
}

// Returns the number of bytes sent.
uint64_t SocketTransport::continue_sending(uint32_t index) {
  Connection& connection = connections_[index];
  uint64_t sent = 0;
  const OutQueue::Progress progress = connection.out->send(connection.fd, *releaser_, sent);
  counters_.bytes_written.add(sent);
  if (sent > 0) connection.active_at.store(now_s_, std::memory_order_relaxed);
  switch (progress) {
    case OutQueue::Progress::kMore:
      add_output(index, take_output(index));  // moves it to the end of the stall order
      go_on_sending(index);
      break;
    case OutQueue::Progress::kBlocked:
      if (sent > 0) add_output(index, take_output(index));
      watch_for(index, EPOLLOUT);
      break;
    case OutQueue::Progress::kFailed:
      connection.closing = false;
      close_stream(index);
      break;
    case OutQueue::Progress::kDrained:
      take_output(index).reset();
      connection.writing.store(false, std::memory_order_relaxed);
      if (connection.long_reply != nullptr) {
        send_long_reply(index);
      } else {
        after_sending(index);
      }
      break;
  }
  return sent;
}

void SocketTransport::after_sending(uint32_t index) {
  const Connection& connection = connections_[index];
  if (connection.closing) return close_stream(index);
  if (WC_UNLIKELY(connection.more_now && connection.later)) return set_later(index);
  watch_for(index, EPOLLIN);
  if (connection.more_now) set_ready(index);
}

}  // namespace warpcache::io
