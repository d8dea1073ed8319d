// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

namespace warpcache {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The lenient rules, written with the C library.
bool library_u64(const std::string& text, uint64_t& out) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(text.c_str(), &end, 10);
  if (errno == ERANGE || end == text.c_str() || (*end != '\0' && !is_space(*end))) return false;
  if (static_cast<long long>(value) < 0 && text.find('-') < static_cast<size_t>(end - text.c_str()))
    return false;
  out = value;
  return true;
}

bool library_i32(const std::string& text, int32_t& out) {
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (errno == ERANGE || end == text.c_str() || (*end != '\0' && !is_space(*end))) return false;
  out = static_cast<int32_t>(value);
  return true;
}

void expect_like_library(const std::string& text) {
  uint64_t expected = 7;
  uint64_t value = 7;
  EXPECT_EQ(parse_u64(bytes_of(text), value), library_u64(text, expected)) << '"' << text << '"';
  EXPECT_EQ(value, expected) << '"' << text << '"';
  int32_t expected_i32 = 7;
  int32_t value_i32 = 7;
  EXPECT_EQ(parse_i32(bytes_of(text), value_i32), library_i32(text, expected_i32))
      << '"' << text << '"';
  EXPECT_EQ(value_i32, expected_i32) << '"' << text << '"';
}

TEST(Number, LenientAsTheCLibrary) {
  for (const char* text : {"",
                           " ",
                           "0",
                           "1",
                           "-0",
                           "+0",
                           "+1",
                           "-1",
                           "+-1",
                           "--1",
                           "-",
                           "+",
                           "12a",
                           "a12",
                           "12 ",
                           "12 a",
                           "12\ta",
                           "  12",
                           "\t\r\n12",
                           "00000000000000000000000000012",
                           "18446744073709551615",
                           "18446744073709551616",
                           "-18446744073709551615",
                           "-18446744073709551616",
                           "9223372036854775807",
                           "9223372036854775808",
                           "-9223372036854775807",
                           "-9223372036854775808",
                           "-9223372036854775809",
                           "4294967295",
                           "4294967296",
                           "-4294967297",
                           "99999999999999999999",
                           "0x10",
                           "1.5",
                           "1e3",
                           "12\r",
                           "12-",
                           "1 -2"}) {
    expect_like_library(text);
  }
}

TEST(Number, LenientAsTheCLibraryOnRandomText) {
  const char alphabet[] = "0123456789 -+\ta9";
  std::mt19937 random(1);
  for (int round = 0; round < 200000; ++round) {
    std::string text(random() % 23, ' ');
    for (char& c : text) c = alphabet[random() % (sizeof(alphabet) - 1)];
    expect_like_library(text);
  }
}

TEST(Number, Lenient32BitIsCut) {
  uint32_t value = 0;
  EXPECT_TRUE(parse_u32(bytes_of("4294967295"), value));
  EXPECT_EQ(value, 4294967295u);
  EXPECT_TRUE(parse_u32(bytes_of("4294967296"), value));
  EXPECT_EQ(value, 0u);
  EXPECT_FALSE(parse_u32(bytes_of("-1"), value));
}

template <typename T, typename Parse>
void expect_strict(Parse parse, const std::string& text, bool valid, T expected = 0) {
  T value = 0;
  EXPECT_EQ(parse(bytes_of(text), value), valid) << '"' << text << '"';
  EXPECT_EQ(value, valid ? expected : 0) << '"' << text << '"';
}

TEST(Number, Strict) {
  expect_strict<uint32_t>(parse_u32_strict, "4294967295", true, 4294967295u);
  expect_strict<uint32_t>(parse_u32_strict, "00000000012", true, 12u);
  for (const char* text :
       {"", "-1", "+1", " 1", "1 ", "4294967296", "000000000012", "1a", "99999999999"}) {
    expect_strict<uint32_t>(parse_u32_strict, text, false);
  }
  expect_strict<int32_t>(parse_i32_strict, "2147483647", true, INT32_MAX);
  expect_strict<int32_t>(parse_i32_strict, "-2147483648", true, INT32_MIN);
  expect_strict<int32_t>(parse_i32_strict, "-1", true, -1);
  expect_strict<int32_t>(parse_i32_strict, "00000000012", true, 12);
  expect_strict<int32_t>(parse_i32_strict, "-0", true, 0);
  expect_strict<int32_t>(parse_i32_strict, "-", true, 0);
  for (const char* text : {"", "+1", "+", " 1", "\t1", "1\t", "1 ", "2147483648", "-2147483649",
                           "4294967296", "- 1", "--1", "1-", "000000000012", "-00000000012"}) {
    expect_strict<int32_t>(parse_i32_strict, text, false);
  }
  expect_strict<uint64_t>(parse_u64_strict, "18446744073709551615", true, UINT64_MAX);
  expect_strict<uint64_t>(parse_u64_strict, "0000000000000000000012", true, 12);
  for (const char* text :
       {"", "-", "-0", "-1", "+1", " 1", "\t1", "1\t", "1x", "0x1", "18446744073709551616",
        "18446744073709551620", "99999999999999999999", "00000000000000000000012"}) {
    expect_strict<uint64_t>(parse_u64_strict, text, false);
  }
  expect_strict<uint64_t>(parse_u64_strict, std::string("1\0", 2), false);
}

void expect_formats(uint64_t value) {
  uint8_t out[kDigitsOfU64Max + 1] = {};
  const std::string expected = std::to_string(value);
  const uint8_t* end = format_u64(value, out);
  EXPECT_EQ(std::string(reinterpret_cast<char*>(out), static_cast<size_t>(end - out)), expected);
  EXPECT_EQ(decimal_size(value), expected.size());
  EXPECT_EQ(out[kDigitsOfU64Max], 0);
}

TEST(Number, FormatEverySize) {
  for (uint64_t value = 0; value <= 1000; ++value) expect_formats(value);
  expect_formats(UINT64_MAX);
  uint64_t power = 1;
  for (int digits = 1; digits <= 19; ++digits) {
    power *= 10;
    for (const uint64_t value : {power - 1, power, power + 1, power * 5 / 3}) expect_formats(value);
  }
}

TEST(Number, FormatSigned) {
  for (const int64_t value : {int64_t{0}, int64_t{-1}, int64_t{42}, INT64_MAX, INT64_MIN}) {
    uint8_t out[20];
    const uint8_t* end = format_i64(value, out);
    EXPECT_EQ(std::string(reinterpret_cast<char*>(out), static_cast<size_t>(end - out)),
              std::to_string(value));
  }
}

}  // namespace
}  // namespace warpcache
