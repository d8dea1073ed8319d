// SPDX-License-Identifier: Apache-2.0
//
// Options of active messages beside --ucx itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "options/options.h"

namespace warpcache {
namespace {

using ::testing::HasSubstr;

ParseResult parse_with_ucx(std::vector<std::string> more, bool ucx = true) {
  if (ucx) more.insert(more.begin(), "--ucx=*:5");
  more.insert(more.begin(), "warpcached");
  std::vector<char*> argv;
  for (std::string& text : more) argv.push_back(text.data());
  argv.push_back(nullptr);
  return parse_options(static_cast<int>(more.size()), argv.data());
}

ListenOptions messages_with(const std::vector<std::string>& more) {
  const ParseResult result = parse_with_ucx(more);
  EXPECT_TRUE(result.options.has_value()) << result.text;
  return result.options.value_or(Options{}).listen;
}

void refuse_with_ucx(const std::vector<std::string>& more, const std::string& why,
                     bool ucx = true) {
  const ParseResult result = parse_with_ucx(more, ucx);
  EXPECT_FALSE(result.options.has_value()) << more[0];
  EXPECT_THAT(result.text, HasSubstr(why));
}

// A sixteenth of -m, but any item.
TEST(UcxOptions, WhatAClientMayHold) {
  EXPECT_EQ(messages_with({}).ucx_client_bytes, 4u << 20);
  EXPECT_EQ(messages_with({"-I", "8m"}).ucx_client_bytes, 8u << 20);
  EXPECT_EQ(messages_with({"-m", "1024"}).ucx_client_bytes, 64u << 20);
  EXPECT_EQ(messages_with({"--ucx-client-memory=3"}).ucx_client_bytes, 3u << 20);
  for (const char* const value : {"", "0", "-1", "x", "1048577"}) {
    refuse_with_ucx({std::string("--ucx-client-memory=") + value}, "a number from 1 to 1048576");
  }
  refuse_with_ucx({"--ucx-client-memory=3"}, "--ucx-client-memory needs --ucx.", false);
}

TEST(UcxOptions, TransportsOfTheOperatorsChoice) {
  EXPECT_EQ(messages_with({}).ucx_transports, "");
  for (const char* value : {"tcp", "posix,tcp", "^sysv", "rc_v"}) {
    EXPECT_EQ(messages_with({std::string("--ucx-transports=") + value}).ucx_transports, value);
  }
  for (const char* value : {"", "^", ",tcp", "tcp,", "tcp,,posix", "TCP", "tcp;x", "a b"}) {
    refuse_with_ucx({std::string("--ucx-transports=") + value}, "names of UCX's transports");
  }
  refuse_with_ucx({"--ucx-transports=tcp"}, "--ucx-transports needs --ucx.", false);
}

TEST(UcxOptions, CopiesForReadsOfOneSide) {
  EXPECT_EQ(messages_with({}).ucx_slots, 0u);
  EXPECT_EQ(messages_with({"--ucx-one-sided=1"}).ucx_slots, 1u);
  EXPECT_EQ(messages_with({"--ucx-one-sided=1000"}).ucx_slots, 1024u);
  for (const char* const value : {"", "0", "-1", "x", "1048577"}) {
    refuse_with_ucx({std::string("--ucx-one-sided=") + value}, "a number from 1 to 1048576");
  }
  refuse_with_ucx({"--ucx-one-sided=8"}, "--ucx-one-sided needs --ucx.", false);
  const std::string with = "--ucx-one-sided cannot be had with ";
  refuse_with_ucx({"--ucx-one-sided=8", "-Y", "users"}, with + "-Y and -S.");
  refuse_with_ucx({"--ucx-one-sided=8", "-S"}, with + "-Y and -S.");
  refuse_with_ucx({"--ucx-one-sided=8", "--engine=cuda"}, with + "--engine=cuda.");
  refuse_with_ucx({"--ucx-one-sided=8", "--nic-cache=eth0", "-U", "5"}, with + "--nic-cache.");
}

}  // namespace
}  // namespace warpcache
