// SPDX-License-Identifier: Apache-2.0
//
// Counters of a transport. Only the owning thread writes them, without locked instructions; any
// thread may read.
#pragma once

#include <atomic>
#include <cstdint>

namespace warpcache::io {

class Counter {
 public:
  // REQUIRES: called by the owning thread.
  void add(uint64_t n) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// Of one worker's transport.
struct alignas(64) TransportCounters {
  Counter bytes_read;
  Counter bytes_written;
  Counter connections_opened;
  Counter connections_closed;
  Counter connections_refused;  // closed because the system refused memory or a descriptor
  Counter idle_closed;          // closed by idle_timeout
  Counter stalled_closed;       // closed because unsent replies exceeded their bound
  Counter stall_timeouts;       // closed by stall_timeout
  Counter bodies_cancelled;     // without progress while others found no space
  Counter input_refused;        // closed because unconsumed input exceeded its bound
  Counter replies_deferred;     // sends of which the kernel took only a part
  Counter yields;               // iterations that ran only a part of a stream's requests
  Counter datagrams_received;
  Counter datagrams_sent;
  Counter datagrams_malformed;  // too short, or part of a request of several
  Counter replies_amplified;    // dropped: over the amplification bound
  Counter replies_dropped;      // dropped: socket buffer full, or more than 65535 datagrams
};

// Counters of the acceptor.
struct alignas(64) AcceptCounters {
  Counter accepted;
  Counter rejected;            // over the limit, answered with an error
  Counter refused;             // the system refused the memory
  Counter accept_disabled;     // how often accepting paused
  Counter accept_disabled_us;  // total length of the pauses
};

}  // namespace warpcache::io
