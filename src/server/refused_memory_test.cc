// SPDX-License-Identifier: Apache-2.0
//
// Makes allocations of a running server fail during a conversation: each one alone, then each one
// and all after it. The server must stay up, and must then answer as before with the stored items.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "base/testing/effort.h"
#include "base/testing/patience.h"
#include "io/unique_fd.h"
#include "options/options.h"
#include "server/server.h"
#include "server/testing/refusal.h"

namespace warpcache::server {
namespace {

constexpr uint32_t kLargeBytes = 200 * 1024;

// The CUDA engine is tested only if it is built for the simulated GPU, which every machine has.
constexpr EngineChoice kEngines[] = {EngineChoice::kCpu,
#ifdef WARPCACHE_CUDA_IS_SIMULATED
                                     EngineChoice::kCuda
#endif
};

std::string set(const std::string& key, const std::string& value) {
  return "set " + key + " 0 0 " + std::to_string(value.size()) + "\r\n" + value + "\r\n";
}

std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

std::string value_of(int number, size_t size) {
  std::string value(size, static_cast<char>('a' + number % 26));
  return value.replace(0, 4, std::to_string(1000 + number));
}

// A binary message without extras.
std::string binary(uint8_t opcode, const std::string& extras, const std::string& key,
                   const std::string& value) {
  const auto body = static_cast<uint32_t>(extras.size() + key.size() + value.size());
  std::string head(24, '\0');
  head[0] = static_cast<char>(0x80);
  head[1] = static_cast<char>(opcode);
  head[3] = static_cast<char>(key.size());
  head[4] = static_cast<char>(extras.size());
  for (size_t i = 0; i < 4; ++i) head[8 + i] = static_cast<char>(body >> (24 - 8 * i));
  return head + extras + key + value;
}

// What one client sends, in pieces, and whether it then waits for the replies.
struct Conversation {
  std::string name;
  std::vector<std::string> pieces;
  bool reads = true;
  bool datagram = false;
  std::string last = {};  // what it waits for; empty: that the server closes the connection
};

// How a failure names it.
void PrintTo(const Conversation& one, std::ostream* out) { *out << one.name; }

std::vector<Conversation> conversations() {
  const std::string half = set("half", value_of(7, 50000));
  const std::string big = set("big", value_of(8, kLargeBytes));
  return {
      {"text",
       {set("a", "1") + "incr a 1\r\nappend a 0 0 1\r\n2\r\nget a k1\r\ngat 0 a\r\ndelete a\r\n"}},
      {"meta", {"ms m 3\r\nabc\r\nmg m v t f k O1\r\nma n N0\r\nmd m\r\nme k1\r\nmn\r\n"}},
      {"binary",
       {binary(1, std::string(8, '\0'), "b", "value") + binary(0, "", "b", "") +
        binary(0x10, "", "", "") + binary(0x10, "", "settings", "") + binary(0x0a, "", "", "")}},
      {"pieces", {half.substr(0, 30000), half.substr(30000), "get half\r\n", "ge", "t k1\r\n"}},
      {"big", {big.substr(0, 100), big.substr(100, 90000), big.substr(90100) + "get big\r\n"}},
      {"refused", {"set huge 0 0 1100000\r\n", std::string(1100000, 'x') + "\r\nmn\r\n"}},
      {"waiting", {repeated("get v\r\n", 3000) + "mn\r\n"}},
      {"pinned", {big + repeated("get big\r\n", 60)}},
      {"unread", {repeated("get v\r\n", 3000)}, false},
      {"unread pinned", {big + repeated("get big\r\n", 60)}, false},
      {"stats",
       {"stats\r\nstats items\r\nstats slabs\r\nstats settings\r\nstats conns\r\nstats sizes\r\n"}},
      {"prefixes",
       {"stats detail on\r\nget p:1 q:1 r:1\r\n" + set("s:1", "x") +
        "stats detail dump\r\nstats detail off\r\nstats reset\r\n"}},
      {"metadump", {"lru_crawler metadump all\r\n"}},
      {"mgdump", {"lru_crawler mgdump all\r\n"}},
      {"cachedump", {"stats cachedump 1 0\r\n"}},
      {"limit",
       {"cache_memlimit 32\r\ncache_memlimit 64\r\nverbosity 1\r\nverbosity 0\r\nversion\r\n"}},
      {.name = "watch",
       .pieces = {"watch fetchers mutations evictions connevents\r\n"},
       .last = "OK\r\n"},  // no further command is read
      {"errors", {"bogus\r\nget\r\nset x 0 0 -1\r\nmg\r\nget " + std::string(251, 'k') + "\r\n"}},
      {"datagram", {std::string("\0\1\0\0\0\1\0\0", 8) + "get k1 v\r\n"}, true, true},
      {"datagram too large",
       {std::string("\0\2\0\0\0\1\0\0", 8) + repeated("get v\r\n", 5000)},
       true,
       true},
      {"datagram stats", {std::string("\0\3\0\0\0\1\0\0", 8) + "stats\r\n"}, true, true},
  };
}

class Client {
 public:
  Client(uint16_t port, bool datagram)
      : fd_(socket(AF_INET, datagram ? SOCK_DGRAM : SOCK_STREAM, 0)), datagram_(datagram) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }

