// SPDX-License-Identifier: Apache-2.0
//
// TLS streams with bytes that were received from the socket and are not delivered yet. No event
// reports them, because the socket has no new bytes.
#include "io/socket/socket_transport.h"

namespace warpcache::io {

void SocketTransport::set_tls_pending(uint32_t index) {
  if (connections_[index].tls_pending) return;
  connections_[index].tls_pending = true;
  tls_pending_.push_back(index);
}

void SocketTransport::clear_tls_pending(uint32_t index) {
  if (!connections_[index].tls_pending) return;
  connections_[index].tls_pending = false;
  std::erase(tls_pending_, index);
}

// Uses at most half of the arena, as deliver_ready().
void SocketTransport::deliver_tls_pending(InputArena& arena, std::vector<RxChunk>& chunks) {
  std::vector<uint32_t>& list = tls_pending_;
  while (!list.empty() && arena.used < arena.size / 2 && chunks.size() < kChunksMax / 2) {
    const uint32_t index = list.front();
    list.erase(list.begin());
    Connection& connection = connections_[index];
    connection.tls_pending = false;
    // Whatever else it waits for comes first; after_sending() looks again then.
    if (connection.delivered || connection.out || connection.long_reply != nullptr) continue;
    if (connection.ready_at != kNotReady || connection.waits_later) continue;
    (void)receive_stream(index, arena, chunks);
  }
}

}  // namespace warpcache::io
