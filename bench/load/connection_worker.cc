// SPDX-License-Identifier: Apache-2.0
#include "load/connection_worker.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace warpcache::load {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kCheckEveryNs = kSecond / 20;
constexpr uint64_t kWaitNsMax = kSecond / 50;  // the longest wait, so that a stop is noticed
constexpr uint64_t kBlockedWaitNs = kSecond / 1000;
// During a wait that is shorter, the thread polls the sockets: sleeping and waking takes as long.
constexpr double kSleepNsMin = 50'000;

}  // namespace

uint32_t ConnectionWorker::outstanding() const {
  uint32_t all = 0;
  for (const auto& connection : connections_) all += connection->outstanding();
  return all;
}

uint32_t ConnectionWorker::fill_pipeline() const {
  return options_.udp ? options_.pipeline : std::max(options_.pipeline, kFillPipeline);
}

void ConnectionWorker::fail_by_errno() { give_up(std::strerror(errno)); }

void ConnectionWorker::fill() {
  start(Phase::kFill, fill_pipeline());
  while (!context_.fill_is_over() && !stopped()) run_once(kWaitNsMax);
  drain(steady_now_ns() + timeout_ns());
}

// Starts a phase and sends on all connections.
void ConnectionWorker::start(Phase phase, uint32_t limit) {
  phase_ = phase;
  context_.now_ns = steady_now_ns();
  for (size_t i = 0; i < connections_.size(); ++i) {
    connections_[i]->set_limit(limit);
    add_requests(i);
    if (!flush(i)) return fail_by_errno();
  }
}

bool ConnectionWorker::may_add() const {
  if (phase_ == Phase::kFill) return !context_.fill_is_over();
  return phase_ == Phase::kClosedLoop && goes_on();
}

void ConnectionWorker::add_requests(size_t number) {
  Connection& connection = *connections_[number];
  if (phase_ == Phase::kClosedLoop || phase_ == Phase::kOpenLoop) {
    while (connection.has_space() && connection.add_missed(context_.now_ns)) continue;
  }
  while (connection.has_space() && may_add()) {
    connection.add(context_.now_ns);
    use_quota(context_.now_ns);
  }
}

bool ConnectionWorker::flush(size_t number) {
  Connection& connection = *connections_[number];
  const bool waited = connection.wants_to_write();
  if (!connection.flush()) return false;
  return waited == connection.wants_to_write() || watch(number, !waited);
}

bool ConnectionWorker::serve(size_t number, bool readable) {
  if (connections_[number]->wants_to_write() && !flush(number)) return false;
  if (readable) {
    if (!connections_[number]->receive()) return false;
    last_reply_ns_ = context_.now_ns;
  }
  add_requests(number);
  return flush(number);
}

void ConnectionWorker::run_once(uint64_t wait_ns) {
  if (!wait(wait_ns)) return fail_by_errno();
  if (stopped() || context_.now_ns < next_check_ns_) return;
  next_check_ns_ = context_.now_ns + kCheckEveryNs;
  const uint64_t oldest_ns = context_.now_ns - std::min(context_.now_ns, timeout_ns());
  for (size_t i = 0; i < connections_.size(); ++i) {
    if (!connections_[i]->check_timeouts(oldest_ns)) return fail_by_errno();
    // A lost datagram has made space.
    add_requests(i);
    if (!flush(i)) return fail_by_errno();
  }
}

void ConnectionWorker::drain(uint64_t deadline_ns) {
  phase_ = Phase::kDrain;
  while (outstanding() > 0 && !stopped() && context_.now_ns < deadline_ns) run_once(kWaitNsMax);
}

void ConnectionWorker::run_closed_loop() {
  start(Phase::kClosedLoop, options_.pipeline);
  while (goes_on()) run_once(kWaitNsMax);
}

// connections_.size(): none has space.
size_t ConnectionWorker::next_with_space() {
  for (size_t i = 0; i < connections_.size(); ++i) {
    next_sender_ = next_sender_ + 1 < connections_.size() ? next_sender_ + 1 : 0;
    if (connections_[next_sender_]->has_space()) return next_sender_;
  }
  return connections_.size();
}

// Sends the due requests. Returns false if one is due and no connection has space.
bool ConnectionWorker::send_due() {
  context_.now_ns = steady_now_ns();
  const auto now = static_cast<double>(context_.now_ns);
  const auto end = static_cast<double>(context_.window.end_ns);
  const auto is_due = [&] {
    return schedule_.due_ns() <= now && schedule_.due_ns() < end && goes_on();
  };
  while (is_due()) {
    const size_t number = next_with_space();
    if (number == connections_.size()) return false;
    Connection& connection = *connections_[number];
    // If many requests are due at once, they are sent in bursts of equal size.
    const double waiting = schedule_.waiting(now);
    auto share = static_cast<uint64_t>(waiting / static_cast<double>(connections_.size())) + 1;
    for (; share > 0 && is_due() && connection.has_space(); --share) {
      const auto begin_ns = static_cast<uint64_t>(schedule_.due_ns());
      connection.add(begin_ns);
      schedule_.advance();
      use_quota(begin_ns);
    }
    if (!flush(number)) {
      fail_by_errno();
      return true;
    }
  }
  return true;
}

void ConnectionWorker::run_open_loop() {
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
