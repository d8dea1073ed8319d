// SPDX-License-Identifier: Apache-2.0
//
// What every port of frames must do. A port joins with a Link, its other side.
#include "io/frames/frame_port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/patience.h"
#include "io/frames/tap_port.h"
#if defined(WARPCACHE_HAVE_DPDK)
#include "io/frames/dpdk/dpdk_ports.h"
#endif
#include "io/frames/testing/received.h"
#include "io/unique_fd.h"
#if defined(WARPCACHE_HAVE_PCAP)
#include "io/frames/pcap_port.h"
#endif

namespace warpcache::io {
namespace {

// The other side of a port.
class Link {
 public:
  virtual ~Link() = default;
  // Makes the port. Returns why there is none here, or "".
  virtual std::string open(std::unique_ptr<FramePort>* port) = 0;
  virtual void send(const std::string& frame) = 0;
  // The next frame that the port has sent; "": none comes.
  virtual std::string receive() = 0;
};

bool is_readable(int fd) {
  pollfd poll_fd = {fd, POLLIN, 0};
  return poll(&poll_fd, 1, kPatienceMs) == 1;
}

#if defined(WARPCACHE_HAVE_PCAP)
// Two named pipes.
class PcapLink final : public Link {
 public:
  ~PcapLink() override {
    for (const std::string& name : {input_, output_}) std::remove(name.c_str());
  }
  std::string open(std::unique_ptr<FramePort>* port) override {
    for (const std::string& name : {input_, output_}) {
      EXPECT_EQ(mkfifo(name.c_str(), 0600), 0);
    }
    std::string failure = PcapPort::open(input_, output_, port);
    to_port_.reset(::open(input_.c_str(), O_WRONLY));
    from_port_.reset(::open(output_.c_str(), O_RDONLY));
    const uint32_t head[] = {0xa1b23c4d, 0x00040002, 0, 0, 65535, 1};
    write_all(&head, sizeof head);
    (void)read_all(sizeof head);
    return failure;
  }
  void send(const std::string& frame) override {
    const auto size = static_cast<uint32_t>(frame.size());
    const uint32_t head[] = {1, 2, size, size};
    write_all(&head, sizeof head);
    write_all(frame.data(), frame.size());
  }
  std::string receive() override {
    const std::string head = read_all(16);
    if (head.empty()) return "";
    uint32_t size = 0;
    std::memcpy(&size, head.data() + 8, sizeof size);
    return read_all(size);
  }

 private:
  void write_all(const void* data, size_t size) {
    ASSERT_EQ(write(to_port_.get(), data, size), static_cast<ssize_t>(size));
  }
  std::string read_all(size_t size) {
    std::string data;
    while (data.size() < size && is_readable(from_port_.get())) {
      char piece[4096];
      const ssize_t got = read(from_port_.get(), piece, std::min(sizeof piece, size - data.size()));
      if (got <= 0) break;
      data.append(piece, static_cast<size_t>(got));
    }
    return data;
  }

  std::string input_ = testing::TempDir() + "port_in_" + std::to_string(getpid());
  std::string output_ = testing::TempDir() + "port_out_" + std::to_string(getpid());
  UniqueFd to_port_;
  UniqueFd from_port_;
};
#endif

// An interface of the kernel's in a network namespace of the thread's own.
class KernelLink : public Link {
 public:
  std::string open(std::unique_ptr<FramePort>* port) override {
    if (unshare(CLONE_NEWNET) != 0) return "no network namespace may be made";
    if (access("/dev/net/tun", R_OK | W_OK) != 0) return "there is no /dev/net/tun";
    std::string failure = open_port(port);
    if (!failure.empty()) return failure;
    socket_.reset(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(kEtherType)));
    sockaddr_ll address = {};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(kEtherType);
    address.sll_ifindex = static_cast<int>(if_nametoindex("port0"));
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return "";
  }
  void send(const std::string& frame) override {
    ASSERT_EQ(write(socket_.get(), frame.data(), frame.size()), static_cast<ssize_t>(frame.size()));
  }
  // A packet socket also shows what it has sent itself.
  std::string receive() override {
    while (is_readable(socket_.get())) {
      char frame[4096];
      sockaddr_ll from = {};
      socklen_t size = sizeof from;
      const ssize_t got = recvfrom(socket_.get(), frame, sizeof frame, 0,
                                   reinterpret_cast<sockaddr*>(&from), &size);
      if (from.sll_pkttype != PACKET_OUTGOING) return {frame, static_cast<size_t>(got)};
    }
    return "";
  }

 private:
  static constexpr uint16_t kEtherType = 0x88b5;  // for experiments

  // Makes the port, whose interface is port0.
  virtual std::string open_port(std::unique_ptr<FramePort>* port) = 0;

