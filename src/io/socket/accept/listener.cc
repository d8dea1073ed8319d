// SPDX-License-Identifier: Apache-2.0
#include "io/socket/accept/listener.h"

#include <linux/filter.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace warpcache::io {
namespace {

// Socket buffer for UDP: a burst of a few thousand requests. The kernel reduces it to its maximum.
constexpr int kUdpBufferBytes = 4 * 1024 * 1024;

struct AddressListDeleter {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, AddressListDeleter>;

std::string place(const ListenTarget& target) {
  const bool bare_ipv6 = target.host.find(':') != std::string::npos;
  return (target.host.empty() ? "*"
          : bare_ipv6         ? "[" + target.host + "]"
                              : target.host) +
         ":" + std::to_string(target.port);
}

std::string failure(const std::string& what, int error) {
  return what + ": " + std::strerror(error) + ".";
}

std::string resolve(const ListenTarget& target, int socket_type, AddressList& list) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = socket_type;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(target.host.empty() ? nullptr : target.host.c_str(),
                                std::to_string(target.port).c_str(), &hints, &found);
  list.reset(found);
  if (error == 0) return "";
  return "cannot listen on " + place(target) + ": " +
         (error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error)) + ".";
}

// The system takes no more of a reply while this much of it has not been sent to the client.
// Without it, each client that does not read costs megabytes of system memory and the time to copy
// them.
constexpr int kUnsentBytesMax = 128 * 1024;

void set_flag(int fd, int level, int name) {
  const int on = 1;
  (void)setsockopt(fd, level, name, &on, sizeof on);
}

void set_port(sockaddr* address, uint16_t port) {
  if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
  }
}

uint16_t bound_port(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

// A bound socket, or an invalid one with errno set.
UniqueFd bind_socket(const addrinfo& address, bool reuse_port) {
  UniqueFd fd(socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                     address.ai_protocol));
  if (!fd.valid()) return fd;
  if (address.ai_family == AF_INET6) set_flag(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY);
  if (address.ai_socktype == SOCK_STREAM) {
    set_flag(fd.get(), SOL_SOCKET, SO_REUSEADDR);
    prepare_listener(fd.get());
  }
  if (reuse_port) set_flag(fd.get(), SOL_SOCKET, SO_REUSEPORT);
  if (bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0) {
    const int error = errno;
    fd.reset();
    errno = error;
  }
  return fd;
}

// As bind_socket(). If the kernel chooses the port, tries `picked` first (unless 0) and then sets
// it.
UniqueFd bind_same_port(addrinfo& address, uint16_t wanted, uint16_t& picked, bool share) {
  UniqueFd fd;
  if (wanted == 0 && picked != 0) {
    set_port(address.ai_addr, picked);
    fd = bind_socket(address, share);
    if (fd.valid()) return fd;
    set_port(address.ai_addr, 0);
  }
  fd = bind_socket(address, share);
  if (fd.valid() && wanted == 0) picked = bound_port(fd.get());
  return fd;
}

bool family_is_absent(int error) {
  return error == EAFNOSUPPORT || error == EPROTONOSUPPORT || error == EADDRNOTAVAIL;
}

const char* family_name(const addrinfo& address) {
  return address.ai_family == AF_INET6 ? "IPv6" : "IPv4";
}

// Calls open(address), which returns 0 or an errno, for each address of `target`. Addresses that
// cannot be opened are skipped if at least one can be.
template <typename Open>
std::string open_each(const ListenTarget& target, int socket_type,
                      std::vector<std::string>& skipped, Open open) {
  AddressList list;
  std::string sentence = resolve(target, socket_type, list);
  if (!sentence.empty()) return sentence;
  const std::string what = "cannot listen on " + place(target);
  bool any = false;
  int refusal = 0;
  std::vector<std::string> taken;
  for (addrinfo* address = list.get(); address != nullptr; address = address->ai_next) {
    const int error = open(*address);
    if (error == 0) {
      any = true;
    } else if (error == EADDRINUSE) {
      refusal = error;
      taken.push_back(failure(what + " (" + family_name(*address) + ")", error));
    } else if (family_is_absent(error)) {
      if (refusal == 0) refusal = error;
    } else {
      return failure(what, error);
    }
  }
  if (!any) return failure(what, refusal);
  skipped.insert(skipped.end(), taken.begin(), taken.end());
  return "";
}

}  // namespace

