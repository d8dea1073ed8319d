// SPDX-License-Identifier: Apache-2.0
#include "traces/trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "traces/file_trace.h"
#include "traces/workload.h"

namespace warpcache::sim {
namespace {

std::vector<Request> all_of(Trace* trace, size_t at_once = 7) {
  std::vector<Request> out(trace->length() + 1);
  size_t done = 0;
  while (const size_t now = trace->read(out.data() + done, std::min(at_once, out.size() - done))) {
    done += now;
  }
  EXPECT_EQ(done, trace->length());
  out.resize(done);
  return out;
}

std::vector<Request> requests_of(const Workload& workload, size_t at_once = 7) {
  std::string why;
  const std::unique_ptr<Trace> trace = make_trace(workload, &why);
  EXPECT_NE(trace, nullptr) << why;
  return all_of(trace.get(), at_once);
}

bool same(const std::vector<Request>& a, const std::vector<Request>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Request& x, const Request& y) {
    return x.key == y.key && x.operation == y.operation && x.value_size == y.value_size &&
           x.key_size == y.key_size;
  });
}

Workload small(const std::string& keys, const std::string& mix) {
  Workload workload;
  std::string why;
  workload.keys = keys;
  workload.key_count = 1000;
  workload.requests = 20'000;
  EXPECT_TRUE(Mix::parse(mix, &workload.mix, &why)) << why;
  return workload;
}

TEST(GeneratedTrace, FollowsFromItsSeed) {
  Workload workload = small("zipf:0.99", "a");
  workload.one_hits = 0.1;
  workload.scans = 0.1;
  workload.scan_length = 20;
  const std::vector<Request> one = requests_of(workload);
  EXPECT_TRUE(same(one, requests_of(workload, 1000)));
  workload.seed = 2;
  EXPECT_FALSE(same(one, requests_of(workload)));
}

TEST(GeneratedTrace, OperationsComeInTheirShares) {
  uint64_t counts[3] = {};
  uint64_t inserts = 0;
  for (const Request& request : requests_of(small("uniform", "70:15:10:5"))) {
    ++counts[static_cast<size_t>(request.operation)];
    if (request.key < 1000) continue;
    EXPECT_EQ(request.key, 1000 + inserts++);
    EXPECT_EQ(request.operation, Operation::kSet);
  }
  EXPECT_NEAR(static_cast<double>(counts[0]), 14'000, 300);
  EXPECT_NEAR(static_cast<double>(counts[1]), 5'000, 300);
  EXPECT_NEAR(static_cast<double>(counts[2]), 1'000, 150);
  EXPECT_NEAR(static_cast<double>(inserts), 2'000, 200);
}

TEST(GeneratedTrace, LatestPrefersWhatWasInserted) {
  uint64_t newest = 999, gets = 0, young = 0;
  for (const Request& request : requests_of(small("latest:0.99", "d"))) {
    if (request.operation == Operation::kSet) {
      ASSERT_EQ(request.key, ++newest);
      continue;
    }
    ASSERT_LE(request.key, newest);
    ++gets;
    if (newest - request.key < 200) ++young;
  }
  EXPECT_GT(static_cast<double>(young) / static_cast<double>(gets), 0.5);
}

TEST(Mix, KnowsYcsbsWorkloads) {
  std::string why;
  Mix mix;
  ASSERT_TRUE(Mix::parse("a", &mix, &why));
  EXPECT_EQ(mix.sets, 0.5);
  ASSERT_TRUE(Mix::parse("d", &mix, &why));
  EXPECT_EQ(mix.inserts, 0.05);
  EXPECT_EQ(mix.sets, 0.0);
  ASSERT_TRUE(Mix::parse("95:5", &mix, &why));
  EXPECT_EQ(mix.sets, 0.05);
  for (const char* bad : {"", "e", "95", "95:", "0:0", "-1:5", "1:2:3", "1:2:3:4:5", "95:5x"}) {
    EXPECT_FALSE(Mix::parse(bad, &mix, &why)) << bad;
  }
}

TEST(LoadTrace, SetsEachKeyOnce) {
  Workload workload = small("uniform", "c");
  workload.sizes = "etc";
  std::string why;
  const std::unique_ptr<Trace> trace = make_load_trace(workload, &why);
  ASSERT_NE(trace, nullptr) << why;
  const std::vector<Request> requests = all_of(trace.get());
  ASSERT_EQ(requests.size(), 1000u);
  for (uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(requests[i].key, i);
    EXPECT_EQ(requests[i].operation, Operation::kSet);
  }
  for (const Request& request : requests_of(workload)) {
    EXPECT_EQ(request.value_size, requests[request.key].value_size);
    EXPECT_EQ(request.key_size, requests[request.key].key_size);
  }
}

TEST(Workload, RefusesWhatCannotBe) {
  std::string why;
  Workload bad = small("uniform", "c");
  bad.key_count = 1;
  EXPECT_EQ(make_trace(bad, &why), nullptr);
  bad = small("uniform", "c");
  bad.scans = 0.5;
  EXPECT_EQ(make_trace(bad, &why), nullptr);
  bad = small("uniform", "c");
  bad.sizes = "none";
  EXPECT_EQ(make_load_trace(bad, &why), nullptr);
}

TEST(FileTrace, GivesTheFilesRequests) {
  const std::string path = testing::TempDir() + "sim_traces_file." + std::to_string(getpid());
  std::ofstream(path) << "get apple\nset apple 120\nget fig\ndelete apple\n";
  std::string why;
  const std::unique_ptr<bench::Trace> file = load_file(path, 33, &why);
  ASSERT_NE(file, nullptr) << why;
  FileTrace trace(file.get());
  const std::vector<Request> expected = {{0, 120, 5, Operation::kGet},
                                         {0, 120, 5, Operation::kSet},
                                         {1, 33, 3, Operation::kGet},
                                         {0, 120, 5, Operation::kDelete}};
  EXPECT_TRUE(same(all_of(&trace), expected));
  EXPECT_EQ(load_file(path + ".none", 33, &why), nullptr);
  EXPECT_NE(why.find("cannot be opened"), std::string::npos);
  EXPECT_EQ(std::remove(path.c_str()), 0);
}

}  // namespace
}  // namespace warpcache::sim
