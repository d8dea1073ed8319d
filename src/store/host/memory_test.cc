// SPDX-License-Identifier: Apache-2.0
#include "store/host/memory.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

namespace warpcache::store {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// What /proc says about huge pages at `address`; "" where it says nothing.
std::string huge_page_flag(const uint8_t* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      here = begin <= wanted && wanted < end;
    } else if (here && line.starts_with("VmFlags:")) {
      if (line.find(" nh") != std::string::npos) return "no";
      return line.find(" hg") != std::string::npos ? "yes" : "";
    }
  }
  return "";
}

TEST(MemoryTest, WhatIsDroppedIsNotFilledAgainByHugePages) {
  Mapping mapping;
  ASSERT_TRUE(mapping.map(16 * kMiB, true));
  uint8_t* const data = mapping.data();
  if (huge_page_flag(data).empty()) GTEST_SKIP() << "this system has no huge pages";
  std::memset(data, 1, 16 * kMiB);
  mapping.drop(5 * kMiB, kMiB / 2);
  EXPECT_EQ(huge_page_flag(data + 5 * kMiB), "no");
  EXPECT_EQ(data[5 * kMiB], 0);
  EXPECT_EQ(data[5 * kMiB - 1], 1);
  EXPECT_EQ(huge_page_flag(data + 5 * kMiB - 1), "yes");
  EXPECT_EQ(huge_page_flag(data + 5 * kMiB + kMiB / 2), "yes");
  mapping.ask_for_huge_pages(16 * kMiB);
  EXPECT_EQ(huge_page_flag(data + 5 * kMiB), "yes");
}

TEST(MemoryTest, WithoutHugePagesNoneAreAskedFor) {
  Mapping mapping;
  ASSERT_TRUE(mapping.map(16 * kMiB, false));
  mapping.ask_for_huge_pages(16 * kMiB);
  EXPECT_EQ(huge_page_flag(mapping.data()), "");
}

}  // namespace
}  // namespace warpcache::store
