// SPDX-License-Identifier: Apache-2.0
#include "protocol/single_key/get.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/testing/effort.h"
#include "protocol/testing/single_key.h"

namespace warpcache::protocol {
namespace {

using net::testing::frame_of;
using net::testing::FrameForm;
using net::testing::kTestPort;
using testing::compare_single_key_get;
using testing::Comparison;
using testing::kHeader;

// If the fast path accepts the frame, it must agree with the general path. Returns whether it
// accepts it.
bool expect_same(const std::string& bytes, uint32_t client_flags, const std::string& value) {
  const Comparison comparison = compare_single_key_get(bytes, client_flags, value);
  EXPECT_EQ(comparison.difference, "") << ::testing::PrintToString(bytes);
  return comparison.taken;
}

TEST(SingleKeyGet, EveryKeySizeIsAnsweredAsOnTheGeneralPath) {
  for (uint32_t size = 1; size <= kKeySizeMax; ++size) {
    for (const bool checksum : {false, true}) {
      for (const size_t padding : {size_t{0}, size_t{1}, size_t{2}, size_t{7}}) {
        FrameForm form;
        form.checksum = checksum;
        form.padding = std::string(padding, '\n');
        const std::string frame =
            frame_of(kHeader + "get " + std::string(size, 'k') + "\r\n", form);
        EXPECT_TRUE(expect_same(frame, size * 7919, std::string(size * 5 % 1300, 'v'))) << size;
      }
    }
  }
}

TEST(SingleKeyGet, LeavesAllElseToTheGeneralPath) {
  const auto takes = [](const std::string& payload, const FrameForm& form = {}) {
    return expect_same(frame_of(kHeader + payload, form), 0, "v");
  };
  EXPECT_TRUE(takes("get k\r\n"));
  for (const char* payload :
       {"get \r\n", "get k", "get k\r", "get k\n", "get k \r\n", "get a b\r\n", "get  k\r\n",
        "gets k\r\n", "get k\r\nget k\r\n", "get\r\n", "mg k v\r\n", "GET k\r\n", "", "g"}) {
    EXPECT_FALSE(takes(payload)) << payload;
  }
  EXPECT_FALSE(takes("get " + std::string(kKeySizeMax + 1, 'k') + "\r\n"));
  FrameForm form;
  form.ipv6 = true;
  EXPECT_FALSE(takes("get k\r\n", form));
  form = {};
  form.vlan_tags = {0x8100};
  EXPECT_FALSE(takes("get k\r\n", form));
  form = {};
  form.ip_options = std::string(4, '\1');
  EXPECT_FALSE(takes("get k\r\n", form));
  form = {};
  form.source_port = 0;
  EXPECT_FALSE(takes("get k\r\n", form));
  form.source_port = 40000;
  form.destination_port = 11212;
  EXPECT_FALSE(takes("get k\r\n", form));
  EXPECT_FALSE(expect_same(frame_of(std::string("\0\0\0\0\0\2\0\0get k\r\n", 15)), 0, "v"));
}

TEST(SingleKeyGet, WhateverItTakesTheGeneralPathTakesToo) {
  std::mt19937_64 random(1);
  const auto payload = [](std::mt19937_64& dice) {
    const std::string one = "get " + std::string(1 + dice() % 20, 'k') + "\r\n";
    return dice() % 4 == 0 ? one + "get k\r\n" : one;
  };
  const uint32_t rounds = testing_effort(100000u, 300000u);
  uint32_t taken = 0;
  for (uint32_t round = 0; round < rounds && !HasFailure(); ++round) {
    const std::string frame = testing::damaged_frame(random, payload);
    if (expect_same(frame, static_cast<uint32_t>(random() >> random() % 64), "value")) ++taken;
  }
  EXPECT_GT(taken, rounds / 6);
}

}  // namespace
}  // namespace warpcache::protocol