  // A send may fail, because the server may have closed the connection.
  void send(const std::string& text) {
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t count = ::send(fd_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<size_t>(count);
    }
  }

  // Reads until `end` (empty: nothing) has come, the connection is closed or (UDP) no datagram
  // follows. More may come after it.
  std::string read_until(const std::string& end) {
    std::string text;
    pollfd waiting = {fd_.get(), POLLIN, 0};
    while (end.empty() || text.find(end) == std::string::npos) {
      if (poll(&waiting, 1, datagram_ ? 20 : kPatienceMs) <= 0) {
        EXPECT_TRUE(datagram_) << "neither a reply nor the end of the connection after: " << text;
        break;
      }
      char bytes[65536];
      const ssize_t count = recv(fd_.get(), bytes, sizeof bytes, 0);
      if (count <= 0) break;
      text.append(bytes, static_cast<size_t>(count));
    }
    return text;
  }
  std::string ask(const std::string& request, const std::string& end) {
    send(request);
    return read_until(end);
  }

 private:
  io::UniqueFd fd_;
  bool datagram_;
};

class RefusedMemoryTest : public testing::TestWithParam<std::tuple<EngineChoice, Conversation>> {
 protected:
  static constexpr int kItems = 40;

  void SetUp() override {
    exempt_this_thread();
    options_.store.memory_bytes = uint64_t{64} << 20;
    options_.store.hash_power = 12;  // small, because dumps read the whole index
    options_.listen.tcp = {{"127.0.0.1", 0}};
    options_.listen.udp = {{"127.0.0.1", 0}};
    options_.server.threads = 1;
    options_.server.engine = std::get<EngineChoice>(GetParam());
  }

  void start() {
    server_ = std::make_unique<Server>(options_);
    ASSERT_EQ(server_->open_ports(), "");
    ASSERT_EQ(server_->start(), "");
    server_->serve();
    for (const BoundPort& port : server_->ports()) (port.udp ? udp_ : tcp_) = port.port;
    Client client(tcp_, false);
    for (int i = 0; i < kItems; ++i) {
      ASSERT_EQ(client.ask(set("k" + std::to_string(i), value_of(i, 50)), "\r\n"), "STORED\r\n");
    }
    ASSERT_EQ(client.ask(set("v", value_of(0, 2000)), "\r\n"), "STORED\r\n");
  }

  void hold(const Conversation& what) const {
    Client client(what.datagram ? udp_ : tcp_, what.datagram);
    for (const std::string& piece : what.pieces) {
      client.send(piece);
      // The pieces arrive separately: when this request is answered, the server has read the last
      // one.
      if (what.pieces.size() > 1 || !what.reads) check_item(1);
    }
    if (what.reads && !what.datagram) client.send("quit\r\n");
    if (what.reads) client.read_until(what.last);
  }

  void check_item(int number) const {
    Client client(tcp_, false);
    const std::string key = "k" + std::to_string(number);
    const std::string reply = client.ask("get " + key + "\r\n", "END\r\n");
    if (!reply.empty() || refusal().last == 0) {
      EXPECT_EQ(reply, "VALUE " + key + " 0 50\r\n" + value_of(number, 50) + "\r\nEND\r\n");
    }
  }

  Options options_;
  std::unique_ptr<Server> server_;
  uint16_t tcp_ = 0;
  uint16_t udp_ = 0;
};

// Starts a server for each allocation, because some allocations are made only once. In brief, some
// of those after the first few are left out: most on the simulated GPU, and two of three where all
// that follow fail, too.
TEST_P(RefusedMemoryTest, TheServerStaysUp) {
  constexpr int64_t kFirstFew = 4;
  const bool every = testing_effort(false, true);
  const bool on_gpu = options_.server.engine == EngineChoice::kCuda;
  for (const int64_t following : {0, 1 << 30}) {
    bool reached = true;
    const bool each_alone = following == 0;
    const int64_t step = every ? 1 : on_gpu ? (each_alone ? 20 : 24) : (each_alone ? 1 : 3);
    for (int64_t first = 1; reached && !HasFailure(); first += first < kFirstFew ? 1 : step) {
      SCOPED_TRACE("allocation " + std::to_string(first) + " and " + std::to_string(following));
      start();
      refusal().asked = 0;
      refusal().first = first;
      refusal().last = first + following;
      hold(std::get<Conversation>(GetParam()));
      reached = refusal().asked >= first;
      refusal().last = 0;
      for (int i = 0; i < kItems; i += 13) check_item(i);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RefusedMemoryTest,
                         testing::Combine(testing::ValuesIn(kEngines),
                                          testing::ValuesIn(conversations())),
                         [](const auto& setting) {
                           const auto engine = std::get<EngineChoice>(setting.param);
                           std::string name = engine == EngineChoice::kCuda ? "cuda " : "cpu ";
                           name += std::get<Conversation>(setting.param).name;
                           for (char& c : name) c = c == ' ' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace warpcache::server
