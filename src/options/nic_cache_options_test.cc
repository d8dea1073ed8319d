// SPDX-License-Identifier: Apache-2.0
#include "options/nic_cache_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace warpcache {
namespace {

using ::testing::HasSubstr;

ParseResult parse_words(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "warpcached");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  return parse_options(static_cast<int>(arguments.size()), argv.data());
}

NicCacheOptions nic_options(const std::vector<std::string>& arguments) {
  const ParseResult parsed = parse_words(arguments);
  EXPECT_TRUE(parsed.options.has_value()) << parsed.text;
  return parsed.options.value_or(Options{}).nic_cache;
}

std::string refusal(const std::vector<std::string>& arguments) {
  const ParseResult parsed = parse_words(arguments);
  EXPECT_FALSE(parsed.options.has_value());
  return parsed.text;
}

TEST(NicCacheOptions, AreRead) {
  NicCacheOptions options = nic_options({"-U", "11211", "--nic-cache=eth0"});
  EXPECT_EQ(options.interface, "eth0");
  EXPECT_EQ(options.mode, NicCacheOptions::Mode::kAny);
  EXPECT_EQ(options.memory_mb, 64u);
  EXPECT_TRUE(options.read_allocate);
  EXPECT_EQ(options.write, NicCacheOptions::Write::kForward);
  options = nic_options({"-U", "11211", "--nic-cache=eth0,generic", "--nic-cache-memory=3",
                         "--nic-cache-fill=off", "--nic-cache-write=through"});
  EXPECT_EQ(options.mode, NicCacheOptions::Mode::kGeneric);
  EXPECT_EQ(options.memory_mb, 3u);
  EXPECT_FALSE(options.read_allocate);
  EXPECT_EQ(options.write, NicCacheOptions::Write::kThrough);
  EXPECT_FALSE(options.admit_frequent);
  EXPECT_EQ(options.source_rate_max, 0u);
  options = nic_options({"-U", "11211", "--nic-cache=eth0", "--nic-cache-fill=frequent",
                         "--nic-cache-rate=4294967295"});
  EXPECT_TRUE(options.read_allocate);
  EXPECT_TRUE(options.admit_frequent);
  EXPECT_EQ(options.source_rate_max, UINT32_MAX);
  options = nic_options({"-U", "11211", "--nic-cache=eth0", "--nic-cache-write=back"});
  EXPECT_EQ(options.write, NicCacheOptions::Write::kBack);
  EXPECT_EQ(nic_options({"-U", "11211", "--nic-cache=eth0,native"}).mode,
            NicCacheOptions::Mode::kNative);
}

TEST(NicCacheOptions, AreRefused) {
  EXPECT_THAT(refusal({"--nic-cache=eth0,fast"}), HasSubstr("native or generic"));
  EXPECT_THAT(refusal({"--nic-cache="}), HasSubstr("1 to 15 characters"));
  EXPECT_THAT(refusal({"--nic-cache-fill=on"}), HasSubstr("reads, frequent or off"));
  EXPECT_THAT(refusal({"--nic-cache-write=behind"}), HasSubstr("forward, through or back"));
  EXPECT_THAT(refusal({"--nic-cache-memory=0"}), HasSubstr("from 1 to 65536"));
  EXPECT_THAT(refusal({"--nic-cache-rate=-1"}), HasSubstr("from 0 to 4294967295"));
  EXPECT_THAT(refusal({"--nic-cache-rate=4294967296"}), HasSubstr("from 0 to 4294967295"));
  EXPECT_THAT(refusal({"--nic-cache=eth0"}), HasSubstr("give -U"));
  const std::vector<std::string> cuda = {"--nic-cache=eth0", "-U", "11211", "--engine=cuda"};
  EXPECT_EQ(nic_options(cuda).interface, "eth0");
  const auto with = [&cuda](const std::vector<std::string>& more) {
    std::vector<std::string> all = cuda;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  EXPECT_EQ(nic_options(with({"--nic-cache-write=through"})).write,
            NicCacheOptions::Write::kThrough);
  EXPECT_THAT(refusal(with({"--nic-cache-write=back"})),
              HasSubstr("--nic-cache-write=back cannot be had with --engine=cuda"));
  EXPECT_THAT(refusal(with({"--gpu-mode=edge", "--frames=peer:/dev/shm/frames"})),
              HasSubstr("cannot be had with --frames=peer"));
  EXPECT_THAT(refusal(with({"--frames=dpdk:0000:03:00.0", "--frames-gpu", "--on-gpu-error=exit"})),
              HasSubstr("cannot be had with --frames-gpu"));
}

}  // namespace
}  // namespace warpcache
