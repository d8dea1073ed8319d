// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_LOAD_ADDRESS_H_
#define WARPCACHE_BENCH_LOAD_ADDRESS_H_

#include <sys/socket.h>

#include <string>

namespace warpcache::load {

// Where the server listens.
struct Address {
  sockaddr_storage bytes = {};
  socklen_t size = 0;
  int type = SOCK_STREAM;  // or SOCK_DGRAM

  bool is_unix() const { return bytes.ss_family == AF_UNIX; }
};

// Reads "HOST", "HOST:PORT", "[IPV6]:PORT" (port 11211 if there is none) or a Unix socket's path,
// which has a slash. Resolves host names.
bool resolve(const std::string& text, bool udp, Address* out, std::string* why);

// Of an address that is no path: its number as text.
std::string host_of(const Address& address);

// A connected, non-blocking socket, or -1 and *why.
int connect_to(const Address& address, std::string* why);

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_ADDRESS_H_
