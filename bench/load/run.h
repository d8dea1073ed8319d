// SPDX-License-Identifier: Apache-2.0
// One run of the load generator: from connect to the final sums.
#ifndef WARPCACHE_BENCH_LOAD_RUN_H_
#define WARPCACHE_BENCH_LOAD_RUN_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "load/address.h"
#include "load/keyspace.h"
#include "load/server_process.h"
#include "load/stream.h"
#include "load/types.h"
#include "load/worker.h"

namespace warpcache::load {

// What each thread has done, in an open loop: a thread that lags makes its requests late itself.
struct ThreadSummary {
  uint64_t requests = 0;
  Histogram delay_ns;
  Histogram latency_ns;
};

// The counts since the last progress report.
struct Interval {
  double at_s = 0;  // time since the window's start; below 0: warm-up
  double seconds = 0;
  uint64_t requests = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  Histogram latency_ns;
};

// Of an interval of the window, for the report.
struct Moment {
  double at_s = 0;  // its end
  double requests_per_s = 0;
  double mean_ns = 0;
  uint64_t p50_ns = 0;
  uint64_t p99_ns = 0;
  uint64_t max_ns = 0;
};

// The sums over all threads.
struct Summary {
  double seconds = 0;  // length of the measured window
  std::array<uint64_t, kOperations> requests = {};
  std::array<Histogram, kOperations> latency_ns;
  Histogram all_latency_ns;
  Histogram delay_ns;
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t wrong = 0;
  uint64_t refused = 0;
  uint64_t out_of_memory = 0;
  uint64_t lost = 0;
  uint64_t unsent = 0;
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  std::string first_wrong;
  std::string first_refusal;
  double generator_cpu_s = 0;
  bool server_measured = false;
  double server_cpu_s = 0;
  uint64_t server_resident_kib = 0;
  std::vector<ThreadSummary> threads;  // of an open loop
  std::vector<Moment> moments;

  uint64_t all_requests() const { return requests[0] + requests[1] + requests[2]; }
};

enum class RunStatus { kDone, kNoServer, kLostServer };

class Run {
 public:
  Run(const Options& options, const Keyspace& keys, Distribution* distribution);

  // Connects, fills, warms up, measures. Calls `progress` once an interval while it measures. If
  // the result is not kDone, *why has the reason and *summary the counts until then.
  RunStatus execute(const std::function<void(const Interval&)>& progress, Summary* summary,
                    std::string* why);

 private:
  bool connect(std::string* why);
  bool connect_by_frames(const Address& address, std::string* why);
  void fill();
  void watch(const Window& window, const std::function<void(const Interval&)>& progress,
             Summary* summary);
  void sum_up(Summary* summary) const;
  std::string failure() const;

  const Options& options_;
  const Keyspace& keys_;
  Distribution* const distribution_;
  std::atomic<bool> stop_ = false;
  std::atomic<uint32_t> loading_ = 0;  // running threads
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_RUN_H_
