// SPDX-License-Identifier: Apache-2.0
//
// The parsers of the single-key fast path against framing and parsing, on payloads that are put
// together of what a line may hold. get_test.cc and set_test.cc damage whole frames; the fuzz
// target single_key makes the same comparison.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/testing/effort.h"
#include "protocol/testing/single_key.h"

namespace warpcache::protocol {
namespace {

using net::testing::frame_of;
using net::testing::FrameForm;
using testing::compare_single_key_get;
using testing::compare_single_key_set;
using testing::Comparison;
using testing::kHeader;

// Both parsers agree with the general path, and not both take the frame. Returns whether one does.
bool expect_agreement(const std::string& payload, const FrameForm& form = {},
                      uint32_t item_size_max = 1 << 20) {
  const std::string frame = frame_of(kHeader + payload, form);
  const Comparison get = compare_single_key_get(frame, 7, "value");
  const Comparison set = compare_single_key_set(frame, item_size_max);
  EXPECT_EQ(get.difference, "") << ::testing::PrintToString(payload);
  EXPECT_EQ(set.difference, "") << ::testing::PrintToString(payload);
  EXPECT_FALSE(get.taken && set.taken) << ::testing::PrintToString(payload);
  return get.taken || set.taken;
}

using Dice = std::mt19937_64;

template <size_t kSize>
std::string one_of(Dice& dice, const char* const (&texts)[kSize]) {
  return texts[dice() % kSize];
}

// Usually one blank.
std::string blank(Dice& dice) {
  return dice() % 12 != 0 ? " " : one_of(dice, {"", "  ", "\t", "\r", "\n", " \r\n"});
}

std::string key(Dice& dice) {
  std::string text(1 + dice() % (dice() % 8 == 0 ? 260 : 12), 'k');
  if (dice() % 6 == 0) {
    text[dice() % text.size()] = "\t\r\0\n \x7f\x80\xff"[dice() % 8];
  }
  return text;
}

std::string number(Dice& dice, uint64_t usual) {
  if (dice() % 8 != 0)
    return std::string(dice() % 4 == 0 ? dice() % 9 : 0, '0') + std::to_string(usual);
  return one_of(dice, {"", "-1", "+1", "1x", "x", "999999999", "1000000000", "4294967295",
                       "4294967296", "18446744073709551616", "2147483646", "000000000000"});
}

std::string line_end(Dice& dice) {
  return dice() % 12 != 0 ? "\r\n" : one_of(dice, {"\n", "\r", "", "\r\r\n", " \r\n", "\n\r\n"});
}

std::string get_of(Dice& dice) {
  std::string payload = dice() % 12 != 0 ? "get" : one_of(dice, {"gets", "GET", "gat", "mg", "ge"});
  payload += blank(dice) + key(dice);
  if (dice() % 12 == 0) payload += blank(dice) + key(dice);
  return payload + line_end(dice);
}

std::string set_of(Dice& dice) {
  const std::string value(dice() % (dice() % 8 == 0 ? 1200 : 12), dice() % 8 == 0 ? '\n' : 'v');
  std::string payload =
      dice() % 12 != 0 ? "set" : one_of(dice, {"add", "SET", "cas", "ms", "setx"});
  payload += blank(dice) + key(dice) + blank(dice) + number(dice, dice() % 100000) + blank(dice);
  payload += dice() % 8 != 0 ? "0" : number(dice, dice() % 100);
  const uint64_t wrong = dice() % 12 == 0 ? dice() % 4 : 0;
  payload += blank(dice) + number(dice, value.size() + wrong);
  if (dice() % 12 == 0) payload += blank(dice) + one_of(dice, {"noreply", "norepl", "1", "x"});
  return payload + line_end(dice) + value + line_end(dice);
}

TEST(SingleKeyAgreement, OfRandomLines) {
  Dice dice(1);
  const uint32_t rounds = testing_effort(80000u, 200000u);
  uint32_t taken = 0;
  for (uint32_t round = 0; round < rounds && !HasFailure(); ++round) {
    FrameForm form;
    form.checksum = dice() % 2 == 0;
    form.padding = std::string(dice() % 4, '\n');
    std::string payload = dice() % 2 == 0 ? get_of(dice) : set_of(dice);
    if (dice() % 12 == 0) payload += dice() % 2 == 0 ? get_of(dice) : set_of(dice);
    const uint32_t item_size_max =
        dice() % 4 != 0 ? 1 << 20 : 100 + static_cast<uint32_t>(dice() % 400);
    if (expect_agreement(payload, form, item_size_max)) ++taken;
  }
  EXPECT_GT(taken, rounds / 4);
}

TEST(SingleKeyAgreement, OfEveryByteAtEveryPlace) {
  for (const std::string& whole :
       {std::string("get key\r\n"), std::string("set key 1 0 2\r\nvv\r\n")}) {
    EXPECT_TRUE(expect_agreement(whole));
    for (size_t at = 0; at < whole.size() && !HasFailure(); ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string changed = whole;
        changed[at] = static_cast<char>(byte);
        (void)expect_agreement(changed);
        changed = whole;
        changed.insert(at, 1, static_cast<char>(byte));
        (void)expect_agreement(changed);
      }
      (void)expect_agreement(whole.substr(0, at));
      (void)expect_agreement(whole.substr(0, at) + whole.substr(at + 1));
    }
  }
}

// A frame that ends in the middle of a line end, at every alignment: sanitizers notice a read
// beyond its end.
TEST(SingleKeyAgreement, OfFramesThatEndAnywhere) {
  const std::string whole = "set kkkkkkkk 1 0 2\r\nvv\r\n";
  for (size_t key_size = 1; key_size <= 8; ++key_size) {
    const std::string payload = "set " + whole.substr(4 + 8 - key_size);
    for (size_t size = 0; size < payload.size(); ++size) {
      EXPECT_FALSE(expect_agreement(payload.substr(0, size)));
    }
  }
}

TEST(SingleKeyAgreement, TheComparisonNoticesADifference) {
  // The general path refuses an item that the fast path was asked to take.
  testing::Aligned frame(frame_of(kHeader + "set k 0 0 1\r\nv\r\n"));
  FrameLimits limits = testing::packet_limits();
  limits.item_size_max = 10;
  Comparison comparison;
  testing::expect_plain(testing::general_path(frame, limits), Op::kSet, 0, comparison);
  EXPECT_EQ(comparison.difference, "status, bits");
}

}  // namespace
}  // namespace warpcache::protocol
