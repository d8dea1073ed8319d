// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_LOAD_CONNECTION_H_
#define WARPCACHE_BENCH_LOAD_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "load/thread_context.h"

namespace warpcache::load {

// A connection and its unanswered requests. Belongs to a thread; the context outlives it. A
// function that returns false has written the reason to context.failure, and the run ends.
class Connection {
 public:
  // At most `places` requests are unanswered at a time.
  Connection(ThreadContext* context, uint32_t places);
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  uint32_t outstanding() const { return outstanding_; }

  // Sets the most unanswered requests at a time. REQUIRES: 0 < limit <= places.
  void set_limit(uint32_t limit) { limit_ = limit; }

  // Whether another request may be added now.
  virtual bool has_space() const = 0;

  // Adds the stream's next request, due since `begin_ns`. REQUIRES: has_space().
  void add(uint64_t begin_ns);

  // Adds a set of a missed key, if there is one; returns whether there was. REQUIRES: has_space().
  bool add_missed(uint64_t begin_ns);

  // Sends the added requests. Bytes that are not taken are sent by a later call.
  [[nodiscard]] virtual bool flush() = 0;
  virtual bool wants_to_write() const { return false; }

  // Receives the replies that have come and sets context.now_ns, their time of arrival.
  [[nodiscard]] virtual bool receive() = 0;

  // Called periodically: gives up on requests that were sent before `oldest_ns`.
  [[nodiscard]] virtual bool check_timeouts(uint64_t oldest_ns) = 0;

 protected:
  struct Sent {
    uint64_t begin_ns;  // when it was due
    uint64_t sent_ns;
    Pending pending;
  };

  // The number of a free place in sent_. REQUIRES: has_space().
  virtual uint32_t take_place() = 0;
  // Writes the request in `place` to the context's output.
  virtual void write(uint32_t place) = 0;

  void write_body(uint32_t place);
  uint32_t* ids_at(uint32_t place) { return ids_.get() + size_t{place} * keys_max_; }

  // Applies the findings of the last replies.
  void settle();
  bool fail(const std::string& what);

  ThreadContext* const context_;
  const uint32_t places_;
  const uint32_t keys_max_;  // keys in a request
  uint32_t limit_;
  uint32_t outstanding_ = 0;
  std::vector<Sent> sent_;
  std::unique_ptr<uint32_t[]> ids_;  // each place's keys
  std::vector<uint32_t> missed_;     // missed keys that are to be set
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_CONNECTION_H_
