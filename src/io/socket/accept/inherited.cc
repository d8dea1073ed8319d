// SPDX-License-Identifier: Apache-2.0
#include "io/socket/accept/inherited.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace warpcache::io {
namespace {

constexpr int kFirstFd = 3;      // SD_LISTEN_FDS_START
constexpr int kSocketsMax = 64;  // each has an epoll entry in some thread

// The number in a variable of the environment, else 0.
int number_of(const char* name) {
  const char* const text = std::getenv(name);
  int number = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), number);
  return number;
}

int socket_option(int fd, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  (void)getsockopt(fd, SOL_SOCKET, name, &value, &size);
  return value;
}

bool prepare(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
         fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

struct Address {
  bool ipv6 = false;
  std::string host;
  uint16_t port = 0;
};

Address address_of(int fd) {
  union {
    sockaddr any;
    sockaddr_in ipv4;
    sockaddr_in6 ipv6;
    sockaddr_un file;
    sockaddr_storage space;
  } bound = {};
  socklen_t size = sizeof bound;
  if (getsockname(fd, &bound.any, &size) != 0) return {};
  char text[INET6_ADDRSTRLEN] = "";
  switch (bound.any.sa_family) {
    case AF_INET:
      (void)inet_ntop(AF_INET, &bound.ipv4.sin_addr, text, sizeof text);
      return {false, text, ntohs(bound.ipv4.sin_port)};
    case AF_INET6:
      (void)inet_ntop(AF_INET6, &bound.ipv6.sin6_addr, text, sizeof text);
      return {true, text, ntohs(bound.ipv6.sin6_port)};
    default:
      const size_t bytes = size - std::min<size_t>(size, offsetof(sockaddr_un, sun_path));
      return {false, std::string(bound.file.sun_path, strnlen(bound.file.sun_path, bytes)), 0};
  }
}

// Every worker has a descriptor of the socket; the kernel gives each datagram to one of them.
std::string add_udp(UniqueFd fd, const Address& address, uint32_t sockets,
                    std::vector<UdpListener>& udp_listeners) {
  UdpListener listener;
  listener.ipv6 = address.ipv6;
  listener.host = address.host;
  listener.port = address.port;
  while (listener.fds.size() + 1 < sockets) {
    listener.fds.emplace_back(fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstFd));
    if (!listener.fds.back().valid()) return std::strerror(errno);
  }
  listener.fds.push_back(std::move(fd));
  udp_listeners.push_back(std::move(listener));
  return "";
}

std::string add(UniqueFd fd, const InheritedUse& use, std::vector<Listener>& listeners,
                std::vector<UdpListener>& udp_listeners) {
  if (!prepare(fd.get())) return std::strerror(errno);
  const int family = socket_option(fd.get(), SO_DOMAIN);
  const int type = socket_option(fd.get(), SO_TYPE);
  const bool internet = family == AF_INET || family == AF_INET6;
  const Address address = address_of(fd.get());
  if (internet && type == SOCK_DGRAM) {
    return add_udp(std::move(fd), address, use.udp_sockets, udp_listeners);
  }
  if ((!internet && family != AF_UNIX) || type != SOCK_STREAM ||
      socket_option(fd.get(), SO_ACCEPTCONN) != 1) {
    return "it is neither a listening stream socket nor a UDP socket";
  }
  Listener listener;
  if (internet) prepare_listener(fd.get());
  listener.fd = std::move(fd);
  listener.is_unix = !internet;
  listener.inherited = true;
  listener.ipv6 = address.ipv6;
  listener.tls = internet ? use.tls : TlsUse::kNone;
  listener.host = address.host;
  listener.port = address.port;
  listener.backlog = use.backlog;
  listeners.push_back(std::move(listener));
  return "";
}

}  // namespace

std::string take_inherited(const InheritedUse& use, std::vector<Listener>& listeners,
                           std::vector<UdpListener>& udp_listeners) {
  const int count = number_of("LISTEN_PID") == getpid() ? number_of("LISTEN_FDS") : 0;
  for (const char* const name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) unsetenv(name);
  if (count > kSocketsMax) {
    return "LISTEN_FDS: " + std::to_string(count) + " sockets are more than " +
           std::to_string(kSocketsMax) + ".";
  }
  for (int fd = kFirstFd; fd < kFirstFd + count; ++fd) {
    const std::string failure = add(UniqueFd(fd), use, listeners, udp_listeners);
    if (!failure.empty()) {
      return "LISTEN_FDS: descriptor " + std::to_string(fd) + " cannot be served: " + failure + ".";
    }
  }
  return "";
}

}  // namespace warpcache::io
