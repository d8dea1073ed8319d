// SPDX-License-Identifier: Apache-2.0
#include "options/option_values.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>

namespace warpcache {
namespace {

TEST(ReadNumber, TakesTheWholeTextInItsRange) {
  EXPECT_EQ(read_number("0", 0, 10), 0);
  EXPECT_EQ(read_number("10", 0, 10), 10);
  EXPECT_EQ(read_number("-1", -1, 10), -1);
  for (const std::string_view bad :
       {"", "11", "-1", "x", "4x", " 4", "4 ", "+4", "4.0", "0x4", "99999999999999999999"}) {
    EXPECT_EQ(read_number(bad, 0, 10), std::nullopt) << bad;
  }
}

TEST(ReadFraction, TakesTheWholeTextInItsRange) {
  EXPECT_EQ(read_fraction("1.25", 1.0, 2.0), 1.25);
  EXPECT_EQ(read_fraction("2", 1.0, 2.0), 2.0);
  EXPECT_EQ(read_fraction(".5", 0.0, 2.0), 0.5);
  EXPECT_EQ(read_fraction("-1.5", -2.0, 2.0), -1.5);
  EXPECT_EQ(read_fraction("-1.5", 0.0, 2.0), std::nullopt);
  EXPECT_EQ(read_fraction("-", -2.0, 2.0), std::nullopt);
  for (const std::string_view bad :
       {"", "2.1", "0.9", "-1", "nan", "inf", "1.5x", " 1.5", "1e0", "."}) {
    EXPECT_EQ(read_fraction(bad, 1.0, 2.0), std::nullopt) << bad;
  }
}

TEST(ReadOctal, TakesOctalDigitsOnly) {
  EXPECT_EQ(read_octal("700", 07777), 0700u);
  EXPECT_EQ(read_octal("0755", 07777), 0755u);
  for (const std::string_view bad : {"", "8", "79", "-1", "10000", "0x7", "7 "}) {
    EXPECT_EQ(read_octal(bad, 07777), std::nullopt) << bad;
  }
}

TEST(ReadSize, KnowsSuffixesAndBareUnits) {
  constexpr uint64_t kMax = uint64_t{1} << 44;
  EXPECT_EQ(read_size("64", 1 << 20, 1, kMax), uint64_t{64} << 20);
  EXPECT_EQ(read_size("64", 1, 1, kMax), 64u);
  EXPECT_EQ(read_size("2k", 1, 1, kMax), 2048u);
  EXPECT_EQ(read_size("2K", 1, 1, kMax), 2048u);
  EXPECT_EQ(read_size("2m", 1, 1, kMax), uint64_t{2} << 20);
  EXPECT_EQ(read_size("2M", 1, 1, kMax), uint64_t{2} << 20);
  EXPECT_EQ(read_size("2g", 1, 1, kMax), uint64_t{2} << 30);
  EXPECT_EQ(read_size("16T", 1, 1, kMax), kMax);
  for (const std::string_view bad : {"", "k", "0", "-1", "17t", "2kb", "1.5m", "k2",
                                     "18446744073709551615k", "18446744073709551616"}) {
    EXPECT_EQ(read_size(bad, 1, 1, kMax), std::nullopt) << bad;
  }
}

void expect_listen(std::string_view text, std::string_view host, std::optional<uint16_t> port) {
  const auto spec = read_listen(text);
  ASSERT_TRUE(spec.has_value()) << text;
  EXPECT_EQ(spec->host, host) << text;
  EXPECT_EQ(spec->port, port) << text;
}

TEST(ReadListen, TakesHostsAndPorts) {
  expect_listen("127.0.0.1", "127.0.0.1", std::nullopt);
  expect_listen("127.0.0.1:11311", "127.0.0.1", 11311);
  expect_listen("cache-1.example.org:0", "cache-1.example.org", 0);
  expect_listen("127.0.0.1:-1", "127.0.0.1", 0);
  expect_listen("[::1]:-1", "::1", 0);
  expect_listen("*", "", std::nullopt);
  expect_listen("*:5", "", 5);
  expect_listen("::1", "::1", std::nullopt);
  expect_listen("::", "::", std::nullopt);
  expect_listen("[::1]", "::1", std::nullopt);
  expect_listen("[::1]:65535", "::1", 65535);
  expect_listen("[fe80::1%eth0]:1", "fe80::1%eth0", 1);
}

TEST(ReadListen, TakesPrefixes) {
  expect_listen("notls:127.0.0.1:5", "127.0.0.1", 5);
  expect_listen("mtls:[::1]:5", "::1", 5);
  EXPECT_EQ(read_listen("host")->tls, std::nullopt);
  EXPECT_EQ(read_listen("notls:host")->tls, ListenTls::kNone);
  EXPECT_EQ(read_listen("btls:*:5")->tls, ListenTls::kServerOnly);
  for (const std::string_view both : {"mtls:noadmin:[::1]", "noadmin:mtls:[::1]"}) {
    EXPECT_EQ(read_listen(both)->tls, ListenTls::kMutual);
    EXPECT_FALSE(read_listen(both)->admin);
  }
}

TEST(ReadListen, RefusesWhatIsNoAddress) {
  for (const std::string_view bad : {"",
                                     ":",
                                     ":11211",
                                     "host:",
                                     "host:x",
                                     "host:65536",
                                     "host:-2",
                                     "host:--1",
                                     "[::1",
                                     "[::1]x",
                                     "[::1]:",
                                     "[127.0.0.1]:5",
                                     "[]:5",
                                     "notls:",
                                     "notls:notls:host",
                                     "xtls:127.0.0.1:5",
                                     "notls[::1]:5",
                                     "::1:zz",
                                     "a b",
                                     "/tmp/socket"}) {
    EXPECT_FALSE(read_listen(bad).has_value()) << bad;
  }
}

std::array<uint8_t, 16> mapped(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d};
}

TEST(ReadCidr, MatchesItsNetworkOnly) {
  const auto v4 = read_cidr("192.0.2.77/24");
  ASSERT_TRUE(v4.has_value());
  EXPECT_EQ(v4->address, mapped(192, 0, 2, 0));
  EXPECT_TRUE(v4->contains(mapped(192, 0, 2, 255)));
  EXPECT_FALSE(v4->contains(mapped(192, 0, 3, 0)));

  const auto odd = read_cidr("10.0.0.0/9");
  ASSERT_TRUE(odd.has_value());
  EXPECT_TRUE(odd->contains(mapped(10, 127, 255, 255)));
  EXPECT_FALSE(odd->contains(mapped(10, 128, 0, 0)));

  const auto one = read_cidr("10.1.2.3");
  ASSERT_TRUE(one.has_value());
  EXPECT_TRUE(one->contains(mapped(10, 1, 2, 3)));
  EXPECT_FALSE(one->contains(mapped(10, 1, 2, 2)));

  const auto v6 = read_cidr("2001:db8::/32");
  ASSERT_TRUE(v6.has_value());
  EXPECT_TRUE(v6->contains({0x20, 0x01, 0x0d, 0xb8, 0xff}));
  EXPECT_FALSE(v6->contains({0x20, 0x01, 0x0d, 0xb9}));

  const auto all_v4 = read_cidr("0.0.0.0/0");
  ASSERT_TRUE(all_v4.has_value());
  EXPECT_TRUE(all_v4->contains(mapped(8, 8, 8, 8)));
  EXPECT_FALSE(all_v4->contains({0x20, 0x01}));
}

TEST(ReadCidr, RefusesWhatIsNoNetwork) {
  for (const std::string_view bad : {"", "/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "::/129",
                                     "10.0.0/8", "host", "10.0.0.0/8/8", "[::1]"}) {
    EXPECT_FALSE(read_cidr(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace warpcache
