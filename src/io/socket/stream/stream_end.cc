// SPDX-License-Identifier: Apache-2.0
#include "io/socket/stream/stream_end.h"

namespace warpcache::io {

void finish_politely(int fd) {
  constexpr size_t kDiscardBytesMax = 1 << 20;
  (void)shutdown(fd, SHUT_WR);
  (void)recv(fd, nullptr, kDiscardBytesMax, MSG_TRUNC | MSG_DONTWAIT);
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