  UniqueFd socket_;
};

class TapLink final : public KernelLink {
  std::string open_port(std::unique_ptr<FramePort>* port) override {
    return TapPort::open("port0", "", port);
  }
};

#if defined(WARPCACHE_HAVE_DPDK)
// DPDK's own TAP device.
class DpdkLink final : public KernelLink {
  std::string open_port(std::unique_ptr<FramePort>* port) override {
    std::vector<std::unique_ptr<FramePort>> ports;
    DpdkSettings settings;
    settings.device = "net_tap0,iface=port0";
    std::string failure;
    warpcache_open_dpdk_ports(settings, &ports, &failure);
    EXPECT_EQ(failure, "");
    if (failure.empty()) *port = std::move(ports.front());
    return failure;
  }
};
#endif

// Of the type that KernelLink asks for; the kernel's own frames are of others.
std::string frame_of(const std::string& text) {
  return std::string("\x02\0\0\0\0\1\x02\0\0\0\0\2\x88\xb5", 14) + text +
         std::string(60 - 14 - text.size(), '\0');
}

struct LinkKind {
  const char* name;
  std::function<std::unique_ptr<Link>()> make;
};

// How a failure names it.
void PrintTo(const LinkKind& kind, std::ostream* out) { *out << kind.name; }

class FramePortTest : public testing::TestWithParam<LinkKind> {
 protected:
  void SetUp() override {
    link_ = GetParam().make();
    const std::string why = link_->open(&port_);
    if (!why.empty()) GTEST_SKIP() << why;
  }
  // The next frames of the test's own type.
  std::vector<std::string> receive(size_t count, FrameMemory& memory) {
    std::vector<std::string> frames;
    while (frames.size() < count && port_->receive(memory.empty(), kPatienceMs)) {
      std::vector<ReceivedFrame> all;
      memory.take(all);
      if (all.empty()) break;
      for (const ReceivedFrame& frame : all) {
        if (frame.bytes.substr(12, 2) == "\x88\xb5") frames.push_back(frame.bytes);
      }
    }
    return frames;
  }

  std::unique_ptr<Link> link_;
  std::unique_ptr<FramePort> port_;
};

TEST_P(FramePortTest, ReceivesFramesInOrderAndInBursts) {
  std::vector<std::string> frames;
  for (int i = 0; i < 20; ++i) frames.push_back(frame_of("frame " + std::to_string(i)));
  FrameMemory memory(*port_, 7);
  for (const std::string& frame : frames) link_->send(frame);
  EXPECT_EQ(receive(frames.size(), memory), frames);
  EXPECT_GE(port_->counters().received.get(), 20u);
  EXPECT_GE(port_->counters().received_bytes.get(), 20u * 60);
}

TEST_P(FramePortTest, SendsFramesInOrder) {
  std::vector<std::string> frames;
  for (int i = 0; i < 20; ++i) frames.push_back(frame_of("reply " + std::to_string(i)));
  std::vector<TxFrame> sent;
  for (const std::string& frame : frames) sent.push_back({bytes_of(frame), 1});
  port_->send(0, sent.data(), static_cast<uint32_t>(sent.size()));
  for (const std::string& frame : frames) EXPECT_EQ(link_->receive(), frame);
  EXPECT_EQ(port_->counters().sent.get(), 20u);
  EXPECT_EQ(port_->counters().sent_bytes.get(), 20u * 60);
  EXPECT_EQ(port_->counters().send_failed.get(), 0u);
}

TEST_P(FramePortTest, WithoutFramesItGoesOn) {
  FrameMemory memory(*port_, 4);
  EXPECT_TRUE(port_->receive(memory.empty(), 0));
  EXPECT_TRUE(port_->receive(memory.empty(), 1));
}

TEST_P(FramePortTest, StopWakesIt) {
  std::thread stopper([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    port_->stop();
  });
  FrameMemory memory(*port_, 4);
  const auto begin = std::chrono::steady_clock::now();
  while (port_->receive(memory.empty(), kPatienceMs)) {
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(kPatienceMs));
  stopper.join();
  EXPECT_FALSE(port_->receive(memory.empty(), kPatienceMs));
  EXPECT_EQ(port_->failure(), "");
}

const LinkKind kLinks[] = {
#if defined(WARPCACHE_HAVE_PCAP)
    {"Pcap", [] { return std::make_unique<PcapLink>(); }},
#endif
    {"Tap", [] { return std::make_unique<TapLink>(); }},
#if defined(WARPCACHE_HAVE_DPDK)
    {"Dpdk", [] { return std::make_unique<DpdkLink>(); }},
#endif
};

INSTANTIATE_TEST_SUITE_P(All, FramePortTest, testing::ValuesIn(kLinks),
                         [](const auto& kind) { return kind.param.name; });

TEST(TapPortTest, SaysWhatIsWrong) {
  std::unique_ptr<FramePort> port;
  EXPECT_EQ(TapPort::open("a-name-that-is-too-long", "", &port),
            "tap:a-name-that-is-too-long: the name of an interface has 1 to 15 characters");
  if (unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "no network namespace may be made";
  if (access("/dev/net/tun", R_OK | W_OK) != 0) GTEST_SKIP() << "there is no /dev/net/tun";
  for (const char* const address : {"10.9.0.1", "10.9.0.1/33", "10.9.0.1/", "x/24", "/24"}) {
    EXPECT_EQ(TapPort::open("port0", address, &port),
              "tap:port0: \"" + std::string(address) +
                  "\" is not an address such as 10.9.0.1/24 or fd00::1/64");
  }
  EXPECT_NE(TapPort::open("lo", "", &port), "");
  EXPECT_EQ(port, nullptr);
}

}  // namespace
}  // namespace warpcache::io
