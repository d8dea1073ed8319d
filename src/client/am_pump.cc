// SPDX-License-Identifier: Apache-2.0
#include "client/am_pump.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

namespace warpcache::client {

AmPump::~AmPump() {
  for (const Connection& one : connections_) end(one);
}

void AmPump::add(int fd, AmStream* stream, std::function<AmStream*()> again) {
  Connection& made = connections_.emplace_back();
  made.fd = fd;
  made.stream = stream;
  made.again = std::move(again);
}

bool AmPump::run_once(int wake_fd, int timeout_ms) {
  moved_ = client_.progress();
  for (size_t i = 0; i < connections_.size();) {
    if (serve(connections_[i])) {
      ++i;
      continue;
    }
    end(connections_[i]);
    connections_[i] = std::move(connections_.back());
    connections_.pop_back();
    moved_ = true;
  }
  return sleep(wake_fd, moved_ ? 0 : timeout_ms);
}

bool AmPump::sleep(int wake_fd, int timeout_ms) {
  std::vector<pollfd> fds = {{wake_fd, POLLIN, 0}, {client_.event_fd(), POLLIN, 0}};
  if (timeout_ms != 0) {
    for (const Connection& one : connections_) {
      const int events = (one.wants_input() ? POLLIN : 0) | (one.wants_output() ? POLLOUT : 0);
      fds.push_back({one.fd, static_cast<short>(events), 0});
    }
  }
  (void)poll(fds.data(), fds.size(), timeout_ms != 0 && client_.arm() ? timeout_ms : 0);
  return (fds[0].revents & POLLIN) != 0;
}

// False: the connection has ended.
bool AmPump::serve(Connection& one) {
  AmStream& stream = *one.stream;
  if (one.wants_input() && !receive(one)) return false;
  if (stream.state() == AmStream::State::kOpen) {
    one.opened = true;
    if (!one.out.empty() && send(one)) moved_ = true;
  }
  if (one.input_ended && one.out.empty()) stream.half_close();
  const Bytes bytes = stream.readable();
  if (bytes.size > 0) {
    const ssize_t sent = ::send(one.fd, bytes.data, bytes.size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent > 0) {
      stream.consume(static_cast<size_t>(sent));
      moved_ = true;
    }
  } else if (stream.announced() > 0 && !stream.is_fetching()) {
    stream.fetch_more();
    moved_ = true;
  } else if (stream.state() == AmStream::State::kEnded && !stream.is_fetching()) {
    if (connect_again(one)) return true;
    if (!stream.reason().empty()) {
      std::fprintf(stderr, "active messages: %s\n", stream.reason().c_str());
    }
    return false;
  }
  return true;
}

// A server closes an endpoint whose client does not greet in time, which a client on a busy machine
// may be too slow for.
bool AmPump::connect_again(Connection& one) {
  if (one.opened || !one.again || one.tries == kTriesMax) return false;
  AmStream* const next = one.again();
  if (next == nullptr) return false;
  client_.close(std::exchange(one.stream, next));
  ++one.tries;
  moved_ = true;
  return true;
}

// Whether something was sent.
bool AmPump::send(Connection& one) {
  AmStream& stream = *one.stream;
  size_t sent = 0;
  if (one.out.size() >= kInPlaceMin && stream.rendezvous_max() >= kInPlaceMax) {
    if (!stream.is_sent()) return false;
    sent = std::min(one.out.size(), kInPlaceMax);
    one.flown.assign(one.out.begin(), one.out.begin() + static_cast<ptrdiff_t>(sent));
    stream.send_in_place({one.flown.data(), sent});
  } else {
    sent = stream.send({one.out.data(), one.out.size()});
  }
  one.out.erase(one.out.begin(), one.out.begin() + static_cast<ptrdiff_t>(sent));
  return sent > 0;
}

bool AmPump::receive(Connection& one) {
  uint8_t buffer[65536];
  const ssize_t got = recv(one.fd, buffer, sizeof buffer, MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN;
  moved_ = true;
  one.input_ended = got == 0;
  one.out.insert(one.out.end(), buffer, buffer + got);
  return true;
}

void AmPump::end(const Connection& one) {
  // The server may still fetch what has flown, and take it for a client's words.
  if (one.stream->is_sent()) {
    client_.close(one.stream);
  } else {
    client_.close_and_wait(one.stream);
  }
  (void)::close(one.fd);
}

}  // namespace warpcache::client
