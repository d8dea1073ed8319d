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
  Counter tls_errors;           // closed because the client broke the TLS protocol
  Counter yields;               // iterations that ran only a part of a stream's requests
  Counter datagrams_received;
  Counter datagrams_sent;
  Counter datagram_bytes_read;  // of bytes_read, and below of bytes_written
  Counter datagram_bytes_written;
  Counter datagrams_malformed;  // too short, or part of a request of several
  Counter replies_amplified;    // dropped: over the amplification bound
  Counter replies_dropped;      // dropped: socket buffer full, or more than 65535 datagrams
};

// Of one port of Ethernet frames. Each place where a frame can be lost has a counter.
struct alignas(64) FrameCounters {
  Counter received;
  Counter received_bytes;
  Counter receive_failed;  // longer than kFrameBytesMax, or refused by the system
  Counter receive_missed;  // dropped by the device, whose queue or buffers were full
  Counter requests;        // UDP to our port, with a memcached header
  Counter malformed;       // UDP to our port, without one, or part of a request of several
  Counter not_for_us;      // another protocol, port or receiver
  Counter truncated;       // this and the next three as net::PacketVerdict
  Counter bad_checksum;
  Counter fragments;
  Counter unsupported;
  Counter passed_on;    // answered, or given to the kernel: not_for_us, fragments, unsupported
  Counter pass_failed;  // of these: the system refused them
  Counter from_kernel;  // frames of the kernel's that the port has sent
  Counter from_kernel_failed;
  Counter sent;  // reply frames
  Counter sent_bytes;
  Counter send_failed;        // reply frames that the system refused
  Counter replies_dropped;    // replies without space in the burst's arena
  Counter replies_amplified;  // replies dropped: over the amplification bound
  Counter copied_bytes;       // of replies that the port has copied to buffers of its device
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
