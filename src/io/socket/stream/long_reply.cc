// SPDX-License-Identifier: Apache-2.0
//
// Long replies, which another thread writes: sent piece by piece, as fast as their clients read.
#include <sys/epoll.h>

#include <utility>
#include <vector>

#include "base/byte_pipe.h"
#include "io/socket/socket_transport.h"

namespace warpcache::io {

// The connection becomes the pipe's reader.
void SocketTransport::begin_long_reply(uint32_t index, BytePipe* long_reply) {
  connections_[index].long_reply = long_reply;
  connections_[index].answering.store(true, std::memory_order_relaxed);
  connections_[index].watching.store(long_reply->endless(), std::memory_order_relaxed);
  long_replies_.push_back(index);
  long_reply->set_wake_reader([this] { wake_.raise(); });
}

// Sends bytes of the pipe, up to a bound, so that other streams are served in between. REQUIRES: no
// other output is queued.
void SocketTransport::send_long_reply(uint32_t index) {
  Connection& connection = connections_[index];
  BytePipe& pipe = *connection.long_reply;
  uint64_t sent = 0;
  while (sent < kLongReplyBytesAtOnce) {
    const Bytes bytes = pipe.readable();
    if (bytes.empty()) break;
    const ReplySpan span = {bytes.data, static_cast<uint32_t>(bytes.size), 0};
    const SendResult result = send_spans(connection.end(), &span, 1, 0);
    if (result.sent > 0) pipe.consume(result.sent);
    counters_.bytes_written.add(result.sent);
    sent += result.sent;
    if (result.failed) {
      connection.closing = false;
      return close_stream(index);
    }
    if (result.sent < bytes.size) break;
  }
  if (sent > 0) connection.active_at.store(now_s_, std::memory_order_relaxed);
  switch (pipe.state()) {
    case BytePipe::State::kOpen:
      // If the pipe is empty, its writer wakes this thread later.
      return watch_for(index, (pipe.readable().empty() ? 0u : uint32_t{EPOLLOUT}) |
                                  (pipe.endless() ? uint32_t{EPOLLRDHUP} : 0u));
    case BytePipe::State::kBroken:
      connection.closing = false;
      return close_stream(index);
    case BytePipe::State::kEnded:
      break;
  }
  std::exchange(connection.long_reply, nullptr)->leave();
  std::erase(long_replies_, index);
  connection.answering.store(false, std::memory_order_relaxed);
  after_sending(index);
}

// Sends from pipes that were empty in the last iteration.
void SocketTransport::send_long_replies() {
  for (size_t i = long_replies_.size(); i-- > 0;) {
    if (!connections_[long_replies_[i]].out) send_long_reply(long_replies_[i]);
  }
}

}  // namespace warpcache::io
