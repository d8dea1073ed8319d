// SPDX-License-Identifier: Apache-2.0
//
// `stats conns`: what another thread may see of a worker's streams.
#include "transport/socket/address_text.h"
#include "transport/socket/socket_transport.h"

namespace warpcache::transport {

void SocketTransport::list_connections(std::vector<ConnectionInfo>& list) const {
  const std::lock_guard lock(list_mutex_);
  const uint32_t now_s = now_s_.load(std::memory_order_relaxed);
  for (uint32_t index = 0; index < connections_.size(); ++index) {
    const Connection& connection = connections_[index];
    if (connection.fd == -1) continue;
    ConnectionInfo info;
    info.id = connection.id;
    info.fd = connection.fd;
    info.address = peer_address_text(connection.fd);
    info.listen_address = local_address_text(connection.fd);
    info.in_turn = connection.in_turn.load(std::memory_order_relaxed);
    info.writing = connection.writing.load(std::memory_order_relaxed);
    info.in_body = connection.in_body.load(std::memory_order_relaxed);
    const uint32_t active_at = connection.active_at.load(std::memory_order_relaxed);
    info.idle_s = now_s > active_at ? now_s - active_at : 0;
    list.push_back(std::move(info));
  }
}

}  // namespace warpcache::transport
