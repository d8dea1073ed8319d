// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "io/client_source.h"
#include "io/socket/accept/listener.h"
#include "io/socket/stream/out_queue.h"
#include "io/socket/stream/stash_pool.h"
#include "io/socket/stream/stream_socket.h"
#include "io/udp_guard.h"

namespace warpcache::io {
namespace {

sockaddr_storage address_of(const char* text) {
  sockaddr_storage storage{};
  sockaddr_in in4{};
  sockaddr_in6 in6{};
  if (inet_pton(AF_INET, text, &in4.sin_addr) == 1) {
    in4.sin_family = AF_INET;
    std::memcpy(&storage, &in4, sizeof in4);
  } else {
    EXPECT_EQ(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
    in6.sin6_family = AF_INET6;
    std::memcpy(&storage, &in6, sizeof in6);
  }
  return storage;
}

Network network(const char* text, uint8_t prefix_bits) {
  return {mapped_address(address_of(text)), prefix_bits};
}

TEST(ClientSourceTest, IsTheAddressOrTheNetworkOfIPv6) {
  const auto source = [](const char* text) { return source_of(address_of(text)); };
  EXPECT_EQ(source("10.1.2.3"), source("::ffff:10.1.2.3"));
  EXPECT_NE(source("10.1.2.3"), source("10.1.2.4"));
  EXPECT_EQ(source("2001:db8::1"), source("2001:db8::ffff:0:0:2"));
  EXPECT_NE(source("2001:db8::1"), source("2001:db8:0:1::1"));
  const std::set<uint64_t> others = {0, source("127.0.0.1"), source("::1"), source("2001:db8::")};
  EXPECT_EQ(others.size(), 4u);
  sockaddr_storage unix_address{};
  unix_address.ss_family = AF_UNIX;
  EXPECT_EQ(others.count(source_of(unix_address)), 0u);
  EXPECT_EQ(source_of(-1), 0u);
}

TEST(UdpGuardTest, AnIPv4NetworkHoldsMappedAddressesToo) {
  const UdpGuard guard({network("127.0.0.0", 96 + 8), network("::1", 128)}, 10);
  EXPECT_TRUE(guard.is_allowed(mapped_address(address_of("127.0.0.1"))));
  EXPECT_TRUE(guard.is_allowed(mapped_address(address_of("127.255.0.9"))));
  EXPECT_TRUE(guard.is_allowed(mapped_address(address_of("::1"))));
  EXPECT_TRUE(guard.is_allowed(mapped_address(address_of("::ffff:127.0.0.1"))));
  EXPECT_FALSE(guard.is_allowed(mapped_address(address_of("128.0.0.1"))));
  EXPECT_FALSE(guard.is_allowed(mapped_address(address_of("::2"))));
}

TEST(UdpGuardTest, NetworksEndAtTheirPrefix) {
  const UdpGuard guard({network("10.1.0.0", 96 + 15), network("2001:db8::", 33)}, 10);
  EXPECT_TRUE(guard.is_allowed(mapped_address(address_of("10.1.2.3"))));
  EXPECT_TRUE(guard.is_allowed(mapped_address(address_of("10.0.2.3"))));
  EXPECT_FALSE(guard.is_allowed(mapped_address(address_of("10.2.0.0"))));
  EXPECT_TRUE(guard.is_allowed(mapped_address(address_of("2001:db8:7fff::1"))));
  EXPECT_FALSE(guard.is_allowed(mapped_address(address_of("2001:db8:8000::1"))));
}

TEST(UdpGuardTest, OthersGetTheFactor) {
  const UdpGuard guard({}, 10);
  EXPECT_TRUE(guard.permits(address_of("192.0.2.1"), 20, 200));
  EXPECT_FALSE(guard.permits(address_of("192.0.2.1"), 20, 201));
  EXPECT_FALSE(guard.permits(address_of("127.0.0.1"), 20, 201));
}

TEST(StashPoolTest, SizesAndReuse) {
  StashPool pool(0);
  for (const uint32_t size : {1u, 256u, 257u, 512u, 513u, 40'000u, kChunkBytesMax}) {
    Stash stash = pool.take(size);
    ASSERT_NE(stash.data, nullptr);
    EXPECT_GE(stash.capacity, size);
    EXPECT_LT(stash.capacity, std::max(2 * size, 257u));
    std::memset(stash.data, 1, stash.capacity);
    const uint8_t* const data = stash.data;
    pool.give(stash);
    EXPECT_EQ(stash.data, nullptr);
    stash = pool.take(size);
    EXPECT_EQ(stash.data, data);
    pool.give(stash);
  }
  EXPECT_EQ(pool.bytes_in_use(), 0u);
}

TEST(StashPoolTest, ReserveIsTakenAndComesBack) {
  StashPool pool(0);
  std::vector<Stash> taken;
  std::set<uint8_t*> places;
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < StashPool::kReserve; ++i) taken.push_back(pool.take(1));
    for (Stash& stash : taken) {
      ASSERT_NE(stash.data, nullptr);
      places.insert(stash.data);
      pool.give(stash);
    }
    taken.clear();
    EXPECT_EQ(places.size(), StashPool::kReserve);
  }
}

TEST(StashPoolTest, Bound) {
  StashPool pool(1000);
  Stash first = pool.take(512);
  EXPECT_EQ(pool.take(512).data, nullptr);
  Stash second = pool.take(256);
  ASSERT_NE(second.data, nullptr);
  EXPECT_EQ(pool.bytes_in_use(), 768u);
  pool.give(first);
  pool.give(second);
}

TEST(OutQueueTest, CopiesOnlyWhatIsNotPinned) {
  const uint8_t bytes[100] = {};
  const ReplySpan spans[] = {
      {bytes, 10, 0}, {bytes, 50, kPinFollows}, {bytes, 30, 7}, {bytes, 5, 0}};
  EXPECT_EQ(OutQueue::bytes_to_copy(spans, 4, 0), 15u);
  EXPECT_EQ(OutQueue::bytes_to_copy(spans, 4, 4), 11u);
  EXPECT_EQ(OutQueue::bytes_to_copy(spans, 4, 70), 5u);
  EXPECT_EQ(OutQueue::bytes_to_copy(spans, 4, 95), 0u);
}

// What the peer of a Unix socket reads first, and then, where the server closes with unread input:
// 0 is an end, a negative number an error.
std::pair<ssize_t, ssize_t> reads_after_a_close_with_unread_input() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return {-1, -1};
  const UniqueFd peer(ends[1]);
  {
    const UniqueFd server(ends[0]);
    const std::string unread(100'000, 'x');
    EXPECT_EQ(send(peer.get(), unread.data(), unread.size(), 0),
              static_cast<ssize_t>(unread.size()));
    EXPECT_EQ(send(server.get(), "bye", 3, 0), 3);
    finish_politely(server.get());
  }
  char reply[8];
  const ssize_t first = recv(peer.get(), reply, sizeof reply, 0);
  return {first, recv(peer.get(), reply, sizeof reply, 0)};
}

TEST(StreamEndTest, UnreadInputDoesNotResetAUnixSocket) {
  const std::pair<ssize_t, ssize_t> reply_and_end{3, 0};
  EXPECT_EQ(reads_after_a_close_with_unread_input(), reply_and_end);
}

// Under ThreadSanitizer it fails where they write to the same memory.
TEST(StreamEndTest, ThreadsFinishStreamsAtTheSameTime) {
  const auto finish_one = [] {
    std::vector<Listener> listeners;
    std::vector<std::string> skipped;
    ASSERT_EQ(open_tcp({"127.0.0.1", 0}, 16, listeners, skipped), "");
    ASSERT_EQ(start_listening(listeners[0]), "");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(listeners[0].port);
    const UniqueFd client(socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const UniqueFd server(accept(listeners[0].fd.get(), nullptr, nullptr));
    ASSERT_EQ(send(client.get(), "unread", 6, 0), 6);
    pollfd input{server.get(), POLLIN, 0};
    ASSERT_EQ(poll(&input, 1, -1), 1);
    finish_politely(server.get());
    char byte;
    EXPECT_EQ(recv(server.get(), &byte, 1, MSG_DONTWAIT), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(recv(client.get(), &byte, 1, 0), 0);
  };
  std::thread other(finish_one);
  finish_one();
  other.join();
}

TEST(ListenerTest, BothFamiliesShareThePickedPort) {
  std::vector<Listener> listeners;
  std::vector<std::string> skipped;
  ASSERT_EQ(open_tcp({"", 0}, 16, listeners, skipped), "");
  ASSERT_GE(listeners.size(), 1u);
  for (const Listener& listener : listeners) EXPECT_NE(listener.port, 0);
}

TEST(ListenerTest, APortInUseIsAFailure) {
  std::vector<Listener> listeners;
  std::vector<std::string> skipped;
  ASSERT_EQ(open_tcp({"127.0.0.1", 0}, 16, listeners, skipped), "");
  const uint16_t port = listeners[0].port;
  ASSERT_EQ(start_listening(listeners[0]), "");
  EXPECT_NE(open_tcp({"127.0.0.1", port}, 16, listeners, skipped).find("already in use"),
            std::string::npos);
  std::vector<UdpListener> udp;
  ASSERT_EQ(open_udp({"127.0.0.1", 0}, 3, udp, skipped), "");
  EXPECT_EQ(udp[0].fds.size(), 3u);
  EXPECT_NE(open_udp({"127.0.0.1", udp[0].port}, 1, udp, skipped).find("already in use"),
            std::string::npos);
}

// Of two servers that start at the same time both bind the port, but only one can listen.
TEST(ListenerTest, APortThatAnotherListensAtByNowIsAFailure) {
  std::vector<Listener> listeners;
  std::vector<std::string> skipped;
  ASSERT_EQ(open_tcp({"127.0.0.1", 0}, 16, listeners, skipped), "");
  ASSERT_EQ(open_tcp({"127.0.0.1", listeners[0].port}, 16, listeners, skipped), "");
  ASSERT_EQ(start_listening(listeners[0]), "");
  EXPECT_NE(start_listening(listeners[1]).find("already in use"), std::string::npos);
}

// A client that can connect expects an answer.
TEST(ListenerTest, NobodyConnectsBeforeTheServerListens) {
  std::vector<Listener> listeners;
  std::vector<std::string> skipped;
  ASSERT_EQ(open_tcp({"127.0.0.1", 0}, 16, listeners, skipped), "");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(listeners[0].port);
  const auto connects = [&address] {
    const UniqueFd client(socket(AF_INET, SOCK_STREAM, 0));
    return connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  };
  EXPECT_FALSE(connects());
  ASSERT_EQ(start_listening(listeners[0]), "");
  EXPECT_TRUE(connects());
}

TEST(ListenerTest, AnUnknownHostIsAFailure) {
  std::vector<Listener> listeners;
  std::vector<std::string> skipped;
  EXPECT_NE(open_tcp({"256.256.256.256", 1}, 16, listeners, skipped), "");
  EXPECT_NE(open_tcp({"192.0.2.1", 0}, 16, listeners, skipped),
            "");  // not an address of this machine
}

class UnixListenerTest : public testing::Test {
 protected:
  ~UnixListenerTest() override { (void)unlink(path_.c_str()); }

  // A socket that listens at the path and leaves its file there.
  UniqueFd listen_plainly() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd.get(), 1), 0);
    return fd;
  }
  bool exists() const { return access(path_.c_str(), F_OK) == 0; }

