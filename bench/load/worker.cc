// SPDX-License-Identifier: Apache-2.0
#include "load/worker.h"

#include <sys/prctl.h>

namespace warpcache::load {

Worker::Worker(const Options& options, const Keyspace& keys, Distribution* distribution,
               uint32_t index, std::atomic<bool>* stop)
    : options_(options), context_(options, keys, distribution, index), index_(index), stop_(stop) {
  const uint64_t next = index + uint64_t{1};
  quota_ = options.requests * next / options.threads - options.requests * index / options.threads;
}

uint32_t Worker::connection_count() const {
  return options_.connections * (index_ + 1) / options_.threads -
         options_.connections * index_ / options_.threads;
}

void Worker::give_up(const std::string& why) {
  if (context_.failure.empty()) context_.failure = why;
  stop_->store(true, std::memory_order_relaxed);
}

void Worker::load(const Window& window) {
  context_.window = window;
  context_.end_fill();
  context_.now_ns = steady_now_ns();
  if (options_.rate > 0) {
    schedule_ = Schedule(options_.rate, options_.threads, index_, context_.now_ns);
    prctl(PR_SET_TIMERSLACK, 1);
    run_open_loop();
    if (options_.requests == 0 && !stopped()) {
      context_.counters.unsent.add(schedule_.left(window.end_ns));
    }
  } else {
    run_closed_loop();
  }
  drain(steady_now_ns() + timeout_ns());
}

}  // namespace warpcache::load
