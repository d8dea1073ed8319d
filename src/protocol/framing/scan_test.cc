// SPDX-License-Identifier: Apache-2.0
#include "protocol/framing/scan.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "protocol/testing/messages.h"

namespace warpcache::protocol {
namespace {

using testing::HeapCopy;

LineScan naive_scan(Bytes input, size_t at, uint32_t limit) {
  LineScan scan;
  for (size_t i = at; i < input.size && i - at < limit; ++i) {
    const size_t index = i - at;
    if (input.data[i] == ' ' && index < 64) scan.blanks |= uint64_t{1} << index;
    if (input.data[i] == '\n') {
      scan.size = static_cast<uint32_t>(index + 1);
      break;
    }
  }
  return scan;
}

size_t naive_find(Bytes input, size_t at, bool blanks) {
  while (at < input.size && input.data[at] != '\n' && !(blanks && input.data[at] == ' ')) ++at;
  return at;
}

bool naive_longer_word(Bytes input, size_t at, uint32_t count) {
  uint32_t run = 0;
  for (; at < input.size; ++at) {
    run = input.data[at] == ' ' ? 0 : run + 1;
    if (run > count) return true;
  }
  return false;
}

std::string random_text(std::mt19937& random, size_t size, uint32_t newline_odds) {
  std::string text(size, 'x');
  for (char& c : text) {
    if (random() % newline_odds == 0) c = '\n';
    if (random() % 9 == 0) c = ' ';
    if (random() % 50 == 0) c = '\r';
  }
  return text;
}

void expect_like_naive(const std::string& text, size_t at) {
  HeapCopy copy(text);
  const Bytes input = copy.bytes();
  const uint8_t* const begin = input.data;
  const uint8_t* const end = begin + input.size;
  for (const uint32_t limit : {17u, 33u, 65u, 257u, 2049u}) {
    const LineScan expected = naive_scan(input, at, limit);
    const LineScan scan = scan_line(begin, begin + at, end, limit);
    ASSERT_EQ(scan.size, expected.size) << text << " at " << at << " limit " << limit;
    if (expected.size != 0) {
      ASSERT_EQ(scan.blanks, expected.blanks) << text << " at " << at;
    }
  }
  ASSERT_EQ(find_delimiter(begin, begin + at, end), begin + naive_find(input, at, true));
  ASSERT_EQ(find_newline(begin, begin + at, end), begin + naive_find(input, at, false));
  for (const uint32_t count : {15u, 16u, 40u, 250u}) {
    ASSERT_EQ(has_longer_word(begin, begin + at, end, count), naive_longer_word(input, at, count))
        << text << " at " << at << " count " << count;
  }
}

TEST(Scan, LikeNaiveOnAllShortSizes) {
  std::mt19937 random(1);
  for (size_t size = 1; size <= 80; ++size) {
    for (int round = 0; round < 20; ++round) {
      const std::string text = random_text(random, size, 20);
      for (size_t at = 0; at < size; ++at) expect_like_naive(text, at);
    }
  }
}

TEST(Scan, LikeNaiveOnLongTexts) {
  std::mt19937 random(2);
  for (int round = 0; round < 3000; ++round) {
    const uint32_t odds = round % 3 == 0 ? 100 : 5000;
    const std::string text = random_text(random, 1 + random() % 3000, odds);
    expect_like_naive(text, random() % text.size());
  }
}

TEST(Scan, LongestWordToTheByte) {
  for (size_t front = 0; front < 40; ++front) {
    for (const size_t size : {249u, 250u, 251u, 266u}) {
      const std::string text = std::string(front, 'a') + " " + std::string(size, 'b') + " c";
      HeapCopy copy(text);
      const Bytes input = copy.bytes();
      EXPECT_EQ(has_longer_word(input.data, input.data, input.data + input.size, 250), size > 250)
          << front << " " << size;
    }
  }
}

TEST(Scan, MasksLikeScalar) {
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    HeapCopy copy(random_text(random, 1 + random() % 40, 6));
    const Bytes input = copy.bytes();
    const uint8_t* const at = input.data + random() % input.size;
    const uint8_t* const end = input.data + input.size;
    const auto left = static_cast<uint32_t>(end - at);
    const scan_detail::Masks expected = scan_detail::masks_scalar(at, left < 16 ? left : 16);
    const scan_detail::Masks masks = scan_detail::masks_at(input.data, at, end);
    ASSERT_EQ(masks.blanks, expected.blanks);
    ASSERT_EQ(masks.newlines, expected.newlines);
  }
}

}  // namespace
}  // namespace warpcache::protocol
