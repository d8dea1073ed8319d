// SPDX-License-Identifier: Apache-2.0
#include "load/socket_worker.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "load/stream_connection.h"
#include "load/udp_connection.h"

namespace warpcache::load {
namespace {

constexpr uint32_t kFillPipeline = 32;  // the least pipeline of a stream during the fill
constexpr int kEventsMax = 256;
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kCheckEveryNs = kSecond / 20;
constexpr uint64_t kWaitNsMax = kSecond / 50;  // the longest wait, so that a stop is noticed
constexpr uint64_t kBlockedWaitNs = kSecond / 1000;
// During a wait that is shorter, the thread polls the sockets: sleeping and waking takes as long.
constexpr double kSleepNsMin = 50'000;

}  // namespace

SocketWorker::~SocketWorker() {
  if (epoll_ >= 0) close(epoll_);
}

bool SocketWorker::connect(const Address& address, std::string* why) {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  for (uint32_t i = 0; i < connection_count(); ++i) {
    const int fd = connect_to(address, why);
    if (fd < 0) return false;
    if (options_.udp) {
      connections_.push_back(std::make_unique<UdpConnection>(&context_, fd, options_.pipeline));
    } else {
      connections_.push_back(std::make_unique<StreamConnection>(
          &context_, fd, std::max(options_.pipeline, kFillPipeline)));
    }
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.ptr = connections_.back().get();
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) {
      *why = std::strerror(errno);
      return false;
    }
  }
  return true;
}

uint32_t SocketWorker::outstanding() const {
  uint32_t all = 0;
  for (const auto& connection : connections_) all += connection->outstanding();
  return all;
}

void SocketWorker::fail_by_errno() { give_up(std::strerror(errno)); }

void SocketWorker::fill() {
  start(Phase::kFill,
        options_.udp ? options_.pipeline : std::max(options_.pipeline, kFillPipeline));
  while (!context_.fill_is_over() && !stopped()) run_once(kWaitNsMax);
  drain(steady_now_ns() + timeout_ns());
}

// Starts a phase and sends on all connections.
void SocketWorker::start(Phase phase, uint32_t limit) {
  phase_ = phase;
  context_.now_ns = steady_now_ns();
  for (const auto& connection : connections_) {
    connection->set_limit(limit);
    add_requests(connection.get());
    if (!flush(connection.get())) return fail_by_errno();
  }
}

bool SocketWorker::may_add() const {
  if (phase_ == Phase::kFill) return !context_.fill_is_over();
  return phase_ == Phase::kClosedLoop && goes_on();
}

void SocketWorker::add_requests(Connection* connection) {
  if (phase_ == Phase::kClosedLoop || phase_ == Phase::kOpenLoop) {
    while (connection->has_space() && connection->add_missed(context_.now_ns)) continue;
  }
  while (connection->has_space() && may_add()) {
    connection->add(context_.now_ns);
    use_quota(context_.now_ns);
  }
}

bool SocketWorker::flush(Connection* connection) {
  const bool waited = connection->wants_to_write();
  if (!connection->flush()) return false;
  if (waited == connection->wants_to_write()) return true;
  epoll_event event = {};
  event.events = waited ? EPOLLIN : EPOLLIN | EPOLLOUT;
  event.data.ptr = connection;
  return epoll_ctl(epoll_, EPOLL_CTL_MOD, connection->socket(), &event) == 0;
}

bool SocketWorker::serve(Connection* connection, uint32_t events) {
  if ((events & EPOLLOUT) != 0 && !flush(connection)) return false;
  if ((events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) {
    if (!connection->receive()) return false;
    last_reply_ns_ = context_.now_ns;
  }
  add_requests(connection);
  return flush(connection);
}

// Waits for at most `wait_ns` and serves the ready connections.
void SocketWorker::run_once(uint64_t wait_ns) {
  epoll_event events[kEventsMax];
  const timespec timeout = {static_cast<time_t>(wait_ns / kSecond),
                            static_cast<long>(wait_ns % kSecond)};
  const int count = epoll_pwait2(epoll_, events, kEventsMax, &timeout, nullptr);
  if (count < 0 && errno != EINTR) return fail_by_errno();
  if (count <= 0) context_.now_ns = steady_now_ns();
  for (int i = 0; i < count; ++i) {
    if (!serve(static_cast<Connection*>(events[i].data.ptr), events[i].events)) {
      return fail_by_errno();
    }
  }
  if (stopped() || context_.now_ns < next_check_ns_) return;
  next_check_ns_ = context_.now_ns + kCheckEveryNs;
  for (const auto& connection : connections_) {
    if (!connection->check_timeouts(context_.now_ns - std::min(context_.now_ns, timeout_ns()))) {
      return fail_by_errno();
    }
    // A lost datagram has made space.
    add_requests(connection.get());
    if (!flush(connection.get())) return fail_by_errno();
  }
}

void SocketWorker::drain(uint64_t deadline_ns) {
  phase_ = Phase::kDrain;
  while (outstanding() > 0 && !stopped() && context_.now_ns < deadline_ns) run_once(kWaitNsMax);
}

void SocketWorker::run_closed_loop() {
  start(Phase::kClosedLoop, options_.pipeline);
  while (goes_on()) run_once(kWaitNsMax);
}

Connection* SocketWorker::next_with_space() {
  for (size_t i = 0; i < connections_.size(); ++i) {
    next_sender_ = next_sender_ + 1 < connections_.size() ? next_sender_ + 1 : 0;
    if (connections_[next_sender_]->has_space()) return connections_[next_sender_].get();
  }
  return nullptr;
}

// Sends the due requests. Returns false if one is due and no connection has space.
bool SocketWorker::send_due() {
  context_.now_ns = steady_now_ns();
  const auto now = static_cast<double>(context_.now_ns);
  const auto end = static_cast<double>(context_.window.end_ns);
  const auto is_due = [&] {
    return schedule_.due_ns() <= now && schedule_.due_ns() < end && goes_on();
  };
  while (is_due()) {
    Connection* const connection = next_with_space();
    if (connection == nullptr) return false;
    // If many requests are due at once, they are sent in bursts of equal size.
    const double waiting = schedule_.waiting(now);
    auto share = static_cast<uint64_t>(waiting / static_cast<double>(connections_.size())) + 1;
    for (; share > 0 && is_due() && connection->has_space(); --share) {
      const auto begin_ns = static_cast<uint64_t>(schedule_.due_ns());
      connection->add(begin_ns);
      schedule_.advance();
      use_quota(begin_ns);
    }
    if (!flush(connection)) {
      fail_by_errno();
      return true;
    }
  }
  return true;
}

void SocketWorker::run_open_loop() {
  start(Phase::kOpenLoop, options_.pipeline);
  while (goes_on()) {
    const bool blocked = !send_due();
    const double until_due =
        std::max(schedule_.due_ns() - static_cast<double>(context_.now_ns), 0.0);
    if (blocked) {
      run_once(kBlockedWaitNs);
    } else {
      run_once(until_due < kSleepNsMin ? 0
                                       : std::min(static_cast<uint64_t>(until_due), kWaitNsMax));
    }
  }
}

}  // namespace warpcache::load
