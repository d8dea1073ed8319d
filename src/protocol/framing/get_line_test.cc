// SPDX-License-Identifier: Apache-2.0
#include "protocol/framing/get_line.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "protocol/testing/get_line.h"

namespace warpcache::protocol {
namespace {

using testing::compare_get_line;
using testing::split_get_line;

std::vector<std::string> keys_of(const std::string& payload, uint32_t skew) {
  std::vector<std::string> keys;
  const testing::LineKeys found = split_get_line(payload, skew);
  if (!found.taken) return {"none"};
  for (const auto& [offset, size] : found.keys) keys.push_back(payload.substr(offset, size));
  return keys;
}

TEST(GetLine, FindsEveryKey) {
  using Keys = std::vector<std::string>;
  for (uint32_t skew = 0; skew < 16; ++skew) {
    EXPECT_EQ(keys_of("get a\r\n", skew), Keys({"a"}));
    EXPECT_EQ(keys_of("get a b c\r\n", skew), Keys({"a", "b", "c"}));
    EXPECT_EQ(keys_of("gets   a   bc  \r\n", skew), Keys({"a", "bc"}));
    EXPECT_EQ(keys_of("get a b\n", skew), Keys({"a", "b"}));
    EXPECT_EQ(keys_of("get a\rb \r\r\n", skew), Keys({"a\rb", "\r"}));
    const std::string longest(kKeySizeMax, 'k');
    EXPECT_EQ(keys_of("get " + longest + " x " + longest + "\r\n", skew),
              Keys({longest, "x", longest}));
    for (const char* const other :
         {"get\r\n", "get \r\n", "get     \r\n", "get a", "get a\r", "get a\nb\r\n",
          "get a\r\nget b\r\n", "gat 1 a\r\n", "GET a\r\n", " get a\r\n", "get\ta b\r\n",
          "getx a\r\n", "getsx a\r\n", "mg a\r\n", "set k 0 0 1\r\n1\r\n"}) {
      EXPECT_EQ(keys_of(other, skew), Keys({"none"})) << other;
    }
    EXPECT_EQ(keys_of("get " + longest + "k\r\n", skew), Keys({"none"}));
    EXPECT_EQ(keys_of("get a " + longest + "k b\r\n", skew), Keys({"none"}));
  }
}

// Random lines, most of them get lines with few kinds of bytes.
TEST(GetLine, AgreesWithTheFramer) {
  std::mt19937 dice(1);
  const auto below = [&dice](uint32_t bound) { return static_cast<uint32_t>(dice() % bound); };
  const auto one_in = [&below](uint32_t count) { return below(count) == 0; };
  uint32_t taken = 0;
  for (uint32_t i = 0; i < 60000; ++i) {
    std::string line = one_in(2) ? "get" : "gets";
    if (!one_in(20)) line += ' ';
    const uint32_t size = one_in(50) ? 1900 + below(300) : below(one_in(3) ? 400 : 40);
    const uint32_t blanks = one_in(4) ? 300 : 1 + below(10);
    while (line.size() < size) line += one_in(blanks) ? ' ' : static_cast<char>('a' + below(3));
    if (one_in(3)) {
      for (uint32_t changes = 1 + below(3); changes > 0; --changes) {
        line[below(static_cast<uint32_t>(line.size()))] = "\r\n \t\x8d\x8a\xa0\x80"[below(8)];
      }
    }
    line += one_in(10) ? "\n" : one_in(20) ? "" : "\r\n";
    const testing::GetLineComparison result = compare_get_line(line, below(16));
    ASSERT_EQ(result.difference, "") << ::testing::PrintToString(line);
    if (result.taken) ++taken;
  }
  EXPECT_GT(taken, 20000u);
}

}  // namespace
}  // namespace warpcache::protocol
