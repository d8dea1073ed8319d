// SPDX-License-Identifier: Apache-2.0
#include "tcp_clients.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "frames.h"
#include "sim.h"

namespace warpcache::rtl {

namespace {

constexpr size_t kReadBytes = 65536;
constexpr size_t kStepsMax = 256;               // of a client in one run
constexpr size_t kDatagramsMax = 32768;         // of one run: each has an id of its own
constexpr size_t kOutputMax = size_t{1} << 20;  // bytes; a client that leaves more is not read

std::string failed(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

uint32_t big16(const std::string& bytes, size_t at) {
  return static_cast<uint32_t>(static_cast<uint8_t>(bytes[at])) << 8 |
         static_cast<uint8_t>(bytes[at + 1]);
}

}  // namespace

std::string TcpClients::listen(uint16_t port) {
  constexpr int kBacklog = 128;
  listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener_.valid()) return failed("socket");
  const int yes = 1;
  (void)::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_.get(), generic, size) != 0) return failed("bind");
  if (::listen(listener_.get(), kBacklog) != 0) return failed("listen");
  if (::getsockname(listener_.get(), generic, &size) != 0) return failed("getsockname");
  port_ = ntohs(address.sin_port);
  return "";
}

bool TcpClients::serve(Sim& sim, int wait_ms) {
  wait(wait_ms);
  const bool works = run(sim);
  for (auto client = clients_.begin(); client != clients_.end();) {
    write_to(*client);
    const bool done =
        client->output.empty() && (client->dialogue.closed() || (client->ended && !client->left));
    client = client->broken || done ? clients_.erase(client) : std::next(client);
  }
  return works;
}

void TcpClients::wait(int wait_ms) {
  std::vector<pollfd> polled;
  polled.push_back({listener_.get(), POLLIN, 0});
  for (const Client& client : clients_) {
    const bool reads = !client.ended && client.output.size() < kOutputMax;
    const int events = (reads ? POLLIN : 0) | (client.output.empty() ? 0 : POLLOUT);
    polled.push_back({client.fd.get(), static_cast<short>(events), 0});
  }
  if (::poll(polled.data(), polled.size(), left_ ? 0 : wait_ms) <= 0) return;
  size_t number = 1;
  for (Client& client : clients_) {
    const pollfd& found = polled[number++];
    if ((found.events & POLLIN) != 0 && (found.revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      read_from(client);
    } else if ((found.revents & (POLLHUP | POLLERR)) != 0) {
      client.broken = true;
    }
  }
  if (polled[0].revents != 0) accept_clients();
}

void TcpClients::accept_clients() {
  for (;;) {
    io::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) return;
    const int yes = 1;
    (void)::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    clients_.emplace_back().fd = std::move(fd);
  }
}

void TcpClients::read_from(Client& client) {
  char bytes[kReadBytes];
  const ssize_t got = ::recv(client.fd.get(), bytes, sizeof(bytes), 0);
  if (got > 0) {
    client.dialogue.add({bytes, static_cast<size_t>(got)});
  } else if (got == 0) {
    client.ended = true;
  } else if (errno != EAGAIN && errno != EINTR) {
    client.broken = true;
  }
}

void TcpClients::write_to(Client& client) {
  while (!client.output.empty() && !client.broken) {
    const ssize_t sent =
        ::send(client.fd.get(), client.output.data(), client.output.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      client.broken = errno != EAGAIN && errno != EINTR;
      return;
    }
    client.output.erase(0, static_cast<size_t>(sent));
  }
}

bool TcpClients::run(Sim& sim) {
  constexpr size_t kPayloadAt = 50;  // after Ethernet's, IPv4's, UDP's and memcached's headers
  constexpr size_t kUdpSizeAt = 38;
  constexpr size_t kRequestIdAt = 42;
  constexpr uint32_t kUdpHeaders = 16;
  size_t datagrams = 0;
  left_ = false;
  for (Client& client : clients_) {
    client.steps.clear();
    client.left = true;
    if (client.output.size() >= kOutputMax) continue;
    if (datagrams < kDatagramsMax) {
      client.steps = client.dialogue.take(kStepsMax);
      client.left = client.steps.size() >= kStepsMax;
    }
    left_ = left_ || client.left;
    for (const Step& step : client.steps) {
      if (!step.to_core) continue;
      sim.send(request_frame(step.bytes, static_cast<uint16_t>(datagrams++)));
    }
  }
  if (datagrams != 0 && !sim.run_until_idle()) return false;
  std::vector<std::string> replies(datagrams);
  for (const std::string& frame : sim.take()) {
    replies.at(big16(frame, kRequestIdAt)) +=
        frame.substr(kPayloadAt, big16(frame, kUdpSizeAt) - kUdpHeaders);
  }
  size_t first = 0;
  for (Client& client : clients_) {
    std::vector<std::string> own;
    for (const Step& step : client.steps) {
      if (step.to_core) own.push_back(std::move(replies[first++]));
    }
    answer_steps(client.steps, std::move(own), client.output);
  }
  return true;
}

}  // namespace warpcache::rtl
