// SPDX-License-Identifier: Apache-2.0
//
// The system refuses to watch another descriptor. This program replaces epoll_ctl() by a function
// that fails like the kernel when memory or fs.epoll.max_user_watches is exhausted.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <functional>
#include <system_error>
#include <thread>

#include "io/socket/testing/line_server.h"

namespace {

std::atomic<int> additions_left{INT_MAX};
std::atomic<int> additions_refused{0};

}  // namespace

extern "C" int epoll_ctl(int epoll_fd, int operation, int fd, epoll_event* event) noexcept {
  using Function = int (*)(int, int, int, epoll_event*);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "epoll_ctl"));
  if (operation == EPOLL_CTL_ADD && additions_left.fetch_sub(1) <= 0) {
    additions_refused.fetch_add(1);
    errno = ENOSPC;
    return -1;
  }
  return real(epoll_fd, operation, fd, event);
}

namespace warpcache::io {
namespace {

class RefusalTest : public testing::Test {
 protected:
  ~RefusalTest() override { permit(INT_MAX); }

  static void permit(int additions) {
    additions_left = additions;
    additions_refused = 0;
  }
};

TEST_F(RefusalTest, AConnectionThatCannotBeWatchedIsClosed) {
  LineServer server({.workers = 1});
  Client first(server.port());
  EXPECT_EQ(first.ask("echo a\n", 2), "a\n");
  permit(0);
  Client refused(server.port());
  EXPECT_TRUE(refused.closed());
  EXPECT_EQ(first.ask("echo b\n", 2), "b\n");
  EXPECT_TRUE(eventually([&] { return server.acceptor().budget().current() == 1; }));
  EXPECT_EQ(server.transport(0).connection_count(), 1u);
  EXPECT_EQ(server.sum(&TransportCounters::connections_refused), 1u);
  permit(INT_MAX);
  Client next(server.port());
  EXPECT_EQ(next.ask("echo c\n", 2), "c\n");
}

TEST_F(RefusalTest, AListenerThatCannotBeWatchedIsTriedAgain) {
  LineServer server({.connections_max = 1, .reject_when_full = false});
  Client first(server.port());
  EXPECT_EQ(first.ask("echo a\n", 2), "a\n");
  Client waiting(server.port());
  EXPECT_TRUE(eventually([&] { return !server.acceptor().accepting(); }));
  permit(0);
  first.close();
  EXPECT_TRUE(eventually([] { return additions_refused >= 3; }));
  EXPECT_FALSE(server.acceptor().accepting());
  permit(INT_MAX);
  EXPECT_EQ(waiting.ask("echo b\n", 2), "b\n");
}

TEST_F(RefusalTest, AtTheStartItIsAnErrorOrTriedAgain) {
  // One worker with UDP watches two wake events and the UDP socket; the acceptor watches the
  // listener.
  for (const int additions : {0, 1, 2}) {
    permit(additions);
    EXPECT_THROW(LineServer({.workers = 1, .udp = true}), std::system_error) << additions;
  }
  permit(3);
  LineServer server({.workers = 1, .udp = true});
  EXPECT_TRUE(eventually([] { return additions_refused >= 3; }));
  EXPECT_FALSE(server.acceptor().accepting());
  permit(INT_MAX);
  Client client(server.port());
  EXPECT_EQ(client.ask("echo a\n", 2), "a\n");
}

}  // namespace
}  // namespace warpcache::io
