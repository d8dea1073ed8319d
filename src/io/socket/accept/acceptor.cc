// SPDX-License-Identifier: Apache-2.0
#include "io/socket/accept/acceptor.h"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/assert.h"
#include "io/socket/accept/address_text.h"
#include "io/socket/tls/handshakes.h"

namespace warpcache::io {
namespace {

constexpr char kTooMany[] = "ERROR Too many open connections\r\n";

int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

uint64_t data_of(int fd) { return static_cast<uint32_t>(fd); }

}  // namespace

Acceptor::Acceptor(const AcceptorConfig& config, std::vector<Listener> listeners)
    : config_(config), listeners_(std::move(listeners)), budget_(config.connections_max, wake_) {
  for (const Listener& listener : listeners_) {
    listener_infos_.push_back({listener.fd.get(), listener.is_unix
                                                      ? "unix:" + listener.host
                                                      : local_address_text(listener.fd.get())});
  }
  epoll_.add_or_throw(wake_.fd(), EPOLLIN, data_of(wake_.fd()));
}

Acceptor::~Acceptor() { stop(); }

std::string Acceptor::listen() {
  for (Listener& listener : listeners_) {
    std::string failure = start_listening(listener);
    if (!failure.empty()) return failure;
  }
  return "";
}

void Acceptor::start(std::vector<ConnectionSink*> sinks, Handshakes* handshakes) {
  WC_ASSERT(!sinks.empty() && !thread_.joinable());
  sinks_ = SinkChoice(std::move(sinks));
  handshakes_ = handshakes;
  resume();
  thread_ = std::thread([this] { run(); });
}

void Acceptor::hand_over() {
  if (!thread_.joinable()) return;
  bool shared = false;
  bool inherited = false;
  for (const Listener& listener : listeners_) {
    if (listener.shared) leave_to_others(listener);
    shared = shared || listener.shared;
    inherited = inherited || listener.inherited;
  }
  if (inherited) stop();
  if (shared || inherited) std::this_thread::sleep_for(std::chrono::milliseconds(kHandOverMs));
}

void Acceptor::stop() {
  stopping_.store(true);
  wake_.raise();
  if (thread_.joinable()) thread_.join();
  accepting_.store(false, std::memory_order_relaxed);
  for (Listener& listener : listeners_) {
    listener.file.remove();
    listener.fd.reset();
  }
}

void Acceptor::run() {
  constexpr int kEventsMax = 16;
  epoll_event events[kEventsMax];
  while (!stopping_.load()) {
    const uint32_t count = epoll_.wait(events, kEventsMax, refused_ ? kRetryMs : -1);
    wake_.clear();
    if (!accepting() && !stopping_.load()) {
      budget_.set_waiting(false);
      refused_ = false;
      resume();
      if (accepting() && !config_.reject_when_full && budget_.full()) pause();
      continue;
    }
    for (uint32_t i = 0; i < count && accepting() && !stopping_.load(); ++i) {
      const auto fd = static_cast<int>(events[i].data.u64);
      for (const Listener& listener : listeners_) {
        if (listener.fd.get() == fd) accept_from(listener);
      }
    }
  }
}

void Acceptor::accept_from(const Listener& listener) {
  for (int i = 0; i < kAcceptsPerIterationMax; ++i) {
    if (!config_.reject_when_full && budget_.full()) {
      pause();
      return;
    }
    UniqueFd fd(accept4(listener.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        refused_ = true;
        pause();
        return;
      }
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      continue;  // the client has closed already, or a signal came
    }
    if (budget_.try_take()) {
      dispatch(listener, std::move(fd));
    } else {
      reject(std::move(fd));
    }
  }
}

void Acceptor::dispatch(const Listener& listener, UniqueFd fd) {
  counters_.accepted.add(1);
  NewStream stream{.fd = std::move(fd), .admin = listener.admin};
  const bool taken = listener.tls == TlsUse::kNone && !listener.proxied
                         ? sinks_.fewest().adopt(std::move(stream))
                         : handshakes_->begin(std::move(stream), listener.tls, listener.proxied);
  if (taken) return;
  counters_.refused.add(1);
  budget_.give_back();
}

void Acceptor::reject(UniqueFd fd) {
  counters_.rejected.add(1);
  const ssize_t sent = send(fd.get(), kTooMany, sizeof kTooMany - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  (void)sent;  // a new socket has space for it, or its client has closed
}

void Acceptor::pause() {
  for (const Listener& listener : listeners_) epoll_.remove(listener.fd.get());
  accepting_.store(false, std::memory_order_relaxed);
  counters_.accept_disabled.add(1);
  paused_since_us_ = now_us();
  budget_.set_waiting(true);
  // A connection may have closed between the check of the budget and set_waiting().
  if (!refused_ && !budget_.full()) wake_.raise();
}

void Acceptor::resume() {
  if (paused_since_us_ != 0) {
    counters_.accept_disabled_us.add(static_cast<uint64_t>(now_us() - paused_since_us_));
    paused_since_us_ = 0;
  }
  for (const Listener& listener : listeners_) {
    const int fd = listener.fd.get();
    if (epoll_.add(fd, EPOLLIN, data_of(fd))) continue;
    refused_ = true;
    pause();
    return;
  }
  accepting_.store(true, std::memory_order_relaxed);
}

}  // namespace warpcache::io
