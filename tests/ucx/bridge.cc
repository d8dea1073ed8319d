// SPDX-License-Identifier: Apache-2.0
//
// ucx_bridge HOST PORT [PATH]: accepts connections and carries the bytes of each over an endpoint
// of active messages to the server at HOST:PORT. So clients that know only sockets test the
// messages. Listens at the Unix socket PATH, or at any TCP port, which it prints. Large pieces go
// by rendezvous where that is allowed.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "client/am_client.h"

namespace warpcache {
namespace {

using client::AmClient;
using client::AmStream;

constexpr size_t kBufferMax = 256 * 1024;

struct Connection {
  int fd = -1;
  AmStream* stream = nullptr;
  std::vector<uint8_t> out;  // from the socket, not sent yet
  bool input_ended = false;

  bool wants_input() const { return !input_ended && out.size() < kBufferMax; }
  bool wants_output() const {
    return stream->readable().size > 0 || (stream->announced() > 0 && !stream->is_fetching());
  }
};

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

class Bridge {
 public:
  Bridge(AmClient& client, std::string host, uint16_t port, int listener)
      : client_(client), host_(std::move(host)), port_(port), listener_(listener) {}

  void run() {
    while (true) {
      const bool busy = client_.progress();
      bool moved = false;
      for (size_t i = 0; i < connections_.size();) {
        if (!serve(connections_[i], moved)) {
          connections_[i] = connections_.back();
          connections_.pop_back();
        } else {
          ++i;
        }
      }
      if (!busy && !moved) sleep();
    }
  }

 private:
  void sleep() {
    std::vector<pollfd> fds = {{listener_, POLLIN, 0}, {client_.event_fd(), POLLIN, 0}};
    for (const Connection& one : connections_) {
      const int events = (one.wants_input() ? POLLIN : 0) | (one.wants_output() ? POLLOUT : 0);
      fds.push_back({one.fd, static_cast<short>(events), 0});
    }
    (void)poll(fds.data(), fds.size(), client_.arm() ? 1000 : 0);
    if ((fds[0].revents & POLLIN) != 0) accept_one();
  }

  void accept_one() {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    const int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Connection connection;
    connection.fd = fd;
    const std::string failure = client_.connect(host_, port_, &connection.stream);
    if (failure.empty()) {
      connections_.push_back(std::move(connection));
    } else {
      std::fprintf(stderr, "%s\n", failure.c_str());
      (void)::close(fd);
    }
  }

  // False: the connection has ended.
  bool serve(Connection& one, bool& moved) {
    if (one.wants_input() && !receive(one, moved)) return end(one);
    if (one.stream->state() == AmStream::State::kOpen && !one.out.empty()) {
      const size_t sent = one.stream->send({one.out.data(), one.out.size()});
      one.out.erase(one.out.begin(), one.out.begin() + static_cast<ptrdiff_t>(sent));
      if (sent > 0) moved = true;
    }
    if (one.input_ended && one.out.empty()) one.stream->half_close();
    const Bytes bytes = one.stream->readable();
    if (bytes.size > 0) {
      const ssize_t sent = ::send(one.fd, bytes.data, bytes.size, MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) return end(one);
      if (sent > 0) {
        one.stream->consume(static_cast<size_t>(sent));
        moved = true;
      }
    } else if (one.stream->announced() > 0 && !one.stream->is_fetching()) {
      one.stream->fetch_more();
      moved = true;
    } else if (one.stream->state() == AmStream::State::kEnded && !one.stream->is_fetching()) {
      if (!one.stream->reason().empty()) {
        std::fprintf(stderr, "ended: %s\n", one.stream->reason().c_str());
      }
      return end(one);
    }
    return true;
  }

  static bool receive(Connection& one, bool& moved) {
    uint8_t buffer[65536];
    const ssize_t got = recv(one.fd, buffer, sizeof buffer, 0);
    if (got < 0) return errno == EAGAIN;
    moved = true;
    one.input_ended = got == 0;
    one.out.insert(one.out.end(), buffer, buffer + got);
    return true;
  }

  bool end(Connection& one) {
    client_.close(one.stream);
    (void)::close(one.fd);
    return false;
  }

  AmClient& client_;
  std::string host_;
  uint16_t port_;
  int listener_;
  std::vector<Connection> connections_;
};

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
  Bridge(*client, argv[1], static_cast<uint16_t>(std::atoi(argv[2])), listener).run();
  return 0;
}

}  // namespace
}  // namespace warpcache

int main(int argc, char** argv) { return warpcache::run(argc, argv); }
