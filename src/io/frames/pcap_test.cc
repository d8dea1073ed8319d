// SPDX-License-Identifier: Apache-2.0
#include "io/frames/pcap.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace warpcache::io {
namespace {

std::string text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data), bytes.size}; }

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
    put32(magic).put16(version).put16(4).put32(0).put32(0).put32(65535);
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

TEST(Pcap, BothByteOrdersAndResolutions) {
  for (const bool big_endian : {false, true}) {
    for (const bool nanoseconds : {false, true}) {
      Builder builder(big_endian);
      builder.header(nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4, 2, 0x14000001);
      builder.record(1, 5, "first frame").record(0xffffffff, 999'999, "");
      FrameList frames;
      ASSERT_EQ(read_pcap(bytes_of(builder.file), frames), "");
      ASSERT_EQ(frames.size(), 2u);
      const uint64_t tick_ns = nanoseconds ? 1 : 1000;
      EXPECT_EQ(text_of(frames[0]), "first frame");
      EXPECT_EQ(frames.time_ns(0), 1'000'000'000 + 5 * tick_ns);
      EXPECT_EQ(frames[1].size, 0u);
      EXPECT_EQ(frames.time_ns(1), 0xffffffff * uint64_t{1'000'000'000} + 999'999 * tick_ns);
    }
  }
}

TEST(Pcap, WhatIsWrittenIsRead) {
  FrameList frames;
  frames.add(bytes_of("one"), 1'234'567'890'123);
  frames.add(bytes_of(std::string(70000, 'x')), 7);
  const std::string path = testing::TempDir() + "pcap_test_" + std::to_string(getpid());
  ASSERT_EQ(write_pcap_file(path, frames), "");
  FrameList back;
  ASSERT_EQ(read_pcap_file(path, back), "");
  std::remove(path.c_str());
  ASSERT_EQ(back.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(text_of(back[i]), text_of(frames[i]));
    EXPECT_EQ(back.time_ns(i), frames.time_ns(i));
  }
}

// The words of most failures are libpcap's.
TEST(Pcap, WhatIsNoPcapFile) {
  const auto failure_of = [](const std::string& file) {
    FrameList frames;
    std::string failure = read_pcap(bytes_of(file), frames);
    EXPECT_TRUE(frames.empty());
    return failure;
  };
  EXPECT_EQ(failure_of(""), "an empty file");
  EXPECT_NE(failure_of("short"), "");
  EXPECT_NE(failure_of(std::string(24, 'x')), "");
  EXPECT_NE(failure_of(Builder(true).header(0xa1b2c3d4, 3).file), "");
  EXPECT_EQ(failure_of(Builder(false).header(0xa1b2c3d4, 2, 113).file),
            "link type 113 is not Ethernet (1)");
}

TEST(Pcap, FaultsInTheMiddle) {
  Builder builder(false);
  builder.header(0xa1b2c3d4).record(1, 1, "first").record(1, 2, "second");
  const size_t first_end = 24 + 16 + 5;
  for (size_t size = first_end; size <= builder.file.size(); ++size) {
    FrameList frames;
    const std::string failure = read_pcap(bytes_of(builder.file.substr(0, size)), frames);
    const bool whole = size == first_end || size == builder.file.size();
    EXPECT_EQ(failure.empty(), whole) << size;
    EXPECT_EQ(frames.size(), size == builder.file.size() ? 2u : 1u);
  }
  builder.put32(1).put32(1).put32(0x7fffffff).put32(0x7fffffff);
  FrameList frames;
  EXPECT_NE(read_pcap(bytes_of(builder.file), frames), "");
  EXPECT_EQ(frames.size(), 2u);
}

TEST(Pcap, FilesThatAreNotThere) {
  FrameList frames;
  EXPECT_EQ(read_pcap_file("/nothing/here", frames), "/nothing/here: No such file or directory");
  EXPECT_EQ(write_pcap_file("/nothing/here", frames), "/nothing/here: No such file or directory");
  EXPECT_EQ(read_pcap_file("/", frames).rfind("/: ", 0), 0u);
}

}  // namespace
}  // namespace warpcache::io
