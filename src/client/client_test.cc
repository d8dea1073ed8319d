// SPDX-License-Identifier: Apache-2.0
#include "warpcache/client.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

// Answers the first request of each connection, with one text after the other.
class Server {
 public:
  explicit Server(std::vector<std::string> answers)
      : answers_(std::move(answers)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    (void)getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    (void)shutdown(listener_, SHUT_RDWR);
    thread_.join();
    (void)close(listener_);
    for (const int fd : connections_) (void)close(fd);
  }

  uint16_t port() const { return port_; }

 private:
  void serve() {
    for (const std::string& answer : answers_) {
      const int fd = accept(listener_, nullptr, nullptr);
      if (fd < 0) return;
      connections_.push_back(fd);
      char request[4096];
      if (recv(fd, request, sizeof request, 0) <= 0) return;
      (void)!write(fd, answer.data(), answer.size());
    }
  }

  const std::vector<std::string> answers_;
  const int listener_;
  uint16_t port_ = 0;
  std::vector<int> connections_;
  std::thread thread_;
};

// The rest of an answer would be taken for the answer to the next request.
TEST(ClientTest, AConnectionIsNotUsedAgainAfterACallbackHasThrown) {
  Server server(
      {"VALUE a 0 1 1\r\nx\r\nVALUE b 0 1 2\r\ny\r\nEND\r\n", "VALUE b 0 1\r\nz\r\nEND\r\n"});
  warpcache_client* const client = warpcache_create();
  ASSERT_NE(client, nullptr);
  ASSERT_EQ(warpcache_add_server(client, "127.0.0.1", server.port(), 0), WARPCACHE_OK);
  warpcache_set_timeout_ms(client, 60'000);
  const char* const keys[] = {"a", "b"};
  const size_t sizes[] = {1, 1};
  const auto found = [](void*, const char*, size_t, const void*, size_t, uint32_t, uint64_t) {
    throw std::runtime_error("no more");
  };
  EXPECT_EQ(warpcache_mget(client, keys, sizes, 2, found, nullptr), WARPCACHE_NO_SERVER);
  EXPECT_STREQ(warpcache_last_error(client), "no more");
  char value[8] = {};
  size_t size = 0;
  EXPECT_EQ(warpcache_get(client, "b", 1, value, sizeof value, &size, nullptr, nullptr),
            WARPCACHE_OK);
  EXPECT_EQ(std::string_view(value, size), "z");
  warpcache_free(client);
}

}  // namespace
