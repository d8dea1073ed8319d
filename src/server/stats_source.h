// SPDX-License-Identifier: Apache-2.0
//
// Where the values of `stats` come from: the store, the engines, the transports and the acceptor.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "control/stats_command.h"
#include "request/counters.h"
#include "server/backend.h"
#include "server/server_state.h"
#include "transport/socket/acceptor.h"
#include "transport/socket/socket_transport.h"

namespace warpcache::server {

class ServerStats final : public StatsSource {
 public:
  // All of them outlive this.
  ServerStats(const ActiveStore& store, const ServerState& state,
              const transport::Acceptor& acceptor);

  // A worker's share. Before the first request.
  void add_worker(const request::Counters& counters, const transport::SocketTransport& transport);

  [[nodiscard]] StatsSnapshot snapshot() override;
  [[nodiscard]] SettingsSnapshot settings() override;
  void list_connections(uint64_t& cursor,
                        const std::function<void(const ConnectionSnapshot&)>& visit) override;
  Status walk(uint64_t& cursor, const std::function<void(const DumpItem&)>& visit) override;

 private:
  struct Worker {
    const request::Counters* counters;
    const transport::SocketTransport* transport;
  };

  void add_requests(StatCounters& counters) const;
  void add_traffic(StatsSnapshot& snapshot) const;
  void add_store(StatsSnapshot& snapshot) const;

  const ActiveStore& store_;
  const ServerState& state_;
  const transport::Acceptor& acceptor_;
  std::vector<Worker> workers_;
};

}  // namespace warpcache::server
