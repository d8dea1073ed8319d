// SPDX-License-Identifier: Apache-2.0
#include "io/socket/accept/address_text.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>

namespace warpcache::io {
namespace {

using NameFunction = int (*)(int, sockaddr*, socklen_t*);

std::string text_of(const sockaddr_storage& address, socklen_t size, const char* protocol) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET6) {
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(address);
    (void)inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof text);
    return std::string(protocol) + "6:[" + text + "]:" + std::to_string(ntohs(in6.sin6_port));
  }
  if (address.ss_family == AF_INET) {
    const auto& in4 = reinterpret_cast<const sockaddr_in&>(address);
    (void)inet_ntop(AF_INET, &in4.sin_addr, text, sizeof text);
    return std::string(protocol) + ":" + text + ":" + std::to_string(ntohs(in4.sin_port));
  }
  const auto& local = reinterpret_cast<const sockaddr_un&>(address);
  const bool named = size > offsetof(sockaddr_un, sun_path) && local.sun_path[0] != '\0';
  return named ? std::string("unix:") + local.sun_path : "unix";
}

std::string address_text(int fd, NameFunction name) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (name(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "unknown";
  int type = SOCK_STREAM;
  socklen_t type_size = sizeof type;
  (void)getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size);
  return text_of(address, size, type == SOCK_DGRAM ? "udp" : "tcp");
}

}  // namespace

std::string address_text(const sockaddr_storage& address) {
  return text_of(address, sizeof address, "tcp");
}
std::string local_address_text(int fd) { return address_text(fd, getsockname); }
std::string peer_address_text(int fd) { return address_text(fd, getpeername); }

}  // namespace warpcache::io