  const std::string path_ = testing::TempDir() + "parts_test." + std::to_string(getpid());
};

TEST_F(UnixListenerTest, TheFileHasItsModeAndAppearsWithTheListener) {
  std::vector<Listener> listeners;
  ASSERT_EQ(open_unix(path_, 0750, 16, listeners), "");
  EXPECT_FALSE(exists());
  ASSERT_EQ(start_listening(listeners[0]), "");
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0750u);
  listeners.clear();
  EXPECT_FALSE(exists());
}

TEST_F(UnixListenerTest, TheSocketOfAnEndedServerIsReplaced) {
  listen_plainly().reset();
  ASSERT_TRUE(exists());
  std::vector<Listener> listeners;
  ASSERT_EQ(open_unix(path_, 0700, 16, listeners), "");
  ASSERT_EQ(start_listening(listeners[0]), "");
  listeners.clear();
  EXPECT_FALSE(exists());
}

TEST_F(UnixListenerTest, TheSocketOfARunningServerIsNot) {
  std::vector<Listener> listeners;
  ASSERT_EQ(open_unix(path_, 0700, 16, listeners), "");  // the other server starts after this
  const UniqueFd other = listen_plainly();
  EXPECT_NE(start_listening(listeners[0]).find("another server listens"), std::string::npos);
  EXPECT_NE(open_unix(path_, 0700, 16, listeners).find("another server listens"),
            std::string::npos);
  listeners.clear();
  EXPECT_TRUE(exists());
}

TEST_F(UnixListenerTest, AnotherFileIsNotReplacedAndNoneIsRemovedForAnother) {
  std::vector<Listener> listeners;
  ASSERT_EQ(open_unix(path_, 0700, 16, listeners), "");
  ASSERT_EQ(start_listening(listeners[0]), "");
  ASSERT_EQ(unlink(path_.c_str()), 0);
  std::ofstream(path_) << "a file";
  listeners.clear();
  EXPECT_TRUE(exists());
  EXPECT_NE(open_unix(path_, 0700, 16, listeners).find("there is a file"), std::string::npos);
}

// 107 bytes fit into an address. The temporary name must fit too.
TEST_F(UnixListenerTest, APathUpToTheBound) {
  std::vector<Listener> listeners;
  std::string longest = path_;
  longest.resize(107, 'a');
  ASSERT_EQ(open_unix(longest, 0700, 16, listeners), "");
  ASSERT_EQ(start_listening(listeners[0]), "");
  EXPECT_EQ(access(longest.c_str(), F_OK), 0);
  EXPECT_NE(open_unix(longest + "a", 0700, 16, listeners).find("too long"), std::string::npos);
  EXPECT_EQ(listeners.size(), 1u);
}

}  // namespace
}  // namespace warpcache::io
