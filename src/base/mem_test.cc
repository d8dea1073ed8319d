// SPDX-License-Identifier: Apache-2.0
#include "base/mem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace warpcache {
namespace {

TEST(Mem, EqualFindsEveryDifferingByte) {
  for (size_t size = 0; size <= 260; ++size) {
    std::vector<uint8_t> a(size);
    std::mt19937 random(static_cast<uint32_t>(size));
    for (uint8_t& byte : a) byte = static_cast<uint8_t>(random());
    std::vector<uint8_t> b = a;
    EXPECT_TRUE(mem_equal(a.data(), b.data(), size)) << size;
    for (size_t at = 0; at < size; ++at) {
      b[at] ^= 1;
      EXPECT_FALSE(mem_equal(a.data(), b.data(), size)) << size << " at " << at;
      b[at] ^= 1;
    }
  }
}

TEST(Mem, CopiesOfEverySizeAreWhole) {
  std::mt19937 random(1);
  for (size_t size = 0; size <= 300; ++size) {
    std::vector<uint8_t> from(size);
    for (uint8_t& byte : from) byte = static_cast<uint8_t>(random());
    using Copy = void (*)(void*, const void*, size_t);
    for (const Copy copy : {Copy{mem_copy_short}, Copy{mem_copy_often_short}}) {
      std::vector<uint8_t> to(size + 2, 0xa5);
      copy(to.data() + 1, from.data(), size);
      EXPECT_EQ(to.front(), 0xa5) << size;
      EXPECT_EQ(to.back(), 0xa5) << size;
      EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin() + 1)) << size;
    }
  }
}

template <size_t kWords>
void expect_zeroed_alone() {
  struct Object {
    uint64_t words[kWords];
  };
  struct {
    uint64_t before = ~uint64_t{0};
    Object object;
    uint64_t after = ~uint64_t{0};
  } all;
  for (uint64_t& word : all.object.words) word = ~uint64_t{0};
  set_zero(all.object);
  EXPECT_EQ(all.before, ~uint64_t{0}) << kWords;
  EXPECT_EQ(all.after, ~uint64_t{0}) << kWords;
  for (const uint64_t word : all.object.words) EXPECT_EQ(word, 0u) << kWords;
}

TEST(Mem, ZeroesAnObjectAndNothingElse) {
  expect_zeroed_alone<2>();
  expect_zeroed_alone<11>();
  expect_zeroed_alone<32>();
}

TEST(Mem, CopyTakesNullForNothing) {
  uint8_t to[3] = {1, 2, 3};
  mem_copy(to, nullptr, 0);
  mem_copy(nullptr, nullptr, 0);
  EXPECT_EQ(to[0], 1);
  mem_copy(to, "xyz", 3);
  EXPECT_EQ(std::memcmp(to, "xyz", 3), 0);
}

TEST(Mem, LiteralsLeaveTheirTerminatorOut) {
  uint8_t out[8] = {};
  EXPECT_EQ(put(out, "END"), out + 3);
  EXPECT_EQ(out[3], 0);
  EXPECT_TRUE(equal(Bytes{out, 3}, "END"));
  EXPECT_FALSE(equal(Bytes{out, 2}, "END"));
  EXPECT_FALSE(equal(Bytes{out, 3}, "ENd"));
  EXPECT_EQ(put(out, Bytes{}), out);
}

TEST(Mem, BigEndianRoundTrip) {
  uint8_t bytes[8];
  store_big64(bytes, 0x0102030405060708u);
  EXPECT_EQ(bytes[0], 1);
  EXPECT_EQ(bytes[7], 8);
  EXPECT_EQ(load_big64(bytes), 0x0102030405060708u);
  EXPECT_EQ(load_big32(bytes), 0x01020304u);
  EXPECT_EQ(load_big16(bytes + 1), 0x0203u);
  store_big32(bytes + 1, 0xa0b0c0d0u);
  EXPECT_EQ(load_big32(bytes + 1), 0xa0b0c0d0u);
  store_big16(bytes + 1, 0xbeefu);
  EXPECT_EQ(bytes[1], 0xbe);
}

}  // namespace
}  // namespace warpcache
