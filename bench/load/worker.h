// SPDX-License-Identifier: Apache-2.0
// One thread of the load: what a run sees of it, and what both kinds (sockets, frames) share.
#ifndef WARPCACHE_BENCH_LOAD_WORKER_H_
#define WARPCACHE_BENCH_LOAD_WORKER_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "load/thread_context.h"

namespace warpcache::load {

// The times at which the requests of an open loop are due, of one thread.
class Schedule {
 public:
  Schedule() = default;
  // `rate` requests/s of `threads` threads, of which this is number `index`.
  Schedule(double rate, uint32_t threads, uint32_t index, uint64_t begin_ns)
      : interval_ns_(1e9 * threads / rate),
        first_ns_(static_cast<double>(begin_ns) + interval_ns_ * index / threads) {}

  double due_ns() const { return first_ns_ + static_cast<double>(sent_) * interval_ns_; }
  // How many requests are due at `now_ns` and not sent, as a fraction.
  double waiting(double now_ns) const { return (now_ns - due_ns()) / interval_ns_; }
  void advance() { ++sent_; }
  // Requests that are due until `end_ns` and not sent.
  uint64_t left(uint64_t end_ns) const {
    const double ns = static_cast<double>(end_ns) - due_ns();
    return ns > 0 ? static_cast<uint64_t>(ns / interval_ns_) : 0;
  }

 private:
  double interval_ns_ = 1;
  double first_ns_ = 0;
  uint64_t sent_ = 0;
};

class Worker {
 public:
  // `stop` ends all workers early; a worker that fails sets it.
  Worker(const Options& options, const Keyspace& keys, Distribution* distribution, uint32_t index,
         std::atomic<bool>* stop);
  virtual ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Sets its share of all keys.
  virtual void fill() = 0;

  // Sends the stream's requests from now to the window's end, then waits for the last replies.
  void load(const Window& window);

  const Counters& counters() const { return context_.counters; }
  const Findings& findings() const { return context_.findings; }
  const std::string& failure() const { return context_.failure; }
  uint64_t last_reply_ns() const { return last_reply_ns_; }

 protected:
  virtual void run_closed_loop() = 0;
  // `schedule_` begins now.
  virtual void run_open_loop() = 0;
  // Waits for the replies to come, at most until `deadline_ns`.
  virtual void drain(uint64_t deadline_ns) = 0;

  uint64_t timeout_ns() const { return static_cast<uint64_t>(options_.timeout_s * 1e9); }
  uint32_t connection_count() const;
  bool stopped() const { return stop_->load(std::memory_order_relaxed); }
  // Whether the window or the number of requests allows more.
  bool goes_on() const {
    return !stopped() && context_.now_ns < context_.window.end_ns &&
           (options_.requests == 0 || quota_ > 0);
  }
  // How many more, if it goes on.
  uint64_t allowed() const { return options_.requests == 0 ? ~uint64_t{0} : quota_; }
  // Counts requests that are sent now, or were due then. REQUIRES: no more than allowed().
  void use_quota(uint64_t begin_ns, uint64_t count = 1) {
    if (context_.window.begin_ns <= begin_ns && quota_ > 0) quota_ -= count;
  }
  // Ends the run, for context_.failure or `why`.
  void give_up(const std::string& why);

  const Options& options_;
  ThreadContext context_;
  const uint32_t index_;
  Schedule schedule_;  // of an open loop
  uint64_t last_reply_ns_ = 0;

 private:
  std::atomic<bool>* const stop_;
  uint64_t quota_ = 0;  // with Options::requests: requests that are still to be sent
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_WORKER_H_
