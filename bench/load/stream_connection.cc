// SPDX-License-Identifier: Apache-2.0
#include "load/stream_connection.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace warpcache::load {

bool StreamConnection::flush() {
  Buffer& from = unsent_.empty() ? context_->out : unsent_;
  if (from.empty()) return true;
  const ssize_t sent = send(socket_, from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) {
    return fail(std::string("cannot send: ") + std::strerror(errno));
  }
  const auto size = static_cast<size_t>(sent > 0 ? sent : 0);
  context_->note_sent(size);
  if (size < from.size() || &from == &unsent_) unsent_.assign(from.view().substr(size));
  context_->out.clear();
  return true;
}

bool StreamConnection::receive() {
  Buffer& in = context_->in;
  in.clear();
  in.append(partial_.view());
  const ssize_t got = recv(socket_, in.reserve(kReceiveBytes), kReceiveBytes, MSG_DONTWAIT);
  context_->now_ns = steady_now_ns();
  if (got == 0) return fail("the server closed the connection");
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) return true;
    return fail(std::string("cannot receive: ") + std::strerror(errno));
  }
  in.extend(static_cast<size_t>(got));
  context_->note_received(static_cast<uint64_t>(got));
  std::string_view rest = in.view();
  const bool in_step = read_replies(&rest);
  partial_.assign(rest);
  settle();
  return in_step;
}

bool StreamConnection::read_replies(std::string_view* in) {
  Findings& findings = context_->findings;
  while (!in->empty()) {
    if (outstanding_ == 0) return fail("the server sent what was not asked for");
    Sent& sent = sent_[oldest_];
    const Progress progress = context_->codec.read(&sent.pending, in, &findings);
    if (progress == Progress::kOutOfStep) {
      return fail("no reply to a " +
                  std::string(kOperationNames[static_cast<size_t>(sent.pending.operation)]) +
                  " looks like this: " + findings.first_refusal);
    }
    if (progress == Progress::kAwaited) return true;
    context_->finish(sent.pending.operation, sent.begin_ns);
    oldest_ = oldest_ + 1 == places_ ? 0 : oldest_ + 1;
    --outstanding_;
  }
  return true;
}

bool StreamConnection::check_timeouts(uint64_t oldest_ns) {
  if (outstanding_ == 0 || sent_[oldest_].sent_ns >= oldest_ns) return true;
  return fail("no reply in time");
}

}  // namespace warpcache::load
