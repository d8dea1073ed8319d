// SPDX-License-Identifier: Apache-2.0
#include "load/worker.h"

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "load/datagram_connection.h"
#include "load/stream_connection.h"

namespace warpcache::load {
namespace {

constexpr uint32_t kFillPipeline = 32;  // the least pipeline of a stream during the fill
constexpr int kEventsMax = 256;
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kCheckEveryNs = kSecond / 20;
constexpr uint64_t kWaitNsMax = kSecond / 50;  // the longest wait, so that stop_ is noticed
constexpr uint64_t kBlockedWaitNs = kSecond / 1000;
// During a wait that is shorter, the thread polls the sockets: sleeping and waking takes as long.
constexpr double kSleepNsMin = 50'000;
constexpr uint32_t kFirstClientPort = 20'000;  // with frames; each connection has one

}  // namespace

Worker::Worker(const Options& options, const Keyspace& keys, Distribution* distribution,
               uint32_t index, std::atomic<bool>* stop)
    : options_(options), context_(options, keys, distribution, index), index_(index), stop_(stop) {
  const uint64_t next = index + uint64_t{1};
  quota_ = options.requests * next / options.threads - options.requests * index / options.threads;
}

Worker::~Worker() {
  if (epoll_ >= 0) close(epoll_);
}

uint32_t Worker::connection_count() const {
  return options_.connections * (index_ + 1) / options_.threads -
         options_.connections * index_ / options_.threads;
}

void Worker::connect(std::unique_ptr<FrameLink> link) {
  link_ = std::move(link);
  for (uint32_t i = 0; i < connection_count(); ++i) {
    connections_.push_back(std::make_unique<FrameConnection>(
        &context_, link_.get(), static_cast<uint16_t>(kFirstClientPort + i), options_.pipeline));
  }
}

bool Worker::connect(const Address& address, std::string* why) {
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

uint32_t Worker::outstanding() const {
  uint32_t all = 0;
  for (const auto& connection : connections_) all += connection->outstanding();
  return all;
}

void Worker::give_up() {
  if (context_.failure.empty()) context_.failure = std::strerror(errno);
  stop_->store(true, std::memory_order_relaxed);
}

void Worker::fill() {
  start(Phase::kFill,
        options_.udp ? options_.pipeline : std::max(options_.pipeline, kFillPipeline));
  while (!context_.fill_is_over() && !stopped()) run_once(kWaitNsMax);
  pump_until_drained(steady_now_ns() + static_cast<uint64_t>(options_.timeout_s * kSecond));
}

void Worker::load(const Window& window) {
  context_.window = window;
  context_.end_fill();
  if (options_.rate > 0) {
    run_open_loop();
  } else {
    run_closed_loop();
  }
  phase_ = Phase::kDrain;
  pump_until_drained(steady_now_ns() + static_cast<uint64_t>(options_.timeout_s * kSecond));
}

// Starts a phase and sends on all connections.
void Worker::start(Phase phase, uint32_t limit) {
  phase_ = phase;
  context_.now_ns = steady_now_ns();
  for (const auto& connection : connections_) {
    connection->set_limit(limit);
    add_requests(connection.get());
    if (!flush(connection.get())) return give_up();
  }
}

bool Worker::may_add() const {
  if (phase_ == Phase::kFill) return !context_.fill_is_over();
  if (phase_ != Phase::kClosedLoop) return false;
  return options_.requests == 0 ? context_.now_ns < context_.window.end_ns : quota_ > 0;
}

void Worker::add_requests(Connection* connection) {
  if (phase_ == Phase::kClosedLoop || phase_ == Phase::kOpenLoop) {
    while (connection->has_space() && connection->add_missed(context_.now_ns)) continue;
  }
  const bool counted = context_.now_ns >= context_.window.begin_ns;
  while (connection->has_space() && may_add()) {
    connection->add(context_.now_ns);
    if (counted && quota_ > 0) --quota_;
  }
}

bool Worker::flush(Connection* connection) {
  const bool waited = connection->wants_to_write();
  if (!connection->flush()) return false;
  if (waited == connection->wants_to_write()) return true;
  epoll_event event = {};
  event.events = waited ? EPOLLIN : EPOLLIN | EPOLLOUT;
  event.data.ptr = connection;
  return epoll_ctl(epoll_, EPOLL_CTL_MOD, connection->socket(), &event) == 0;
}

bool Worker::serve(Connection* connection, uint32_t events) {
  if ((events & EPOLLOUT) != 0 && !flush(connection)) return false;
  if ((events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) {
    if (!connection->receive()) return false;
    last_reply_ns_ = context_.now_ns;
  }
  add_requests(connection);
  return flush(connection);
}

// Sends what was added and receives the replies that have come, for all connections.
void Worker::wait_for_frames(uint64_t wait_ns) {
  constexpr uint64_t kNsPerMs = 1'000'000;
  link_->send();
  const bool open = link_->receive(
      static_cast<int>(wait_ns / kNsPerMs), [this](uint16_t port, std::string_view datagram) {
        const uint32_t index = uint32_t{port} - kFirstClientPort;
        if (index >= connections_.size()) return;
        if (answered_.empty()) context_.now_ns = last_reply_ns_ = steady_now_ns();
        answered_.push_back(index);
        static_cast<FrameConnection&>(*connections_[index]).take(datagram);
      });
  if (answered_.empty()) context_.now_ns = steady_now_ns();
  for (const uint32_t index : answered_) {
    add_requests(connections_[index].get());
    if (!flush(connections_[index].get())) return give_up();
  }
  answered_.clear();
  link_->send();
  if (!open) {
    context_.failure = "the frames have ended";
    give_up();
  }
}

void Worker::wait_for_sockets(uint64_t wait_ns) {
  epoll_event events[kEventsMax];
  const timespec timeout = {static_cast<time_t>(wait_ns / kSecond),
                            static_cast<long>(wait_ns % kSecond)};
  const int count = epoll_pwait2(epoll_, events, kEventsMax, &timeout, nullptr);
  if (count < 0 && errno != EINTR) return give_up();
  if (count <= 0) context_.now_ns = steady_now_ns();
  for (int i = 0; i < count; ++i) {
    if (!serve(static_cast<Connection*>(events[i].data.ptr), events[i].events)) return give_up();
  }
}

// Waits for at most `wait_ns` and serves the ready connections.
void Worker::run_once(uint64_t wait_ns) {
  if (link_ != nullptr) {
    wait_for_frames(wait_ns);
  } else {
    wait_for_sockets(wait_ns);
  }
  if (stopped() || context_.now_ns < next_check_ns_) return;
  next_check_ns_ = context_.now_ns + kCheckEveryNs;
  const auto timeout_ns = static_cast<uint64_t>(options_.timeout_s * kSecond);
  for (const auto& connection : connections_) {
    if (!connection->check_timeouts(context_.now_ns - std::min(context_.now_ns, timeout_ns))) {
      return give_up();
    }
    // A lost datagram has made space.
    add_requests(connection.get());
    if (!flush(connection.get())) return give_up();
  }
}

void Worker::pump_until_drained(uint64_t deadline_ns) {
  while (outstanding() > 0 && !stopped() && context_.now_ns < deadline_ns) run_once(kWaitNsMax);
}

void Worker::run_closed_loop() {
  start(Phase::kClosedLoop, options_.pipeline);
  while (!stopped() && context_.now_ns < context_.window.end_ns &&
         (options_.requests == 0 || quota_ > 0)) {
    run_once(kWaitNsMax);
  }
}

Connection* Worker::next_with_space() {
  for (size_t i = 0; i < connections_.size(); ++i) {
    next_sender_ = next_sender_ + 1 < connections_.size() ? next_sender_ + 1 : 0;
    if (connections_[next_sender_]->has_space()) return connections_[next_sender_].get();
  }
  return nullptr;
}

// Sends the due requests. Returns false if one is due and no connection has space.
bool Worker::send_due() {
  context_.now_ns = steady_now_ns();
  const auto now = static_cast<double>(context_.now_ns);
  const auto end = static_cast<double>(context_.window.end_ns);
  const auto is_due = [&] {
    return due_ns() <= now && due_ns() < end && (options_.requests == 0 || quota_ > 0);
  };
  while (is_due()) {
    Connection* const connection = next_with_space();
    if (connection == nullptr) return false;
    // If many requests are due at once, they are sent in bursts of equal size.
    const double waiting = (now - due_ns()) / interval_ns_;
    auto share = static_cast<uint64_t>(waiting / static_cast<double>(connections_.size())) + 1;
    for (; share > 0 && is_due() && connection->has_space(); --share) {
      const auto begin_ns = static_cast<uint64_t>(due_ns());
      connection->add(begin_ns);
      ++sent_;
      if (context_.window.begin_ns <= begin_ns && quota_ > 0) --quota_;
    }
    if (!flush(connection)) {
      give_up();
      return true;
    }
  }
  return true;
}

void Worker::run_open_loop() {
  start(Phase::kOpenLoop, options_.pipeline);
  interval_ns_ = static_cast<double>(kSecond) * options_.threads / options_.rate;
  first_due_ns_ = static_cast<double>(context_.now_ns) + interval_ns_ * index_ / options_.threads;
  prctl(PR_SET_TIMERSLACK, 1);
  while (!stopped() && context_.now_ns < context_.window.end_ns &&
         (options_.requests == 0 || quota_ > 0)) {
    const bool blocked = !send_due();
    const double until_due = std::max(due_ns() - static_cast<double>(context_.now_ns), 0.0);
    if (blocked) {
      run_once(kBlockedWaitNs);
    } else {
      run_once(until_due < kSleepNsMin ? 0
                                       : std::min(static_cast<uint64_t>(until_due), kWaitNsMax));
    }
  }
  const double left = static_cast<double>(context_.window.end_ns) - due_ns();
  if (options_.requests == 0 && left > 0 && !stopped()) {
    context_.counters.unsent.add(static_cast<uint64_t>(left / interval_ns_));
  }
}

}  // namespace warpcache::load
