// SPDX-License-Identifier: Apache-2.0
#include "load/thread_context.h"

#include <ctime>

namespace warpcache::load {

uint64_t steady_now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

ThreadContext::ThreadContext(const Options& options_in, const Keyspace& keys_in,
                             Distribution* distribution, uint32_t index)
    : options(options_in),
      keys(keys_in),
      codec(options_in, keys_in),
      stream_(options_in, distribution, index, options_in.threads),
      index_(index),
      fill_next_(index),
      fill_end_(static_cast<uint64_t>(keys_in.count() * options_in.fill_share)),
      version_(index << 12) {
  findings.keep_missed = options.look_aside;
}

uint32_t ThreadContext::next_of_fill(Operation* operation, uint32_t* ids) {
  *operation = Operation::kSet;
  ids[0] = static_cast<uint32_t>(fill_next_);
  fill_next_ += options.threads;
  return 1;
}

void ThreadContext::count_alike() {
  if (alike_.count == 0) return;
  const auto kind = static_cast<size_t>(alike_.operation);
  const bool counts = window.holds(alike_.now_ns);
  // In an open loop a request that was due in the window counts, however late its reply comes:
  // otherwise a server that stands still at the end would look well.
  if (counts || (options.rate > 0 && window.holds(alike_.begin_ns))) {
    counters.latency_ns[kind].record(alike_.now_ns - alike_.begin_ns, alike_.count);
  }
  if (counts) counters.requests[kind].add(alike_.count);
  alike_.count = 0;
}

void ThreadContext::settle() {
  count_alike();
  if (window.holds(now_ns)) {
    counters.hits.add(findings.hits);
    counters.misses.add(findings.misses);
    counters.out_of_memory.add(findings.out_of_memory);
  }
  // Errors count whenever they occur.
  counters.wrong.add(findings.wrong);
  counters.refused.add(findings.refused);
  findings.hits = findings.misses = findings.wrong = findings.refused = findings.out_of_memory = 0;
}

}  // namespace warpcache::load