void prepare_listener(int fd) {
  set_flag(fd, SOL_SOCKET, SO_KEEPALIVE);
  set_flag(fd, IPPROTO_TCP, TCP_NODELAY);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytesMax, sizeof kUnsentBytesMax);
}

std::string open_tcp(const ListenTarget& target, int backlog, std::vector<Listener>& listeners,
                     std::vector<std::string>& skipped) {
  uint16_t picked = 0;
  return open_each(target, SOCK_STREAM, skipped, [&](addrinfo& address) {
    Listener listener;
    listener.fd = bind_same_port(address, target.port, picked, target.share);
    if (!listener.fd.valid()) return errno;
    listener.backlog = backlog;
    listener.shared = target.share;
    listener.ipv6 = address.ai_family == AF_INET6;
    listener.admin = target.admin;
    listener.tls = target.tls;
    listener.proxied = target.proxied;
    listener.host = target.host;
    listener.port = bound_port(listener.fd.get());
    listeners.push_back(std::move(listener));
    return 0;
  });
}

std::string start_listening(Listener& listener) {
  const std::string what =
      "cannot listen on " + (listener.is_unix ? "the Unix socket " + listener.host
                                              : place({listener.host, listener.port}));
  if (listen(listener.fd.get(), listener.backlog) != 0) return failure(what, errno);
  if (!listener.is_unix) return "";
  const std::string sentence = listener.file.publish();
  return sentence.empty() ? "" : what + ": " + sentence;
}

// The sockets of a port have numbers in the order in which they began to listen, so the other one
// has number 1. The kernel asks this program for a number; where no socket has it, it goes by the
// client's address.
void leave_to_others(const Listener& listener) {
  constexpr uint32_t kOther = 1;
  sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, kOther)};
  const sock_fprog program{1, code};
  (void)setsockopt(listener.fd.get(), SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program,
                   sizeof program);
}

std::string open_udp(const ListenTarget& target, uint32_t sockets,
                     std::vector<UdpListener>& listeners, std::vector<std::string>& skipped) {
  uint16_t picked = 0;
  return open_each(target, SOCK_DGRAM, skipped, [&](addrinfo& address) {
    UdpListener listener;
    // Bind first without SO_REUSEPORT, with which two servers could share a port without an error.
    {
      const UniqueFd alone = bind_same_port(address, target.port, picked, target.share);
      if (!alone.valid()) return errno;
      listener.port = bound_port(alone.get());
    }
    set_port(address.ai_addr, listener.port);
    for (uint32_t i = 0; i < sockets; ++i) {
      UniqueFd fd = bind_socket(address, true);
      if (!fd.valid()) return errno;
      (void)setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kUdpBufferBytes, sizeof kUdpBufferBytes);
      (void)setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &kUdpBufferBytes, sizeof kUdpBufferBytes);
      listener.fds.push_back(std::move(fd));
    }
    listener.ipv6 = address.ai_family == AF_INET6;
    listener.admin = target.admin;
    listener.host = target.host;
    listeners.push_back(std::move(listener));
    return 0;
  });
}

std::string open_unix(const std::string& path, uint32_t mode, int backlog,
                      std::vector<Listener>& listeners) {
  const std::string what = "cannot listen on the Unix socket " + path;
  Listener listener;
  listener.fd = UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener.fd.valid()) return failure(what, errno);
  const std::string sentence = listener.file.bind(listener.fd.get(), path, mode);
  if (!sentence.empty()) return what + ": " + sentence;
  listener.backlog = backlog;
  listener.is_unix = true;
  listener.host = path;
  listeners.push_back(std::move(listener));
  return "";
}

}  // namespace warpcache::io
