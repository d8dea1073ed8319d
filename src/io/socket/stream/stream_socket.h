// SPDX-License-Identifier: Apache-2.0
//
// The server's end of a stream: its socket, or TLS on it. No function blocks.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstdint>

#include "base/assert.h"
#include "io/socket/tls/tls.h"

namespace warpcache::io {

// Owns nothing.
struct StreamSocket {
  int fd = -1;
  TlsStream* tls = nullptr;  // null: plain text
};

// Discards unread input before a close, up to 1 MB. Otherwise the close would send a reset, and the
// peer could lose the last reply.
void finish_politely(int fd);

// Receives as readv() does; with TLS one piece after the other.
ssize_t receive_tls(TlsStream& tls, const iovec* pieces, uint32_t count);

// As recv().
inline ssize_t receive_bytes(StreamSocket end, uint8_t* data, size_t size) {
  if (WC_UNLIKELY(end.tls != nullptr)) return end.tls->receive(data, size);
  return recv(end.fd, data, size, MSG_DONTWAIT);
}

// As recvmsg(), into several pieces.
inline ssize_t receive_pieces(StreamSocket end, iovec* pieces, uint32_t count) {
  if (WC_UNLIKELY(end.tls != nullptr)) return receive_tls(*end.tls, pieces, count);
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = count;
  return recvmsg(end.fd, &message, MSG_DONTWAIT);
}

}  // namespace warpcache::io
