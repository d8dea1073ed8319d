// SPDX-License-Identifier: Apache-2.0
#include "options/service.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

namespace warpcache {

void notify_ready() {
  const char* const variable = std::getenv("NOTIFY_SOCKET");
  const std::string path = variable != nullptr ? variable : "";
  unsetenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path[0] == '@') address.sun_path[0] = '\0';  // an abstract name
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  constexpr char kText[] = "READY=1";
  (void)sendto(fd, kText, sizeof kText - 1, MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address), size);
  (void)close(fd);
}

}  // namespace warpcache
