// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_LOAD_SOCKET_WORKER_H_
#define WARPCACHE_BENCH_LOAD_SOCKET_WORKER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "load/address.h"
#include "load/connection.h"
#include "load/worker.h"

namespace warpcache::load {

// The sockets of one thread, and the loop that sends through them.
class SocketWorker final : public Worker {
 public:
  using Worker::Worker;
  ~SocketWorker() override;

  [[nodiscard]] bool connect(const Address& address, std::string* why);
  void fill() override;

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
  Connection* next_with_space();
  void add_requests(Connection* connection);
  [[nodiscard]] bool serve(Connection* connection, uint32_t events);
  [[nodiscard]] bool flush(Connection* connection);
  void run_once(uint64_t wait_ns);

  int epoll_ = -1;
  Phase phase_ = Phase::kIdle;
  std::vector<std::unique_ptr<Connection>> connections_;
  uint64_t next_check_ns_ = 0;
  size_t next_sender_ = 0;  // open loop: the connection that sends next
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_SOCKET_WORKER_H_
