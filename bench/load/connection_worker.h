// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_LOAD_CONNECTION_WORKER_H_
#define WARPCACHE_BENCH_LOAD_CONNECTION_WORKER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "load/connection.h"
#include "load/worker.h"

namespace warpcache::load {

// A thread with connections, and the loop that sends through them. Which of them are ready, a kind
// of transport says.
class ConnectionWorker : public Worker {
 public:
  using Worker::Worker;

  void fill() override;

 protected:
  // A fill has at least this many requests of a stream on the way.
  static constexpr uint32_t kFillPipeline = 32;

  // Waits for at most `wait_ns`, and calls serve() for each connection that is ready. False: the
  // run ends, for context_.failure or errno.
  [[nodiscard]] virtual bool wait(uint64_t wait_ns) = 0;
  // From now on, the connection of this number is ready when it can be written to, too, or is not.
  // As wait().
  [[nodiscard]] virtual bool watch(size_t number, bool writable) = 0;

  [[nodiscard]] bool serve(size_t number, bool readable);
  uint32_t fill_pipeline() const;

  std::vector<std::unique_ptr<Connection>> connections_;

 private:
  enum class Phase { kIdle, kFill, kClosedLoop, kOpenLoop, kDrain };

  void run_closed_loop() override;
  void run_open_loop() override;
  void drain(uint64_t deadline_ns) override;
  void fail_by_errno();
  bool may_add() const;
  uint32_t outstanding() const;
  void start(Phase phase, uint32_t limit);
  [[nodiscard]] bool send_due();
  size_t next_with_space();
  void add_requests(size_t number);
  [[nodiscard]] bool flush(size_t number);
  void run_once(uint64_t wait_ns);

  Phase phase_ = Phase::kIdle;
  uint64_t next_check_ns_ = 0;
  size_t next_sender_ = 0;  // open loop: the connection that sends next
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_CONNECTION_WORKER_H_
