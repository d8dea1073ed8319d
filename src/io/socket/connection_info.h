// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace warpcache::io {

// How many table slots one call of list_connections() looks at.
inline constexpr uint32_t kListedAtOnce = 64;

// One stream, for `stats conns`.
struct ConnectionInfo {
  uint64_t id = 0;
  int fd = -1;          // -1: it has none
  std::string address;  // tcp:127.0.0.1:1234, tcp6:[::1]:1234, unix:path, ucx:...
  std::string listen_address;
  bool has_request = false;  // a request is being processed
  bool watching = false;     // gets an endless reply
  bool writing = false;      // waits for the client to read
  bool in_body = false;      // waits for the rest of a value
  uint32_t idle_s = 0;
};

}  // namespace warpcache::io
