// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_LOAD_WORKER_H_
#define WARPCACHE_BENCH_LOAD_WORKER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "load/address.h"
#include "load/connection.h"
#include "load/frame_link.h"
#include "load/thread_context.h"

namespace warpcache::load {

// The connections of one thread, and the loop that sends through them.
class Worker {
 public:
  // `stop` ends all workers early; a worker that fails sets it.
  Worker(const Options& options, const Keyspace& keys, Distribution* distribution, uint32_t index,
         std::atomic<bool>* stop);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  [[nodiscard]] bool connect(const Address& address, std::string* why);
  // Sends and receives through `link`. REQUIRES: options.frames is not empty.
  void connect(std::unique_ptr<FrameLink> link);

  // Sets its share of all keys.
  void fill();

  // Sends the stream's requests from now to the window's end, then waits for the last replies.
  void load(const Window& window);

  const Counters& counters() const { return context_.counters; }
  const Findings& findings() const { return context_.findings; }
  const std::string& failure() const { return context_.failure; }
  uint64_t last_reply_ns() const { return last_reply_ns_; }

 private:
  enum class Phase { kIdle, kFill, kClosedLoop, kOpenLoop, kDrain };

  uint32_t connection_count() const;
  bool stopped() const { return stop_->load(std::memory_order_relaxed); }
  bool may_add() const;
  uint32_t outstanding() const;
  void start(Phase phase, uint32_t limit);
  void pump_until_drained(uint64_t deadline_ns);
  void run_closed_loop();
  void run_open_loop();
  [[nodiscard]] bool send_due();
  double due_ns() const { return first_due_ns_ + static_cast<double>(sent_) * interval_ns_; }
  Connection* next_with_space();
  void add_requests(Connection* connection);
  [[nodiscard]] bool serve(Connection* connection, uint32_t events);
  [[nodiscard]] bool flush(Connection* connection);
  void run_once(uint64_t wait_ns);
  void wait_for_sockets(uint64_t wait_ns);
  void wait_for_frames(uint64_t wait_ns);
  void give_up();

  const Options& options_;
  ThreadContext context_;
  const uint32_t index_;
  std::atomic<bool>* const stop_;
  int epoll_ = -1;
  Phase phase_ = Phase::kIdle;
  std::unique_ptr<FrameLink> link_;  // instead of sockets
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<uint32_t> answered_;  // connections with replies of the last frames
  uint64_t quota_ = 0;              // with Options::requests: requests that are still to be sent
  uint64_t next_check_ns_ = 0;
  uint64_t last_reply_ns_ = 0;
  // Open loop.
  double interval_ns_ = 0;
  double first_due_ns_ = 0;
  uint64_t sent_ = 0;
  size_t next_sender_ = 0;  // the connection that sends next
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_WORKER_H_
