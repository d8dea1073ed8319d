// SPDX-License-Identifier: Apache-2.0
//
// Collects the values of `stats` from the store, the engines, the transports and the acceptor.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "admin/server_state.h"
#include "admin/stats_command.h"
#include "admin/watchers.h"
#include "io/frames/frame_port.h"
#include "io/socket/accept/acceptor.h"
#include "io/socket/socket_transport.h"
#include "io/socket/tls/handshakes.h"
#include "io/socket/tls/tls.h"
#include "io/ucx/am_transport.h"
#include "io/ucx/item_slots.h"
#include "nic_cache/nic_cache.h"
#include "request/counters.h"
#include "server/backend.h"

namespace warpcache::server {

class ServerStats final : public admin::StatsSource {
 public:
  // REQUIRES: all arguments outlive this object. `tls` and `handshakes` are null without TLS, the
  // second one only if there is no proxy in front either.
  ServerStats(const store::ActiveStore& store, const admin::ServerState& state,
              const io::Acceptor& acceptor, admin::Watchers& watchers, const io::TlsServer* tls,
              const io::Handshakes* handshakes);

  // Adds a worker's counters; `messages` is null without --ucx. REQUIRES: called before the first
  // request.
  void add_worker(const request::Counters& counters, const io::SocketTransport& transport,
                  const io::AmTransport* messages);

  // Adds a worker's UDP socket, which `stats conns` lists after the listeners.
  void add_udp(int fd);

  // The NIC cache, if there is one.
  void set_nic_cache(const nic_cache::NicCache* cache) { nic_cache_ = cache; }

  // The copies of --ucx-one-sided, or null.
  void set_slots(const io::ItemSlots* slots) { slots_ = slots; }

  // The same for a port of Ethernet frames.
  void add_frames(const request::Counters& counters, const io::FramePort& port);

  [[nodiscard]] admin::StatsSnapshot snapshot() override;
  [[nodiscard]] admin::SettingsSnapshot settings() override;
  bool nic_cache(const admin::StatsEmit& emit) override;
  void list_connections(
      uint64_t& cursor,
      const std::function<void(const admin::ConnectionSnapshot&)>& visit) override;
  Status walk(uint64_t& cursor, const std::function<void(const admin::DumpItem&)>& visit) override;

 private:
  struct Worker {
    const request::Counters* counters;
    const io::SocketTransport* transport;
    const io::AmTransport* messages;
  };
  struct Frames {
    const request::Counters* counters;
    const io::FramePort* port;
  };

  bool list_in_order(const std::function<void(const admin::ConnectionSnapshot&)>& visit) const;
  static void show_connection(io::ConnectionInfo& stream,
                              const std::function<void(const admin::ConnectionSnapshot&)>& visit);
  void add_requests(admin::StatCounters& counters) const;
  void add_traffic(admin::StatsSnapshot& snapshot) const;
  void add_ports(admin::StatsSnapshot& snapshot) const;
  void add_handshakes(admin::StatsSnapshot& snapshot) const;
  void add_messages(admin::StatsSnapshot& snapshot) const;
  void add_frames_traffic(admin::StatsSnapshot& snapshot) const;
  void add_store(admin::StatsSnapshot& snapshot) const;

  const store::ActiveStore& store_;
  const admin::ServerState& state_;
  const io::Acceptor& acceptor_;
  admin::Watchers& watchers_;
  const io::TlsServer* tls_;
  const io::Handshakes* handshakes_;
  const uint32_t started_at_;  // server second; with -e not the first one
  const nic_cache::NicCache* nic_cache_ = nullptr;
  const io::ItemSlots* slots_ = nullptr;
  std::vector<Worker> workers_;
  std::vector<io::ListenerInfo> udp_sockets_;
  std::vector<Frames> frames_;
};

}  // namespace warpcache::server
