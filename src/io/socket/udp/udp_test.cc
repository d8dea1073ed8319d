// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cstring>
#include <map>
#include <thread>

#include "io/socket/testing/line_server.h"
#include "protocol/framing/udp_frame.h"

namespace warpcache::io {
namespace {

class UdpClient {
 public:
  explicit UdpClient(uint16_t port) : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const int bytes = 4 << 20;
    (void)setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    set_timeout(10'000);
  }

  void set_timeout(int ms) {
    const timeval timeout{ms / 1000, (ms % 1000) * 1000};
    (void)setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  }

  static std::string datagram(const protocol::UdpHeader& header, const std::string& text) {
    std::string bytes(protocol::kUdpHeaderSize, '\0');
    protocol::compose_udp_header(header, reinterpret_cast<uint8_t*>(bytes.data()));
    return bytes + text;
  }

  void send(uint16_t id, const std::string& text) { send_raw(datagram({id, 0, 1}, text)); }
  void send_raw(const std::string& bytes) { EXPECT_TRUE(try_send(bytes)); }
  bool try_send(const std::string& bytes) {
    return ::send(fd_.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
  }
  // Sends one message that the kernel splits into datagrams of `segment` bytes. False: it cannot.
  bool send_segmented(const std::string& bytes, uint16_t segment) {
    const int size = segment;
    if (setsockopt(fd_.get(), IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size) != 0) return false;
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), 0);
    const int off = 0;
    (void)setsockopt(fd_.get(), IPPROTO_UDP, UDP_SEGMENT, &off, sizeof off);
    return sent == static_cast<ssize_t>(bytes.size());
  }

