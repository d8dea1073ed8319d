// SPDX-License-Identifier: Apache-2.0
//
// What a transport counts. Written by the owning thread alone, without locked instructions; any
// thread may read.
#pragma once

#include <atomic>
#include <cstdint>

namespace warpcache::io {

class Counter {
 public:
  // REQUIRES: called by the owner alone.
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
  Counter connections_refused;  // closed because the system refused what one takes
  Counter idle_closed;          // by idle_timeout
  Counter stalled_closed;       // because unsent replies were over their bound
  Counter stall_timeouts;       // by stall_timeout
  Counter input_refused;        // closed because left-over input was over its bound
  Counter replies_deferred;     // sends that the kernel did not take whole
  Counter yields;               // turns of a stream that ended before its requests did
  Counter datagrams_received;
  Counter datagrams_sent;
  Counter datagrams_malformed;  // too short, or part of a request of several
  Counter replies_amplified;    // dropped: over the amplification bound
  Counter replies_dropped;  // dropped: the kernel had no room, or the reply is over 65535 datagrams
};

// Of the acceptor.
struct alignas(64) AcceptCounters {
  Counter accepted;
  Counter rejected;            // over the limit, answered with an error
  Counter refused;             // the system refused the memory
  Counter accept_disabled;     // times that accepting paused
  Counter accept_disabled_us;  // and how long
};

}  // namespace warpcache::io
