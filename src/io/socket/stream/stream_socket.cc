// SPDX-License-Identifier: Apache-2.0
#include "io/socket/stream/stream_socket.h"

namespace warpcache::io {

void finish_politely(int fd) {
  // Not MSG_TRUNC without a buffer: only TCP knows it, and TSan takes the null buffer for shared
  // memory.
  constexpr uint32_t kReadsMax = 64;
  uint8_t discarded[16 << 10];
  (void)shutdown(fd, SHUT_WR);
  for (uint32_t i = 0; i < kReadsMax; ++i) {
    if (recv(fd, discarded, sizeof discarded, MSG_DONTWAIT) <= 0) return;
  }
}

ssize_t receive_tls(TlsStream& tls, const iovec* pieces, uint32_t count) {
  ssize_t total = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (pieces[i].iov_len == 0) continue;
    const ssize_t got = tls.receive(static_cast<uint8_t*>(pieces[i].iov_base), pieces[i].iov_len);
    if (got <= 0) return total > 0 ? total : got;
    total += got;
    if (!tls.has_more()) break;
  }
  return total;
}

}  // namespace warpcache::io
