// SPDX-License-Identifier: Apache-2.0
//
// Opens the server's sockets in two steps. First it binds them, so that an unavailable port is
// reported at once. They listen when the server can answer, because a client that can connect
// expects an answer. Start-up only, one thread. Every function returns an empty string, or one
// sentence that says what failed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/socket/accept/socket_file.h"
#include "io/socket/tls/tls.h"
#include "io/unique_fd.h"

namespace warpcache::io {

// An empty host means every interface of IPv4 and IPv6. Port 0: the kernel chooses; both families
// get the same port if it is free in both.
struct ListenTarget {
  std::string host;
  uint16_t port = 0;
  bool admin = true;           // see RxChunk
  TlsUse tls = TlsUse::kNone;  // of TCP
  bool proxied = false;        // connections begin with a ProxyHeader
  bool share = false;          // another process may bind the same port
};

struct Listener {
  UniqueFd fd;
  SocketFile file;  // of a Unix socket; removed before the socket closes
  bool is_unix = false;
  bool ipv6 = false;
  bool admin = true;  // see RxChunk
  TlsUse tls = TlsUse::kNone;
  bool proxied = false;  // connections begin with a ProxyHeader
  std::string host;      // as bound; empty: every interface
  uint16_t port = 0;
  bool shared = false;     // another process may have bound the same port
  bool inherited = false;  // it stays open elsewhere when this process closes it
  int backlog = 0;         // the most connections that are not accepted yet
};

// A UDP port has one socket for each worker; the kernel distributes the clients over them.
struct UdpListener {
  std::vector<UniqueFd> fds;
  bool ipv6 = false;
  bool admin = true;  // see RxChunk
  std::string host;
  uint16_t port = 0;
};

// Sets the options that accepted TCP sockets inherit.
void prepare_listener(int fd);

// Binds every address of the target's host. If at least one can be bound, an address family that
// the machine does not have is ignored, and an address that another server uses adds a sentence to
// `skipped`.
[[nodiscard]] std::string open_tcp(const ListenTarget& target, int backlog,
                                   std::vector<Listener>& listeners,
                                   std::vector<std::string>& skipped);

// From here on clients can connect, and the file of a Unix socket exists. Fails if another process
// has started to listen there since the bind.
[[nodiscard]] std::string start_listening(Listener& listener);

// Leaves new connections to another process that listens at the same port, if there is one. Those
// that have begun stay with `listener`. REQUIRES: listener.shared.
void leave_to_others(const Listener& listener);

// As open_tcp(), with `sockets` sockets for each address.
[[nodiscard]] std::string open_udp(const ListenTarget& target, uint32_t sockets,
                                   std::vector<UdpListener>& listeners,
                                   std::vector<std::string>& skipped);

// Binds a Unix socket whose file will have `mode` (9 bits). Replaces the socket file of a server
// that has ended. Fails if a server listens at the path or a file of another kind is there.
[[nodiscard]] std::string open_unix(const std::string& path, uint32_t mode, int backlog,
                                    std::vector<Listener>& listeners);

}  // namespace warpcache::io
