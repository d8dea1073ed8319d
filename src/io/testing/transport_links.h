// SPDX-License-Identifier: Apache-2.0
//
// Transports with clients, for transport_suite_test.cc.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/socket/socket_transport.h"
#include "io/transport.h"
#include "io/ucx/joined_transport.h"
#include "io/ucx/testing/memory_am_port.h"

namespace warpcache::io {

// A transport and its clients. All in the thread of the worker.
class Link {
 public:
  virtual ~Link() = default;
  virtual Transport& transport() = 0;
  virtual uint32_t connect() = 0;  // a number, from 0
  virtual void send(uint32_t client, const std::string& bytes) = 0;
  // What has come since the last call.
  virtual std::string take(uint32_t client) = 0;
  // The client reads nothing until it may again.
  virtual void set_reading(uint32_t client, bool reads) = 0;
  virtual bool is_closed(uint32_t client) = 0;
  virtual void close(uint32_t client) = 0;
  virtual void stop() = 0;
};

inline UdpGuard no_guard() { return UdpGuard({}, 1); }

class SocketLink : public Link {
 public:
  explicit SocketLink(bool tcp) : tcp_(tcp) {}
  Transport& transport() override { return sockets_; }
  uint32_t connect() override {
    UniqueFd ours;
    UniqueFd theirs;
    if (tcp_) {
      connect_tcp(ours, theirs);
    } else {
      int fds[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
      ours.reset(fds[0]);
      theirs.reset(fds[1]);
    }
    for (const int fd : {ours.get(), theirs.get()}) EXPECT_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    EXPECT_TRUE(budget_.try_take());
    NewStream stream;
    stream.fd = std::move(theirs);
    EXPECT_TRUE(sockets_.adopt(std::move(stream)));
    clients_.push_back({std::move(ours), "", true, false});
    return static_cast<uint32_t>(clients_.size()) - 1;
  }
  void send(uint32_t client, const std::string& bytes) override {
    clients_[client].unsent += bytes;
    flush(clients_[client]);
  }
  std::string take(uint32_t client) override {
    Client& one = clients_[client];
    flush(one);
    std::string text;
    char piece[65536];
    while (one.reads && !one.closed) {
      const ssize_t got = recv(one.fd.get(), piece, sizeof piece, 0);
      if (got < 0 && errno == EAGAIN) break;
      one.closed = got <= 0;
      if (got > 0) text.append(piece, static_cast<size_t>(got));
    }
    return text;
  }
  void set_reading(uint32_t client, bool reads) override { clients_[client].reads = reads; }
  bool is_closed(uint32_t client) override { return clients_[client].closed; }
  void close(uint32_t client) override { clients_[client].fd.reset(); }
  void stop() override { sockets_.stop_now(); }

 protected:
  struct Client {
    UniqueFd fd;
    std::string unsent;
    bool reads;
    bool closed;
  };

  static void connect_tcp(UniqueFd& ours, UniqueFd& theirs) {
    const UniqueFd listener(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener.get(), any, size), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), any, &size), 0);
    ours.reset(socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(::connect(ours.get(), any, size), 0);
    theirs.reset(accept(listener.get(), nullptr, nullptr));
    EXPECT_TRUE(theirs.valid());
  }
  static void flush(Client& client) {
    while (!client.unsent.empty()) {
      const ssize_t sent =
          ::send(client.fd.get(), client.unsent.data(), client.unsent.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      client.unsent.erase(0, static_cast<size_t>(sent));
    }
  }

  const bool tcp_;
  WakeEvent freed_;
  ConnectionBudget budget_{100, freed_};
  SocketTransport sockets_{{}, budget_, {}, no_guard()};
  std::vector<Client> clients_;
};

// Active messages, whose clients are in memory, beside sockets.
class MessageLink : public SocketLink {
 public:
  MessageLink() : SocketLink(false) {}
  Transport& transport() override { return joined_; }
  uint32_t connect() override {
    const auto client = static_cast<uint32_t>(messages_of_.size());
    messages_of_.push_back({});
    port_.open(client);
    message(client, AmHandler::kHello, "");
    return client;
  }
  void send(uint32_t client, const std::string& bytes) override {
    for (size_t at = 0; at < bytes.size(); at += kAmEagerMax)
      message(client, AmHandler::kBytes, bytes.substr(at, kAmEagerMax));
  }
  std::string take(uint32_t client) override {
    if (messages_of_[client].reads && !port_.done_at_once) port_.finish();
    for (; seen_ < port_.sent.size(); ++seen_) {
      const MemoryAmPort::Sent& sent = port_.sent[seen_];
      Client& to = messages_of_[sent.endpoint];
      if (sent.header.handler == AmHandler::kBytes) to.text += sent.data;
      if (sent.header.handler != AmHandler::kBye) continue;
      to.closed = true;
      port_.fail(sent.endpoint);  // it closes its end
    }
    return messages_of_[client].reads ? std::exchange(messages_of_[client].text, "") : "";
  }
  void set_reading(uint32_t client, bool reads) override {
    messages_of_[client].reads = reads;
    port_.done_at_once = reads;
    if (reads) port_.finish();
  }
  bool is_closed(uint32_t client) override { return messages_of_[client].closed; }
  void close(uint32_t client) override { port_.fail(client); }
  void stop() override {
    messages_.stop_now();
    SocketLink::stop();
  }

 private:
  struct Client {
    uint32_t sequence = 0;
    std::string text = {};
    bool reads = true;
    bool closed = false;
  };
  void message(uint32_t client, AmHandler handler, std::string data) {
    port_.message(client, {.handler = handler, .sequence = messages_of_[client].sequence++},
                  std::move(data));
  }

  MemoryAmPort port_;
  AmTransport messages_{{}, port_, budget_};
  JoinedTransport joined_{sockets_, messages_};
  std::vector<Client> messages_of_;
  size_t seen_ = 0;
};

enum class LinkKind : uint8_t { kTcp, kUnix, kUnixBesideMessages, kMessages };

inline const char* link_name(LinkKind kind) {
  constexpr const char* kNames[] = {"Tcp", "Unix", "UnixBesideMessages", "Messages"};
  return kNames[static_cast<size_t>(kind)];
}

// For GoogleTest, which shows parameters of tests.
inline void PrintTo(LinkKind kind, std::ostream* out) { *out << link_name(kind); }

// The sockets of a server that also has active messages.
class JoinedSocketLink final : public MessageLink {
 public:
  uint32_t connect() override { return SocketLink::connect(); }
  void send(uint32_t client, const std::string& bytes) override { SocketLink::send(client, bytes); }
  std::string take(uint32_t client) override { return SocketLink::take(client); }
  void set_reading(uint32_t client, bool reads) override { SocketLink::set_reading(client, reads); }
  bool is_closed(uint32_t client) override { return SocketLink::is_closed(client); }
  void close(uint32_t client) override { SocketLink::close(client); }
};

inline std::unique_ptr<Link> make_link(LinkKind kind) {
  switch (kind) {
    case LinkKind::kTcp:
      return std::make_unique<SocketLink>(true);
    case LinkKind::kUnix:
      return std::make_unique<SocketLink>(false);
    case LinkKind::kUnixBesideMessages:
      return std::make_unique<JoinedSocketLink>();
    case LinkKind::kMessages:
      return std::make_unique<MessageLink>();
  }
  return nullptr;
}

}  // namespace warpcache::io
