// SPDX-License-Identifier: Apache-2.0
#include "load/byte_stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace warpcache::load {
namespace {

bool waits() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

bool SocketStream::send(std::string_view bytes, size_t* taken, std::string* why) {
  const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  *taken = sent > 0 ? static_cast<size_t>(sent) : 0;
  if (sent >= 0 || waits()) return true;
  *why = std::string("cannot send: ") + std::strerror(errno);
  return false;
}

bool SocketStream::receive(char* out, size_t space, size_t* got, std::string* why) {
  const ssize_t size = recv(socket_, out, space, MSG_DONTWAIT);
  *got = size > 0 ? static_cast<size_t>(size) : 0;
  if (size > 0 || (size < 0 && waits())) return true;
  *why = size == 0 ? "the server closed the connection"
                   : std::string("cannot receive: ") + std::strerror(errno);
  return false;
}

}  // namespace warpcache::load