  // The payload of the next datagram without memcached's header; empty after the time limit.
  std::string receive(protocol::UdpHeader& header) {
    std::string bytes(70'000, '\0');
    const ssize_t got = recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (got < static_cast<ssize_t>(protocol::kUdpHeaderSize)) return "";
    bytes.resize(static_cast<size_t>(got));
    EXPECT_LE(bytes.size(), protocol::kUdpDatagramMax);
    const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
    (void)protocol::parse_udp_header({data, bytes.size()}, header);
    return bytes.substr(protocol::kUdpHeaderSize);
  }

  // A complete reply, assembled by sequence numbers.
  std::string receive_reply(uint16_t id) {
    std::map<uint16_t, std::string> parts;
    protocol::UdpHeader header;
    do {
      const std::string part = receive(header);
      EXPECT_EQ(header.request_id, id);
      if (part.empty() || header.request_id != id) break;
      EXPECT_TRUE(parts.emplace(header.sequence, part).second);
    } while (parts.size() < header.count);
    std::string text;
    for (const auto& [sequence, part] : parts) text += part;
    return text;
  }

 private:
  UniqueFd fd_;
};

LineServerConfig udp_config() { return {.workers = 2, .udp = true}; }

TEST(UdpTest, ADatagramIsAnswered) {
  LineServer server(udp_config());
  UdpClient client(server.udp_port());
  client.send(7, "echo hello\necho there\n");
  EXPECT_EQ(client.receive_reply(7), "hello\nthere\n");
}

TEST(UdpTest, RepliesAreSplit) {
  LineServer server(udp_config());
  UdpClient client(server.udp_port());
  uint16_t id = 1;
  for (const size_t size : {1u, 1391u, 1392u, 1393u, 2784u, 100'000u, 500'000u}) {
    client.send(++id, "big " + std::to_string(size) + "\n");
    EXPECT_EQ(client.receive_reply(id), std::string(size, 'x')) << size;
  }
}

TEST(UdpTest, PinnedRepliesAreSplitAndReleased) {
  LineServer server(udp_config());
  UdpClient client(server.udp_port());
  client.send(9, "echo a\npin 50001\necho b\n");
  EXPECT_EQ(client.receive_reply(9), "a\n" + std::string(50'001, 'p') + "b\n");
}

TEST(UdpTest, ABurstOfMany) {
  LineServer server(udp_config());
  std::vector<std::unique_ptr<UdpClient>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(std::make_unique<UdpClient>(server.udp_port()));
  for (uint16_t round = 0; round < 20; ++round) {
    for (uint16_t id = 0; id < 50; ++id) {
      for (const auto& client : clients) client->send(id, "echo " + std::to_string(id) + "\n");
    }
    for (const auto& client : clients) {
      std::map<uint16_t, std::string> replies;
      for (int i = 0; i < 50; ++i) {
        protocol::UdpHeader header;
        const std::string text = client->receive(header);
        replies[header.request_id] = text;
      }
      ASSERT_EQ(replies.size(), 50u);
      for (const auto& [id, text] : replies) EXPECT_EQ(text, std::to_string(id) + "\n");
    }
  }
  server.drain();  // a reply may arrive before it is counted
  EXPECT_EQ(server.sum(&TransportCounters::datagrams_received), 8000u);
  EXPECT_EQ(server.sum(&TransportCounters::datagrams_sent), 8000u);
}

TEST(UdpTest, CoalescedRequestsAreTakenApart) {
  LineServer server(udp_config());
  UdpClient client(server.udp_port());
  std::string burst;
  for (uint16_t id = 0; id < 40; ++id) {
    burst += UdpClient::datagram({id, 0, 1}, "echo " + std::to_string(100 + id) + "\n");
  }
  const auto segment = static_cast<uint16_t>(burst.size() / 40);
  if (!client.send_segmented(burst, segment)) GTEST_SKIP() << "no UDP_SEGMENT";
  std::map<uint16_t, std::string> replies;
  for (int i = 0; i < 40; ++i) {
    protocol::UdpHeader header;
    const std::string text = client.receive(header);
    replies[header.request_id] = text;
  }
  ASSERT_EQ(replies.size(), 40u);
  for (const auto& [id, text] : replies) EXPECT_EQ(text, std::to_string(100 + id) + "\n");
}

TEST(UdpTest, WhatIsNoRequestIsNotAnswered) {
  LineServer server({.workers = 1, .udp = true});
  UdpClient client(server.udp_port());
  client.send_raw("short");
  client.send_raw(std::string(protocol::kUdpHeaderSize, '\0'));
  client.send_raw(UdpClient::datagram({1, 0, 2}, "echo first of two\n"));
  client.send_raw(UdpClient::datagram({1, 1, 2}, "echo second of two\n"));
  client.send_raw(UdpClient::datagram({1, 0, 0}, "echo of none\n"));
  client.send(2, "no command, no reply\n");
  client.send(3, "echo a\n");
  EXPECT_EQ(client.receive_reply(3), "a\n");
  server.drain();
  EXPECT_EQ(server.sum(&TransportCounters::datagrams_malformed), 5u);
  EXPECT_EQ(server.sum(&TransportCounters::datagrams_sent), 1u);
}

TEST(UdpTest, ALargeDatagramIsTakenWhole) {
  LineServer server(udp_config());
  UdpClient client(server.udp_port());
  client.send(5, "need 60000\n" + std::string(60'000, 'a') + "echo a\n");
  EXPECT_EQ(client.receive_reply(5).substr(0, 6), "60000 ");
}

TEST(UdpTest, StreamsAndDatagramsShareAWorker) {
  LineServer server({.workers = 1, .udp = true});
  UdpClient datagrams(server.udp_port());
  Client stream(server.port());
  for (uint16_t i = 0; i < 200; ++i) {
    datagrams.send(i, "echo d\n");
    EXPECT_EQ(stream.ask("echo s\n", 2), "s\n");
    EXPECT_EQ(datagrams.receive_reply(i), "d\n");
  }
}

TEST(UdpTest, DrainingEndsWithDatagramsOnTheWay) {
  LineServer server({.workers = 1, .udp = true});
  UdpClient client(server.udp_port());
  std::atomic<bool> ended{false};
  std::thread sender([&] {
    while (!ended) (void)client.try_send(UdpClient::datagram({1, 0, 2}, "echo a\n"));
  });
  server.drain();
  ended = true;
  sender.join();
}

}  // namespace
}  // namespace warpcache::io
