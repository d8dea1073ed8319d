// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace warpcache {
namespace {

std::string encode(const std::string& text) {
  std::string out(base64_size(text.size()), '?');
  uint8_t* begin = reinterpret_cast<uint8_t*>(out.data());
  EXPECT_EQ(base64_encode(bytes_of(text), begin), begin + out.size());
  return out;
}

// "!" for what is not valid.
std::string decode_in_place(std::string text) {
  const size_t expected = base64_decode(bytes_of(text), nullptr);
  const size_t size = base64_decode(bytes_of(text), reinterpret_cast<uint8_t*>(text.data()));
  EXPECT_EQ(size, expected);
  return size == 0 ? "!" : text.substr(0, size);
}

TEST(Base64, Vectors) {
  const char* const pairs[][2] = {{"f", "Zg=="},         {"fo", "Zm8="},
                                  {"foo", "Zm9v"},       {"foob", "Zm9vYg=="},
                                  {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
  for (const auto& pair : pairs) {
    EXPECT_EQ(encode(pair[0]), pair[1]);
    EXPECT_EQ(decode_in_place(pair[1]), pair[0]);
  }
  EXPECT_EQ(encode(""), "");
}

TEST(Base64, RandomRoundTrip) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string text(1 + random() % 250, ' ');
    for (char& c : text) c = static_cast<char>(random());
    const std::string coded = encode(text);
    ASSERT_EQ(decode_in_place(coded), text);
    ASSERT_LT(text.size(), coded.size());
  }
}

TEST(Base64, RefusesWhatIsNotInGroupsOfFour) {
  for (const char* text : {"", "Z", "Zg", "Zm9", "Zm9vY", "\r\n", "!!!!", "Z===", "===="}) {
    EXPECT_EQ(decode_in_place(text), "!") << text;
  }
}

TEST(Base64, PassesOverOtherBytesAndStopsAtPadding) {
  EXPECT_EQ(decode_in_place("Zm-9_v"), "foo");
  EXPECT_EQ(decode_in_place("Zg==Zm9v"), "f");
}

}  // namespace
}  // namespace warpcache
