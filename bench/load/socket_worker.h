// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_LOAD_SOCKET_WORKER_H_
#define WARPCACHE_BENCH_LOAD_SOCKET_WORKER_H_

#include <string>
#include <vector>

#include "load/address.h"
#include "load/connection_worker.h"

namespace warpcache::load {

class SocketWorker final : public ConnectionWorker {
 public:
  using ConnectionWorker::ConnectionWorker;
  ~SocketWorker() override;

  [[nodiscard]] bool connect(const Address& address, std::string* why);

 private:
  [[nodiscard]] bool wait(uint64_t wait_ns) override;
  [[nodiscard]] bool watch(size_t number, bool writable) override;

  int epoll_ = -1;
  std::vector<int> sockets_;  // of the connections
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_SOCKET_WORKER_H_
