// SPDX-License-Identifier: Apache-2.0
//
// Closes streams to free resources: idle ones, and those whose clients neither send nor read.
#include <poll.h>
#include <sys/socket.h>

#include <utility>

#include "base/byte_pipe.h"
#include "io/socket/socket_transport.h"
#include "io/stillest.h"

namespace warpcache::io {
namespace {

bool has_input(int fd) {
  uint8_t byte = 0;
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

bool takes_output(int fd) {
  pollfd poll_fd{fd, POLLOUT, 0};
  return poll(&poll_fd, 1, 0) > 0;
}

bool is_answering(const Connection& connection) {
  return connection.out != nullptr || connection.long_reply != nullptr;
}

// An endless reply has a pipe of its own, and nothing to say at times.
bool is_endless(const Connection& connection) {
  return connection.long_reply != nullptr && connection.long_reply->endless();
}

// Whether the client has made progress that this thread has not seen yet. After a pause of this
// process, the client may have been in time.
bool goes_on(const Connection& connection) {
  return is_answering(connection) ? takes_output(connection.fd) : has_input(connection.fd);
}

}  // namespace

void SocketTransport::once_a_second() {
  swept_at_s_ = now_s_;
  if (config_.stall_timeout_s != 0) {
    close_stalled();
    cancel_still_bodies();
  }
  if (config_.idle_timeout_s != 0) close_idle();
}

// As memcached, does not take a client for idle that is in the middle of a value or of a reply.
// Where none of its bytes moves, that ends with stall_timeout_s, if this is longer.
void SocketTransport::close_idle() {
  for (uint32_t index = 0; index < connections_.size(); ++index) {
    Connection& connection = connections_[index];
    if (connection.fd == -1 || connection.delivered || is_endless(connection)) continue;
    const uint32_t idle_s = now_s_ - connection.active_at.load(std::memory_order_relaxed);
    if (idle_s <= config_.idle_timeout_s) continue;
    if (is_answering(connection) || connection.in_body.load(std::memory_order_relaxed)) {
      if (config_.stall_timeout_s == 0 || idle_s <= config_.stall_timeout_s) continue;
    }
    // After a pause of this process, there may be unread requests that came in time.
    if (goes_on(connection)) continue;
    counters_.idle_closed.add(1);
    connection.reason = CloseReason::kIdle;
    close_stream(index);
  }
}

void SocketTransport::close_stalled() {
  for (uint32_t index = 0; index < connections_.size(); ++index) {
    const Connection& connection = connections_[index];
    if (connection.fd == -1 || connection.delivered) continue;
    const uint32_t still_s = now_s_ - connection.active_at.load(std::memory_order_relaxed);
    if (still_s <= config_.stall_timeout_s || !holds_shared(connection)) continue;
    if (!goes_on(connection)) close_stalled_stream(index);
  }
}

// Whether the connection holds a shared resource.
bool SocketTransport::holds_shared(const Connection& connection) const {
  return (connection.long_reply != nullptr && !is_endless(connection)) ||
         (connection.out != nullptr && connection.out->holds_pins()) ||
         observer_->holds_body(connection.session);
}

// For each body that any thread refused since the last sweep, cancels one that makes no progress:
// first those without progress for the longest time.
void SocketTransport::cancel_still_bodies() {
  const uint64_t refused = budget_.bodies_refused();
  const uint64_t wanted = refused - std::exchange(bodies_refused_before_, refused);
  if (wanted == 0) return;
  Stillest stillest;
  for (uint32_t index = 0; index < connections_.size(); ++index) {
    const Connection& connection = connections_[index];
    if (connection.fd == -1 || connection.delivered) continue;
    const uint32_t still_s = now_s_ - connection.active_at.load(std::memory_order_relaxed);
    if (still_s <= kStillBodyS || !observer_->holds_body(connection.session)) continue;
    if (!goes_on(connection)) stillest.add(index, still_s);
  }
  for (uint32_t i = 0; i < stillest.count() && i < wanted; ++i) {
    Connection& connection = connections_[stillest[i]];
    observer_->cancel_body(connection.session);
    connection.body = {};
    connection.body_ends = false;
    counters_.bodies_cancelled.add(1);
  }
}

void SocketTransport::close_stalled_stream(uint32_t index) {
  counters_.stall_timeouts.add(1);
  connections_[index].closing = false;  // there is no reply to wait for
  close_stream(index);
}

// REQUIRES: the connection has no OutQueue.
void SocketTransport::add_output(uint32_t index, std::unique_ptr<OutQueue> out) {
  output_bytes_ += out->copied_bytes();
  if (out->copied_bytes() > 0) stalls_.add_last(index);
  connections_[index].out = std::move(out);
}

// REQUIRES: the connection has an OutQueue.
std::unique_ptr<OutQueue> SocketTransport::take_output(uint32_t index) {
  std::unique_ptr<OutQueue> out = std::move(connections_[index].out);
  output_bytes_ -= out->copied_bytes();
  if (out->copied_bytes() > 0) stalls_.remove(index);
  return out;
}

// Closes streams until `bytes` more can be copied: first those whose clients have not read for the
// longest time. False: `bytes` is above the bound.
bool SocketTransport::reclaim_output(uint64_t bytes) {
  if (bytes > config_.output_bytes_max) return false;
  while (output_bytes_ + bytes > config_.output_bytes_max) {
    const uint32_t index = stalls_.first();
    connections_[index].closing = false;
    counters_.stalled_closed.add(1);
    close_stream(index);
  }
  return true;
}

}  // namespace warpcache::io
