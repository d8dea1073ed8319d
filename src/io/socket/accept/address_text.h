// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <string>

namespace warpcache::io {

// The address that a socket is bound to, and that of its peer: tcp:127.0.0.1:1234,
// tcp6:[::1]:1234, udp:..., udp6:..., unix:path.
std::string local_address_text(int fd);
std::string peer_address_text(int fd);
std::string address_text(const sockaddr_storage& address);  // of TCP

}  // namespace warpcache::io
