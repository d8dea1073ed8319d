// SPDX-License-Identifier: Apache-2.0
#include "options/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace warpcache {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kMegabyte = uint64_t{1} << 20;

class PlanTest : public testing::Test {
 protected:
  PlanTest() {
    std::string name = testing::TempDir() + "warpcache_plan_" + std::string(6, 'X');
    folder_ = mkdtemp(name.data());
    options_.process.plan = folder_ + "/trace";
    std::ofstream(options_.process.plan) << "1,a,10\n";
  }
  ~PlanTest() override { std::filesystem::remove_all(folder_); }

  // A simulator that prints these lines and exits with this status.
  std::string simulator(const std::string& lines, int status = 0) {
    const std::string path = folder_ + "/hash-sim";
    std::ofstream(folder_ + "/lines") << lines;
    std::ofstream(path) << "#!/bin/sh\necho \"$@\" >" << folder_ << "/words\ncat " << folder_
                        << "/lines\nexit " << status << "\n";
    EXPECT_EQ(chmod(path.c_str(), 0755), 0);
    return path;
  }
  std::string words() const {
    std::string line;
    std::ifstream file(folder_ + "/words");
    std::getline(file, line);
    return line;
  }
  static std::string row(uint64_t megabytes, uint64_t used_megabytes, uint64_t items,
                         uint64_t evictions) {
    return "{\"byte_miss_ratio\":0.75,\"cache\":\"store\",\"evictions\":" +
           std::to_string(evictions) +
           ",\"footprint\":3000000,\"gets\":90000,"
           "\"item_bytes\":" +
           std::to_string(items * 100) + ",\"items\":" + std::to_string(items) +
           ",\"memory\":" + std::to_string(megabytes * kMegabyte) +
           ",\"miss_ratio\":5e-1,\"requests\":100000,\"trace_keys\":30000,\"used\":" +
           std::to_string(used_megabytes * kMegabyte) + "}\n";
  }

  std::string folder_;
  Options options_;
  Plan plan_;
};

TEST_F(PlanTest, SizesAreAroundTheLimit) {
  const uint64_t gib = 1024 * kMegabyte;
  EXPECT_THAT(plan_sizes(64 * kMegabyte, 8 * gib),
              ElementsAre(16 * kMegabyte, 32 * kMegabyte, 64 * kMegabyte, 128 * kMegabyte,
                          256 * kMegabyte, 512 * kMegabyte));
  EXPECT_THAT(plan_sizes(gib, gib), ElementsAre(gib / 4, gib / 2, gib));
  EXPECT_EQ(plan_sizes(kMegabyte, gib).front(), 2 * kMegabyte);
  EXPECT_THAT(plan_sizes(64 * gib, gib), IsEmpty());
}

TEST_F(PlanTest, ReplaysTheTraceUntilItFits) {
  const std::string lines = row(16, 16, 12'345, 9) + row(32, 32, 20'000, 1) +
                            row(64, 33, 30'000, 0) + row(128, 33, 30'000, 0);
  ASSERT_EQ(make_plan(options_, simulator(lines), &plan_), "");
  ASSERT_EQ(plan_.rows.size(), 3u);
  EXPECT_TRUE(plan_.fits);
  EXPECT_EQ(plan_.rows[0].items, 12'345u);
  EXPECT_DOUBLE_EQ(plan_.rows[0].hit_ratio, 0.5);
  EXPECT_DOUBLE_EQ(plan_.rows[0].byte_hit_ratio, 0.25);
  EXPECT_THAT(words(), HasSubstr("--trace " + options_.process.plan + " --cache store"));
  EXPECT_THAT(words(), HasSubstr("--memory 16777216 33554432 67108864 "));
  const std::string text = plan_text(plan_, "trace");
  EXPECT_THAT(text, HasSubstr("100,000 requests, 90,000 of them gets; 30,000 keys"));
  EXPECT_THAT(text, HasSubstr("12,345"));
  EXPECT_THAT(text, HasSubstr("100 + 1259"));
  EXPECT_THAT(text, HasSubstr("50.00%"));
  EXPECT_THAT(text, HasSubstr("25.00%"));
  EXPECT_THAT(text, HasSubstr("nothing is evicted"));
}

TEST_F(PlanTest, WhatDoesNotFitSaysSo) {
  ASSERT_EQ(make_plan(options_, simulator(row(16, 16, 100, 1)), &plan_), "");
  EXPECT_FALSE(plan_.fits);
  EXPECT_THAT(plan_text(plan_, "trace"), HasSubstr("give a larger -m"));
}

TEST_F(PlanTest, ErrorsAreSentences) {
  EXPECT_THAT(make_plan(options_, "", &plan_), HasSubstr("hash-sim is neither beside"));
  EXPECT_THAT(make_plan(options_, simulator("", 2), &plan_), HasSubstr("cannot be replayed"));
  EXPECT_THAT(make_plan(options_, simulator("", 1), &plan_), HasSubstr("has failed"));
  EXPECT_THAT(make_plan(options_, simulator(""), &plan_), HasSubstr("has failed"));
  EXPECT_THAT(make_plan(options_, simulator("{\"memory\":1}\n"), &plan_),
              HasSubstr("another version"));
  EXPECT_THAT(make_plan(options_, simulator("kill: -9\n", 137), &plan_),
              HasSubstr("another version"));
  EXPECT_THAT(make_plan(options_, folder_ + "/nothing", &plan_), HasSubstr("cannot be started"));
  const std::string fine = simulator(row(16, 16, 100, 1));
  options_.process.plan = folder_ + "/missing";
  EXPECT_THAT(make_plan(options_, fine, &plan_), HasSubstr("cannot be read: No such file"));
  options_.process.plan = folder_;
  EXPECT_THAT(make_plan(options_, fine, &plan_), HasSubstr("cannot be read: Is a directory"));
}

TEST_F(PlanTest, TheSimulatorIsLookedForInThePath) {
  const std::string path = simulator("");
  const char* const before = std::getenv("PATH");
  const std::string kept = before == nullptr ? "" : before;
  setenv("PATH", ("/nonexistent::" + folder_).c_str(), 1);
  const std::string found = find_simulator();
  setenv("PATH", "/nonexistent", 1);
  const std::string none = find_simulator();
  setenv("PATH", kept.c_str(), 1);
  // Beside this test's program there may be one, too.
  EXPECT_TRUE(found == path || found == none) << found;
}

}  // namespace
}  // namespace warpcache
