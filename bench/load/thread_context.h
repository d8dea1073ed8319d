// SPDX-License-Identifier: Apache-2.0
// Shared by the connections of one thread. Not thread-safe.
#ifndef WARPCACHE_BENCH_LOAD_THREAD_CONTEXT_H_
#define WARPCACHE_BENCH_LOAD_THREAD_CONTEXT_H_

#include <cstdint>
#include <string>

#include "load/buffer.h"
#include "load/protocol.h"
#include "load/stream.h"
#include "load/types.h"

namespace warpcache::load {

// The measured window on the steady clock: only replies in it count.
struct Window {
  uint64_t begin_ns = ~uint64_t{0};
  uint64_t end_ns = ~uint64_t{0};

  bool holds(uint64_t time_ns) const { return begin_ns <= time_ns && time_ns < end_ns; }
};

uint64_t steady_now_ns();

class ThreadContext {
 public:
  ThreadContext(const Options& options, const Keyspace& keys, Distribution* distribution,
                uint32_t index);

  // Makes the next request: of the fill, and after it of the stream. Returns its number of keys.
  uint32_t next(Operation* operation, uint32_t* ids) {
    return filling_ ? next_of_fill(operation, ids) : stream_.next(operation, ids);
  }

  void start_fill() { fill_next_ = index_; }
  bool fill_is_over() const { return fill_next_ >= fill_end_; }
  // Keys that the fill has not set yet.
  uint64_t fill_left() const {
    return fill_is_over() ? 0 : (fill_end_ - fill_next_ - 1) / options.threads + 1;
  }
  void end_fill() { filling_ = false; }

  // Counts the delay of a request that was due at `begin_ns` and is sent now.
  void note_delay(uint64_t begin_ns) {
    if (options.rate > 0 && window.holds(now_ns)) counters.delay_ns.record(now_ns - begin_ns);
  }

  // Counts a request that was due at `begin_ns` and is answered now. The counters have it after
  // settle().
  void finish(Operation operation, uint64_t begin_ns) {
    if (operation != alike_.operation || begin_ns != alike_.begin_ns || now_ns != alike_.now_ns) {
      count_alike();
      alike_ = {operation, begin_ns, now_ns, 0};
    }
    ++alike_.count;
  }

  void note_sent(uint64_t bytes) {
    if (window.holds(now_ns)) counters.bytes_sent.add(bytes);
  }
  void note_received(uint64_t bytes) {
    if (window.holds(now_ns)) counters.bytes_received.add(bytes);
  }

  // Adds what has ended and `findings` to the counters, except `findings.missed`, which the
  // connection uses.
  void settle();

  uint32_t next_version() { return ++version_; }

  const Options& options;
  const Keyspace& keys;
  const Codec codec;
  Counters counters;
  Findings findings;
  Window window;
  uint64_t now_ns = 0;  // when bytes were last received or sent
  Buffer out;           // requests for the next send
  Buffer in;            // bytes of the last receive
  bool heard = false;   // UDP: a datagram has come, so there is a server
  std::string failure;  // why the thread had to stop

 private:
  // Requests that were due at the same time, and were answered at the same time.
  struct Alike {
    Operation operation = Operation::kGet;
    uint64_t begin_ns = 0;
    uint64_t now_ns = 0;
    uint64_t count = 0;
  };

  uint32_t next_of_fill(Operation* operation, uint32_t* ids);
  void count_alike();

  Stream stream_;
  Alike alike_;  // not in the counters yet
  const uint32_t index_;
  bool filling_ = true;
  uint64_t fill_next_ = 0;
  uint64_t fill_end_;  // keys that the fill sets
  uint32_t version_;
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_THREAD_CONTEXT_H_
