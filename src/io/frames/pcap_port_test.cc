// SPDX-License-Identifier: Apache-2.0
#include "io/frames/pcap_port.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "io/frames/testing/received.h"

namespace warpcache::io {
namespace {

// A file of 32-bit numbers and the frames between them, in either byte order.
class Builder {
 public:
  explicit Builder(bool big_endian) : big_endian_(big_endian) {}

  Builder& put16(uint32_t value) {
    const auto high = static_cast<char>(value >> 8);
    const auto low = static_cast<char>(value);
    file += big_endian_ ? std::string{high, low} : std::string{low, high};
    return *this;
  }
  Builder& put32(uint32_t value) {
    return big_endian_ ? put16(value >> 16).put16(value) : put16(value).put16(value >> 16);
  }
  Builder& header(uint32_t magic, uint32_t version = 2, uint32_t link_type = 1) {
    put32(magic).put16(version).put16(4).put32(0).put32(0).put32(262144);
    return put32(link_type);
  }
  Builder& record(uint32_t seconds, uint32_t fraction, const std::string& frame) {
    const auto size = static_cast<uint32_t>(frame.size());
    put32(seconds).put32(fraction).put32(size).put32(size + 7);
    file += frame;
    return *this;
  }

  std::string file;

 private:
  bool big_endian_;
};

class PcapPortTest : public testing::Test {
 protected:
  void TearDown() override {
    std::remove(input_.c_str());
    std::remove(output_.c_str());
  }

  // Opens a port that reads `file`; returns what is wrong.
  std::string open(const std::string& file) {
    std::ofstream(input_, std::ios::binary) << file;
    return PcapPort::open(input_, output_, &port_);
  }
  // The frames of the input up to its end, or up to a fault.
  std::vector<ReceivedFrame> receive_all() {
    FrameMemory memory(*port_, 4);
    std::vector<ReceivedFrame> frames;
    bool more = true;
    while (more) {
      more = port_->receive(memory.empty(), 0);
      memory.take(frames);
    }
    return frames;
  }

  std::string input_ = testing::TempDir() + "pcap_in_" + std::to_string(getpid());
  std::string output_ = testing::TempDir() + "pcap_out_" + std::to_string(getpid());
  std::unique_ptr<FramePort> port_;
};

TEST_F(PcapPortTest, BothByteOrdersAndResolutions) {
  for (const bool big_endian : {false, true}) {
    for (const bool nanoseconds : {false, true}) {
      Builder builder(big_endian);
      builder.header(nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4, 2, 0x14000001);
      builder.record(1, 5, "first frame").record(0xffffffff, 999'999, "");
      ASSERT_EQ(open(builder.file), "");
      const std::vector<ReceivedFrame> frames = receive_all();
      EXPECT_EQ(port_->failure(), "");
      ASSERT_EQ(frames.size(), 2u);
      const uint64_t tick_ns = nanoseconds ? 1 : 1000;
      EXPECT_EQ(frames[0].bytes, "first frame");
      EXPECT_EQ(frames[0].time_ns, 1'000'000'000 + 5 * tick_ns);
      EXPECT_EQ(frames[1].bytes.size(), 0u);
      EXPECT_EQ(frames[1].time_ns, 0xffffffff * uint64_t{1'000'000'000} + 999'999 * tick_ns);
    }
  }
}

TEST_F(PcapPortTest, WhatIsSentIsReadBack) {
  const std::vector<ReceivedFrame> sent = {{"one", 1'234'567'890'123},
                                           {std::string(60000, 'x'), 7}};
  ASSERT_EQ(open(Builder(false).header(0xa1b2c3d4).file), "");
  std::vector<TxFrame> frames;
  for (const ReceivedFrame& frame : sent) frames.push_back({bytes_of(frame.bytes), frame.time_ns});
  port_->send(frames.data(), 2);
  EXPECT_EQ(port_->counters().sent.get(), 2u);
  std::ifstream stream(output_, std::ios::binary);
  const std::string written{std::istreambuf_iterator<char>(stream), {}};
  ASSERT_EQ(open(written), "");
  const std::vector<ReceivedFrame> back = receive_all();
  ASSERT_EQ(back.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(back[i].bytes, sent[i].bytes);
    EXPECT_EQ(back[i].time_ns, sent[i].time_ns);
  }
}

// The words of most failures are libpcap's.
TEST_F(PcapPortTest, WhatIsNoPcapFile) {
  EXPECT_NE(open(""), "");
  EXPECT_NE(open("short"), "");
  EXPECT_NE(open(std::string(24, 'x')), "");
  EXPECT_NE(open(Builder(true).header(0xa1b2c3d4, 3).file), "");
  EXPECT_EQ(open(Builder(false).header(0xa1b2c3d4, 2, 113).file),
            input_ + ": link type 113 is not Ethernet (1)");
  EXPECT_EQ(port_, nullptr);
}

TEST_F(PcapPortTest, FaultsInTheMiddle) {
  Builder builder(false);
  builder.header(0xa1b2c3d4).record(1, 1, "first").record(1, 2, "second");
  const size_t first_end = 24 + 16 + 5;
  for (size_t size = first_end; size <= builder.file.size(); ++size) {
    ASSERT_EQ(open(builder.file.substr(0, size)), "");
    const size_t count = receive_all().size();
    const bool whole = size == first_end || size == builder.file.size();
    EXPECT_EQ(port_->failure().empty(), whole) << size;
    EXPECT_EQ(count, size == builder.file.size() ? 2u : 1u);
  }
  builder.put32(1).put32(1).put32(0x7fffffff).put32(0x7fffffff);
  ASSERT_EQ(open(builder.file), "");
  EXPECT_EQ(receive_all().size(), 2u);
  EXPECT_EQ(port_->failure().rfind(input_ + ": ", 0), 0u);
}

// libpcap takes longer frames than a burst has space for.
TEST_F(PcapPortTest, FramesThatAreTooLongAreCounted) {
  Builder builder(false);
  builder.header(0xa1b2c3d4).record(1, 1, std::string(100'000, 'x')).record(1, 2, "second");
  ASSERT_EQ(open(builder.file), "");
  const std::vector<ReceivedFrame> frames = receive_all();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].bytes, "second");
  EXPECT_EQ(port_->counters().receive_failed.get(), 1u);
}

TEST_F(PcapPortTest, FilesThatAreNotThere) {
  EXPECT_EQ(PcapPort::open("/nothing/here", output_, &port_),
            "/nothing/here: No such file or directory");
  std::ofstream(input_, std::ios::binary) << Builder(false).header(0xa1b2c3d4).file;
  EXPECT_EQ(PcapPort::open(input_, "/nothing/here", &port_),
            "/nothing/here: No such file or directory");
  EXPECT_EQ(PcapPort::open(input_, "/", &port_).rfind("/: ", 0), 0u);
}

}  // namespace
}  // namespace warpcache::io
