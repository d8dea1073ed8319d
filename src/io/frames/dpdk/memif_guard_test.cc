// SPDX-License-Identifier: Apache-2.0
//
// DPDK's driver, whose handlers wait for the threads of ports.
#include "io/frames/dpdk/memif_guard.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/patience.h"
#include "io/frames/dpdk/dpdk_ports.h"
#include "io/unique_fd.h"

namespace warpcache::io {
namespace {

constexpr int kNothingMs = 100;  // what is not allowed would come sooner, mostly

class MemifGuardTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "warpcache-memif-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    DpdkSettings settings;
    settings.device = "net_memif0,role=server,socket-abstract=no,socket=" + socket_path();
    std::string failure;
    warpcache_open_dpdk_ports(settings, &ports_, &failure);
    if (!failure.empty()) GTEST_SKIP() << failure;
  }
  ~MemifGuardTest() override {
    ports_.clear();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  std::string socket_path() const { return folder_ + "/memif"; }
  std::string other_path() const { return folder_ + "/other"; }

  // Another process, as far as the driver sees.
  UniqueFd connect_peer() const { return connect_peer(socket_path()); }
  static UniqueFd connect_peer(const std::string& path) {
    UniqueFd peer(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return peer;
  }
  static bool has_message(const UniqueFd& peer, int wait_ms) {
    pollfd wait = {peer.get(), POLLIN, 0};
    return poll(&wait, 1, wait_ms) == 1;
  }
  static bool becomes(unsigned handlers) {
    for (int ms = 0; ms < kPatienceMs && guarded_memif_handlers() != handlers; ++ms) usleep(1000);
    return guarded_memif_handlers() == handlers;
  }

  std::string folder_;
  std::vector<std::unique_ptr<FramePort>> ports_;
};

// One test, since a process starts DPDK once.
TEST_F(MemifGuardTest, HandlersRunWhileNoThreadIsAtTheDevice) {
  EXPECT_EQ(guarded_memif_handlers(), 1u);  // for those that connect
  MemifUser user;
  UniqueFd peer;
  {
    const AtMemif at_device(&user);
    peer = connect_peer();
    EXPECT_FALSE(has_message(peer, kNothingMs));
  }
  EXPECT_TRUE(has_message(peer, kPatienceMs));  // the driver greets
  EXPECT_TRUE(becomes(2));
  {
    const AtMemif at_device(&user);
    peer = UniqueFd();
    usleep(kNothingMs * 1000);
    EXPECT_EQ(guarded_memif_handlers(), 2u);
  }
  EXPECT_TRUE(becomes(1));

  // Threads that come and go all the time let the handlers run.
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      MemifUser own;
      while (!done) const AtMemif at_device(&own);
    });
  }
  for (int i = 0; i < 20; ++i) {
    peer = connect_peer();
    EXPECT_TRUE(has_message(peer, kPatienceMs));
    peer = UniqueFd();
    EXPECT_TRUE(becomes(1));
  }
  done = true;
  for (std::thread& thread : threads) thread.join();

  // Peers that have gone before the driver greets them.
  for (int i = 0; i < 20; ++i) {
    {
      const AtMemif at_device(&user);
      (void)connect_peer();
    }
    peer = connect_peer();
    EXPECT_TRUE(has_message(peer, kPatienceMs));
    ASSERT_TRUE(becomes(2));  // none is left of the one before
    peer = UniqueFd();
    EXPECT_TRUE(becomes(1));
  }

  // One that comes when the device has gone, and the driver's memory for it.
  peer = connect_peer();
  EXPECT_TRUE(has_message(peer, kPatienceMs));
  ASSERT_EQ(link(socket_path().c_str(), other_path().c_str()), 0);
  ports_.clear();
  EXPECT_TRUE(becomes(0));
  peer = connect_peer(other_path());
  EXPECT_FALSE(has_message(peer, kNothingMs));
}

}  // namespace
}  // namespace warpcache::io
