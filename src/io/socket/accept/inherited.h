// SPDX-License-Identifier: Apache-2.0
//
// Sockets that the process was started with, by systemd's socket units or a program that does the
// same (LISTEN_FDS, sd_listen_fds(3)). They stay open there, so that clients wait while no server
// runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/socket/accept/listener.h"

namespace warpcache::io {

struct InheritedUse {
  TlsUse tls = TlsUse::kNone;  // of TCP
  int backlog = 0;             // as Listener's
  uint32_t udp_sockets = 1;    // for each UDP socket that was given
};

// Takes all such sockets: TCP, UDP and Unix streams. Adds nothing if there are none, or if they are
// meant for another process. Returns an empty string, or one sentence about a socket that cannot be
// served. Once, at start-up, with one thread: it changes the environment.
[[nodiscard]] std::string take_inherited(const InheritedUse& use, std::vector<Listener>& listeners,
                                         std::vector<UdpListener>& udp_listeners);

}  // namespace warpcache::io
