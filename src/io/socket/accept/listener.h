// SPDX-License-Identifier: Apache-2.0
//
// Opening the sockets that a server listens at, in two steps: first they are bound, so that a port
// that cannot be had is known at once; they listen when the server can answer, since whoever can
// connect expects that. Start-up only, one thread. Every function returns an empty string or one
// sentence that says what failed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/socket/accept/socket_file.h"
#include "io/socket/unique_fd.h"

namespace warpcache::io {

// An empty host is every interface of IPv4 and IPv6. Port 0: the kernel picks; both families get
// the same port where that is free.
struct ListenTarget {
  std::string host;
  uint16_t port = 0;
  bool admin = true;  // see RxChunk
};

struct Listener {
  UniqueFd fd;
  SocketFile file;  // of a Unix socket; gone before the socket
  bool is_unix = false;
  bool ipv6 = false;
  bool admin = true;  // see RxChunk
  std::string host;   // as bound; empty: every interface
  uint16_t port = 0;
  int backlog = 0;  // connections that wait to be accepted
};

// One UDP port has a socket per worker; the kernel spreads the clients over them.
struct UdpListener {
  std::vector<UniqueFd> fds;
  bool ipv6 = false;
  bool admin = true;  // see RxChunk
  std::string host;
  uint16_t port = 0;
};

// Binds every address that the target's host stands for. While one of them can be had, a family
// that the machine does not have is skipped, and an address that another server has gets a sentence
// in `skipped`.
[[nodiscard]] std::string open_tcp(const ListenTarget& target, int backlog,
                                   std::vector<Listener>& listeners,
                                   std::vector<std::string>& skipped);

// From here on clients can connect; the file of a Unix socket appears. Fails when somebody else has
// begun to listen there since it was bound.
[[nodiscard]] std::string start_listening(Listener& listener);

// The same with `sockets` sockets per address.
[[nodiscard]] std::string open_udp(const ListenTarget& target, uint32_t sockets,
                                   std::vector<UdpListener>& listeners,
                                   std::vector<std::string>& skipped);

// Binds a Unix socket whose file will have `mode` (9 bits). A file left over from an earlier server
// will be replaced. Fails where a server listens at the path, or a file of another kind lies there.
[[nodiscard]] std::string open_unix(const std::string& path, uint32_t mode, int backlog,
                                    std::vector<Listener>& listeners);

}  // namespace warpcache::io
