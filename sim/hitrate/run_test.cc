// SPDX-License-Identifier: Apache-2.0
#include "hitrate/run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace warpcache::sim {
namespace {

Options small() {
  Options options;
  options.workload.key_count = 5000;
  options.workload.requests = 20'000;
  options.workload.mix = {0.05, 0, 0};
  options.caches = {"chained:lru", "set:16:sieve", "two-generations"};
  options.capacities = {4096, 4500};
  return options;
}

// Hits by cache and size.
std::map<std::string, uint64_t> hits_of(const Options& options) {
  std::string why;
  Source source;
  EXPECT_TRUE(source.open(options, &why)) << why;
  std::map<std::string, uint64_t> hits;
  uint64_t last = 0;
  const TotalProgress progress = [&](uint64_t done, uint64_t all) {
    EXPECT_LE(done, all);
    last = std::max(last, done);
  };
  const auto done = [&](const Result& result) {
    EXPECT_EQ(result.counts.wrong, 0u);
    hits[result.run.cache + " " + std::to_string(result.run.size.capacity)] = result.counts.hits;
  };
  EXPECT_TRUE(run_all(options, source, progress, done, &why)) << why;
  EXPECT_EQ(last, hits.size() * (source.trace()->length() +
                                 (source.load_trace() ? source.load_trace()->length() : 0)));
  return hits;
}

TEST(Run, ThreadsDoNotChangeResults) {
  Options options = small();
  const std::map<std::string, uint64_t> one = hits_of(options);
  EXPECT_EQ(one.size(), 6u);
  options.threads = 3;
  EXPECT_EQ(hits_of(options), one);
  options.workload.seed = options.simulate.hash_seed = 2;
  EXPECT_NE(hits_of(options), one);
}

TEST(Run, ReportsInTheOrderOfTheRuns) {
  Options options = small();
  options.caches = {"cuckoo", "chained:fifo", "set:1"};  // the first takes longest
  options.threads = 3;
  std::string why;
  Source source;
  ASSERT_TRUE(source.open(options, &why)) << why;
  std::vector<std::string> order;
  const auto done = [&](const Result& result) {
    order.push_back(result.run.cache + " " + std::to_string(result.run.size.capacity));
  };
  ASSERT_TRUE(run_all(
      options, source, [](uint64_t, uint64_t) {}, done, &why));
  std::vector<std::string> expected;
  for (const auto& run : runs_of(options)) {
    expected.push_back(run.cache + " " + std::to_string(run.size.capacity));
  }
  EXPECT_EQ(order, expected);
}

// No policy hits more items of one size than the one that knows the future.
TEST(Run, FarthestNextUseIsABound) {
  Options options = small();
  options.load = false;
  options.workload.mix = {0, 0, 0};
  options.caches = {"chained:farthest", "chained:lru",       "chained:s3fifo",
                    "chained:lirs",     "chained:w-tinylfu", "chained:gdsf"};
  options.capacities = {200};
  const std::map<std::string, uint64_t> hits = hits_of(options);
  ASSERT_EQ(hits.size(), 6u);
  const uint64_t most = hits.at("chained:farthest 200");
  for (const auto& [name, count] : hits) {
    EXPECT_TRUE(count < most || name == "chained:farthest 200") << name << " " << count;
  }
}

TEST(Run, TheFootprintIsWhatIsAskedFor) {
  const std::string path = testing::TempDir() + "hash_sim_footprint." + std::to_string(getpid());
  std::ofstream(path) << "time,key,size\n0,a,100\n1,bb,20\n2,a,100\n";
  Options options;
  options.trace_path = path;
  std::string why;
  Source source;
  ASSERT_TRUE(source.open(options, &why)) << why;
  std::remove(path.c_str());
  EXPECT_EQ(source.footprint(0), 123u);
  EXPECT_EQ(source.footprint(10), 143u);
  EXPECT_EQ(source.keys(), 2u);
  EXPECT_EQ(source.next_uses(), (std::vector<uint64_t>{2, kNever, kNever}));
}

TEST(Run, RefusesAWarmUpThatTakesAll) {
  Options options = small();
  std::string why;
  Source source;
  options.simulate.warm_up = options.workload.requests - 1;
  EXPECT_TRUE(source.open(options, &why)) << why;
  options.simulate.warm_up = options.workload.requests;
  EXPECT_FALSE(source.open(options, &why));
}

TEST(Run, ExactLruIsChainedLru) {
  Options options = small();
  options.caches = {"chained:lru"};
  options.simulate.warm_up = 3000;
  std::string why;
  Source source;
  ASSERT_TRUE(source.open(options, &why)) << why;
  const std::map<std::string, uint64_t> simulated = hits_of(options);
  for (const Result& exact : run_exact_lru(options, source)) {
    EXPECT_EQ(exact.counts.hits,
              simulated.at("chained:lru " + std::to_string(exact.run.size.capacity)));
  }
}

TEST(Run, ReadsAFile) {
  const std::string path = testing::TempDir() + "hash_sim_run." + std::to_string(getpid());
  std::ofstream(path) << "time,key,size\n0,a,1\n1,b,1\n2,a,1\n3,c,1\n4,b,1\n";
  Options options;
  options.trace_path = path;
  options.caches = {"chained:lru"};
  options.capacities = {2, 3};
  const std::map<std::string, uint64_t> expected = {{"chained:lru 2", 1}, {"chained:lru 3", 2}};
  EXPECT_EQ(hits_of(options), expected);
  EXPECT_EQ(std::remove(path.c_str()), 0);
}

TEST(Run, SaysWhatCannotBe) {
  Options options = small();
  options.caches = {"chained:lru", "none"};
  options.threads = 2;
  std::string why;
  Source source;
  ASSERT_TRUE(source.open(options, &why));
  const TotalProgress progress = [](uint64_t, uint64_t) {};
  EXPECT_FALSE(run_all(
      options, source, progress, [](const Result&) {}, &why));
  EXPECT_NE(why.find("no cache none"), std::string::npos);
  options.trace_path = "/no/such/file";
  EXPECT_FALSE(source.open(options, &why));
  options.trace_path.clear();
  options.workload.keys = "none";
  EXPECT_FALSE(source.open(options, &why));
}

TEST(Run, BytesTakeTheOverhead) {
  Options options = small();
  options.capacities.clear();
  options.memories = {1 << 20};
  options.overhead = 10;
  const auto runs = runs_of(options);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_TRUE(runs[0].size.costs.bytes);
  EXPECT_EQ(runs[0].size.costs.of({0, 100, 20, 0}), 130u);
}

}  // namespace
}  // namespace warpcache::sim
