// SPDX-License-Identifier: Apache-2.0
#include "protocol/single_key/set.h"

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
using testing::compare_single_key_set;
using testing::Comparison;
using testing::kHeader;

std::string set_of(const std::string& key, const std::string& flags, const std::string& value) {
  return "set " + key + " " + flags + " 0 " + std::to_string(value.size()) + "\r\n" + value +
         "\r\n";
}

// If the fast path accepts the frame, it must agree with the general path. Returns whether it
// accepts it.
bool expect_same(const std::string& bytes) {
  const Comparison comparison = compare_single_key_set(bytes);
  EXPECT_EQ(comparison.difference, "") << ::testing::PrintToString(bytes);
  return comparison.taken;
}

TEST(SingleKeySet, EveryKeySizeIsAnsweredAsOnTheGeneralPath) {
  for (uint32_t size = 1; size <= kKeySizeMax; ++size) {
    for (const bool checksum : {false, true}) {
      for (const size_t padding : {size_t{0}, size_t{1}, size_t{7}}) {
        FrameForm form;
        form.checksum = checksum;
        form.padding = std::string(padding, '\n');
        const std::string payload = set_of(std::string(size, 'k'), std::to_string(size * 79190),
                                           std::string(size * 5 % 1100, 'v'));
        EXPECT_TRUE(expect_same(frame_of(kHeader + payload, form))) << size;
      }
    }
  }
}

TEST(SingleKeySet, LeavesAllElseToTheGeneralPath) {
  const auto takes = [](const std::string& payload) {
    return expect_same(frame_of(kHeader + payload));
  };
  EXPECT_TRUE(takes(set_of("k", "0", "")));
  EXPECT_TRUE(takes(set_of("k", "999999999", "\r\n\r\n")));
  EXPECT_TRUE(takes("set k 007 000 01\r\nv\r\n"));
  for (const char* payload : {"set k 0 0 1 noreply\r\nv\r\n",
                              "set k 0 1 1\r\nv\r\n",
                              "set k 0 -1 1\r\nv\r\n",
                              "set k 0 0 2\r\nv\r\n",
                              "set k 0 0 1\r\nvv\r\n",
                              "set k 0 0 1\nv\r\n",
                              "set k 0 0 1\r\nv\n",
                              "set  k 0 0 1\r\nv\r\n",
                              "set k  0 0 1\r\nv\r\n",
                              "set k 0 0  1\r\nv\r\n",
                              "set k 0 0 1 \r\nv\r\n",
                              "set k 0 0 -1\r\nv\r\n",
                              "set k -1 0 1\r\nv\r\n",
                              "set k 4294967295 0 1\r\nv\r\n",
                              "set k 0 0 1\r\nv\r\nget k\r\n",
                              "set k 0 0 1\r\nv",
                              "set k 0 0\r\n",
                              "set k 0 0 \r\n\r\n",
                              "add k 0 0 1\r\nv\r\n",
                              "cas k 0 0 1 5\r\nv\r\n",
                              "SET k 0 0 1\r\nv\r\n",
                              "ms k 1\r\nv\r\n",
                              "set ",
                              "set k\r\n 0 0 1\r\nv\r\n"}) {
    EXPECT_FALSE(takes(payload)) << payload;
  }
  EXPECT_FALSE(takes(set_of(std::string(kKeySizeMax + 1, 'k'), "0", "v")));
  EXPECT_FALSE(takes(set_of("", "0", "v")));
}

TEST(SingleKeySet, WhateverItTakesTheGeneralPathTakesToo) {
  std::mt19937_64 random(1);
  const auto payload = [](std::mt19937_64& dice) {
    return set_of(std::string(1 + dice() % 20, 'k'), std::to_string(dice() % 1000 >> dice() % 10),
                  std::string(dice() % 12, 'v'));
  };
  const uint32_t rounds = testing_effort(100000u, 300000u);
  uint32_t taken = 0;
  for (uint32_t round = 0; round < rounds && !HasFailure(); ++round) {
    if (expect_same(testing::damaged_frame(random, payload))) ++taken;
  }
  EXPECT_GT(taken, rounds / 6);
}

}  // namespace
}  // namespace warpcache::protocol
