// SPDX-License-Identifier: Apache-2.0
// Shared by the parts of the load generator: the options and the counters of a run.
#ifndef WARPCACHE_BENCH_LOAD_TYPES_H_
#define WARPCACHE_BENCH_LOAD_TYPES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "load/histogram.h"
#include "workload/operation.h"

namespace warpcache::load {

using bench::Operation;
inline constexpr size_t kOperations = 3;
inline constexpr const char* kOperationNames[kOperations] = {"get", "set", "delete"};

inline constexpr uint32_t kPipelineMax = 1024;
inline constexpr uint32_t kMultigetMax = 1000;
// Of Options::frames.
inline constexpr std::string_view kDpdkPrefix = "dpdk:";
inline constexpr std::string_view kPeerPrefix = "peer:";
inline constexpr std::string_view kRingPrefix = "ring:";

// The options of the command line.
struct Options {
  std::string server = "127.0.0.1:11211";
  bool udp = false;
  uint16_t ucx_port = 0;  // active messages to this port of the server; 0: sockets
  std::string frames;     // UDP through Ethernet frames of this DPDK device; empty: sockets
  std::string frames_source = "10.9.0.1";  // the address that they come from
  uint32_t threads = 1;
  std::string cpus;           // that the threads are bound to, as read_cpu_list(); empty: to none
  uint32_t connections = 50;  // over all threads
  uint32_t pipeline = 1;      // unanswered requests of each connection
  double rate = 0;            // open loop: requests/s over all threads; 0: closed loop
  double seconds = 10;
  double warm_up_s = 1;
  double interval_s = 1;  // between two reports of progress
  uint64_t requests = 0;  // ends the run; 0: `seconds` ends it
  double timeout_s = 5;   // after it, the server (stream) or the datagram (UDP) counts as lost

  bool meta = false;
  uint32_t multiget = 1;
  double sets = 0.1;  // shares of the requests; the others are gets
  double deletes = 0;
  bool look_aside = false;
  uint32_t expiry_s = 0;
  bool fill = true;
  double fill_share = 1;  // of the keys, the first ones
  bool verify = true;
  double verify_share = 1;  // frames: of the replies, which are checked whole

  uint32_t keys = 100'000;
  std::string distribution = "zipf:0.99";
  std::string sizes = "fixed:20:100";
  uint64_t seed = 1;

  bool quiet = false;
  std::string json_path;
  int server_pid = 0;  // a server on this machine that is measured; 0: none
};

// One thread writes it; others may read at the same time.
class Counter {
 public:
  void add(uint64_t by) { value_.store(get() + by, std::memory_order_relaxed); }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_ = 0;
};

// The counters of one thread. A multiget counts as one request and as several keys.
struct Counters {
  std::array<Counter, kOperations> requests;  // answered
  std::array<Histogram, kOperations> latency_ns;
  Histogram delay_ns;  // open loop: from when a request was due to when it was sent
  Counter hits;
  Counter misses;
  Counter wrong;          // keys with a wrong value, wrong flags or a wrong key in the reply
  Counter refused;        // requests that were answered by an error
  Counter out_of_memory;  // sets
  Counter lost;           // UDP: no reply in time
  Counter unsent;         // open loop: due, but every connection was full
  Counter bytes_sent;
  Counter bytes_received;
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_TYPES_H_
