// SPDX-License-Identifier: Apache-2.0
#include "load/address.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace warpcache::load {
namespace {

constexpr int kConnectMsMax = 5000;
constexpr int kReceiveBufferBytes = 1 << 20;  // of a UDP socket

bool use_path(const std::string& path, bool udp, Address* out, std::string* why) {
  auto* const to = reinterpret_cast<sockaddr_un*>(&out->bytes);
  if (udp || path.size() >= sizeof to->sun_path) {
    *why = udp ? "UDP needs a host, not a path" : "the path is too long";
    return false;
  }
  to->sun_family = AF_UNIX;
  std::memcpy(to->sun_path, path.c_str(), path.size() + 1);
  out->size = sizeof *to;
  return true;
}

// Waits until a started connect() has finished. Returns 0 or the error's number.
int finish_connecting(int fd) {
  pollfd writable = {fd, POLLOUT, 0};
  if (poll(&writable, 1, kConnectMsMax) == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

bool resolve(const std::string& text, bool udp, Address* out, std::string* why) {
  out->type = udp ? SOCK_DGRAM : SOCK_STREAM;
  if (text.find('/') != std::string::npos) return use_path(text, udp, out, why);
  std::string host = text;
  std::string port = "11211";
  const size_t colon = text.rfind(':');
  const bool bracketed = !text.empty() && text.front() == '[';
  const size_t bracket = text.find(']');
  if (bracketed && bracket != std::string::npos) {
    host = text.substr(1, bracket - 1);
    if (bracket + 1 < text.size()) port = text.substr(bracket + 2);
  } else if (colon != std::string::npos && text.find(':') == colon) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  addrinfo hints = {};
  hints.ai_socktype = out->type;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) {
    *why = gai_strerror(error);
    return false;
  }
  std::memcpy(&out->bytes, found->ai_addr, found->ai_addrlen);
  out->size = found->ai_addrlen;
  freeaddrinfo(found);
  return true;
}

std::string host_of(const Address& address) {
  char host[NI_MAXHOST] = "";
  (void)getnameinfo(reinterpret_cast<const sockaddr*>(&address.bytes), address.size, host,
                    sizeof host, nullptr, 0, NI_NUMERICHOST);
  return host;
}

int connect_to(const Address& address, std::string* why) {
  const int fd = socket(address.bytes.ss_family, address.type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    *why = std::strerror(errno);
    return -1;
  }
  int error = 0;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address.bytes), address.size) != 0) {
    error = errno == EINPROGRESS ? finish_connecting(fd) : errno;
  }
  if (error != 0) {
    *why = std::strerror(error);
    close(fd);
    return -1;
  }
  const int on = 1;
  if (address.type == SOCK_DGRAM) {
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kReceiveBufferBytes, sizeof kReceiveBufferBytes);
  } else if (!address.is_unix()) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  return fd;
}

}  // namespace warpcache::load
