// SPDX-License-Identifier: Apache-2.0
//
// ucx_bridge HOST PORT [PATH]: accepts connections and carries the bytes of each over an endpoint
// of active messages to the server at HOST:PORT. So clients that know only sockets test the
// messages. Listens at the Unix socket PATH, or at any TCP port, which it prints. Large pieces go
// by rendezvous where that is allowed. With PATH it connects again where the server did not wait
// for its hello, as on a busy machine: run_model compares what is said, not who is served.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "client/am_client.h"
#include "client/am_pump.h"

namespace warpcache {
namespace {

using client::AmClient;
using client::AmPump;
using client::AmStream;

int listen_anywhere() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, 128) != 0) return -1;
  (void)getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  std::printf("%d\n", ntohs(address.sin_port));
  (void)std::fflush(stdout);
  return fd;
}

int listen_at(const char* path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return -1;
  return listen(fd, 128) == 0 ? fd : -1;
}

// Returns the error as text, or "".
std::string accept_one(int listener, const std::string& host, uint16_t port, bool tries_again,
                       AmClient& client, AmPump& pump) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return "";
  const int on = 1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  AmStream* stream = nullptr;
  std::string failure = client.connect(host, port, &stream);
  if (!failure.empty()) {
    (void)::close(fd);
    return failure;
  }
  std::function<AmStream*()> again;
  if (tries_again) {
    again = [&client, host, port] {
      AmStream* next = nullptr;
      (void)client.connect(host, port, &next);
      return next;
    };
  }
  pump.add(fd, stream, std::move(again));
  return "";
}

int run(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 64;
  std::unique_ptr<AmClient> client;
  const std::string failure = AmClient::open(&client);
  if (!failure.empty()) {
    std::fprintf(stderr, "%s\n", failure.c_str());
    return 1;
  }
  const int listener = argc == 4 ? listen_at(argv[3]) : listen_anywhere();
  if (listener < 0) return 1;
  constexpr int kSleepMs = 1000;
  AmPump pump(*client);
  while (true) {
    if (!pump.run_once(listener, kSleepMs)) continue;
    const auto port = static_cast<uint16_t>(std::atoi(argv[2]));
    const std::string refused = accept_one(listener, argv[1], port, argc == 4, *client, pump);
    if (!refused.empty()) std::fprintf(stderr, "%s\n", refused.c_str());
  }
}

}  // namespace
}  // namespace warpcache

int main(int argc, char** argv) { return warpcache::run(argc, argv); }
