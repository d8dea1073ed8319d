// SPDX-License-Identifier: Apache-2.0
//
// `stats conns`: what other threads can read of a worker's streams.
#include <algorithm>

#include "io/socket/accept/address_text.h"
#include "io/socket/socket_transport.h"

namespace warpcache::io {

bool SocketTransport::list_connections(uint32_t& next, std::vector<ConnectionInfo>& list) const {
  const std::lock_guard lock(list_mutex_);
  const uint32_t now_s = now_s_.load(std::memory_order_relaxed);
  const uint32_t end = std::min(connections_.size(), next + kListedAtOnce);
  for (; next < end; ++next) {
    const Connection& connection = connections_[next];
    if (connection.fd == -1) continue;
    ConnectionInfo info;
    info.id = connection.id;
    info.fd = connection.fd;
    info.address = connection.client != nullptr ? address_text(*connection.client)
                                                : peer_address_text(connection.fd);
    info.listen_address = local_address_text(connection.fd);
    info.watching = connection.watching.load(std::memory_order_relaxed);
    info.has_request = connection.delivered.load(std::memory_order_relaxed) ||
                       connection.answering.load(std::memory_order_relaxed);
    // The socket has the temporary name of its bind(), not the name that publish() gave its file.
    if (info.listen_address.starts_with("unix:")) info.listen_address = "unix:" + config_.unix_path;
    info.writing = connection.writing.load(std::memory_order_relaxed);
    info.in_body = connection.in_body.load(std::memory_order_relaxed);
    const uint32_t active_at = connection.active_at.load(std::memory_order_relaxed);
    info.idle_s = now_s > active_at ? now_s - active_at : 0;
    list.push_back(std::move(info));
  }
  return next < connections_.size();
}

}  // namespace warpcache::io
