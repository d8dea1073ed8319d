// SPDX-License-Identifier: Apache-2.0
#include "load/stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "load/keyspace.h"

namespace warpcache::load {
namespace {

using bench::Trace;

Distribution distribution(const std::string& text, uint32_t keys) {
  Distribution out;
  std::string why;
  EXPECT_TRUE(Distribution::parse(text, &out, &why)) << why;
  out.prepare(keys, nullptr);
  return out;
}

// How often each of the first `keys` keys is asked for in `draws` gets.
std::vector<double> shares(const std::string& text, uint32_t keys, int draws) {
  Options options;
  options.sets = 0;
  Distribution some = distribution(text, keys);
  Stream stream(options, &some, 0, 1);
  std::vector<double> out(keys);
  for (int i = 0; i < draws; ++i) {
    Operation operation;
    uint32_t id = keys;
    EXPECT_EQ(stream.next(&operation, &id), 1u);
    EXPECT_EQ(operation, Operation::kGet);
    out.at(id) += 1.0 / draws;
  }
  return out;
}

bool read(const std::string& text, Trace* out, std::string* why) {
  std::istringstream in(text);
  return Trace::read(&in, 33, out, why);
}

TEST(Stream, KeysFollowTheDistribution) {
  constexpr int kDraws = 200'000;
  for (const double exponent : {0.0, 0.5, 0.99, 1.2, 2.0}) {
    const std::vector<double> seen = shares("zipf:" + std::to_string(exponent), 100, kDraws);
    double sum = 0;
    for (int rank = 1; rank <= 100; ++rank) sum += std::pow(rank, -exponent);
    for (int rank = 1; rank <= 100; ++rank) {
      const double expected = std::pow(rank, -exponent) / sum;
      const double deviation = std::sqrt(expected * (1 - expected) / kDraws);
      EXPECT_NEAR(seen[static_cast<size_t>(rank) - 1], expected, 5 * deviation) << exponent;
    }
  }
  for (const double share : shares("uniform", 100, kDraws)) EXPECT_NEAR(share, 0.01, 0.0012);
  const std::vector<double> latest = shares("latest:0.99", 100, kDraws);
  EXPECT_EQ(std::max_element(latest.begin(), latest.end()) - latest.begin(), 99);
  EXPECT_NEAR(latest[99] / latest[89], std::pow(11, 0.99), 1.5);
}

TEST(Stream, LatestPrefersWhatIsStoredLast) {
  Options options;
  options.sets = 0.5;
  Distribution some = distribution("latest:0.99", 1000);
  Stream stream(options, &some, 0, 1);
  uint32_t newest = 999;
  uint64_t gets = 0, young = 0;
  for (int i = 0; i < 20'000; ++i) {
    Operation operation;
    uint32_t id = 0;
    stream.next(&operation, &id);
    if (operation == Operation::kSet) {
      ASSERT_EQ(id, ++newest);
      continue;
    }
    ASSERT_LE(id, newest);
    ++gets;
    if (newest - id < 200) ++young;
  }
  EXPECT_EQ(distribution("latest:0.99", 1000).draw(0.0), 999u);
  EXPECT_GT(static_cast<double>(young) / static_cast<double>(gets), 0.5);
}

TEST(Stream, OperationsComeInTheirShares) {
  Options options;
  options.sets = 0.2;
  options.deletes = 0.05;
  options.multiget = 7;
  Distribution some = distribution("uniform", 50);
  Stream stream(options, &some, 0, 1);
  uint32_t counts[kOperations] = {};
  std::vector<uint32_t> ids(7);
  for (int i = 0; i < 100'000; ++i) {
    Operation operation;
    const uint32_t keys = stream.next(&operation, ids.data());
    ASSERT_EQ(keys, operation == Operation::kGet ? 7u : 1u);
    ++counts[static_cast<size_t>(operation)];
  }
  EXPECT_NEAR(counts[1], 20'000, 700);
  EXPECT_NEAR(counts[2], 5'000, 400);
}

TEST(Stream, SeedAndThreadMakeTheRequests) {
  const auto first_keys = [](uint64_t seed, uint32_t thread) {
    Options options;
    options.seed = seed;
    Distribution some = distribution("zipf:0.99", 1'000'000);
    Stream stream(options, &some, thread, 4);
    std::vector<uint32_t> ids(50);
    Operation operation;
    for (uint32_t& id : ids) stream.next(&operation, &id);
    return ids;
  };
  EXPECT_EQ(first_keys(1, 0), first_keys(1, 0));
  EXPECT_NE(first_keys(1, 0), first_keys(2, 0));
  EXPECT_NE(first_keys(1, 0), first_keys(1, 1));
}

TEST(Distribution, RefusesWhatItDoesNotKnow) {
  for (const char* text : {"", "zipf", "zipf:", "zipf:x", "zipf:-1", "zipf:9", "zipf:1x", "normal",
                           "uniform:1", "trace:", "latest"}) {
    Distribution out;
    std::string why;
    EXPECT_FALSE(Distribution::parse(text, &out, &why)) << text;
    EXPECT_NE(why.find("zipf:EXPONENT"), std::string::npos);
  }
}

TEST(Trace, IsReplayedInOrderAndAgain) {
  Trace trace;
  std::string why;
  ASSERT_TRUE(read("# comment\nget apple\nget pear\n\nset apple 120\r\ndelete pear\nget fig\n",
                   &trace, &why))
      << why;
  EXPECT_EQ(trace.keys(), 3u);
  EXPECT_EQ(trace.value_size(0), 120u);
  EXPECT_EQ(trace.value_size(1), 33u);
  Distribution some;
  ASSERT_TRUE(Distribution::parse("trace:x", &some, &why));
  some.prepare(trace.keys(), &trace);
  Options options;
  options.multiget = 10;
  Stream stream(options, &some, 0, 1);
  const Keyspace keys(1, trace);
  std::string seen;
  for (int i = 0; i < 5; ++i) {
    Operation operation;
    uint32_t ids[10];
    const uint32_t count = stream.next(&operation, ids);
    seen += kOperationNames[static_cast<size_t>(operation)];
    for (uint32_t k = 0; k < count; ++k) {
      char key[bench::kKeySizeMax];
      seen += " " + std::string(key, keys.write_key(ids[k], key));
    }
    seen += "\n";
  }
  EXPECT_EQ(seen, "get apple pear\nset apple\ndelete pear\nget fig\nget apple pear\n");
}

TEST(Trace, ReadsTwittersColumns) {
  Trace trace;
  std::string why;
  ASSERT_TRUE(
      read("0,q:q:1:8WTfjZU14ee,17,213,4,get,0\n0,yDqF:3q:1,12,0,5,gets,0\n"
           "1,yDqF:3q:1,12,77,5,set,86400\n2,yDqF:3q:1,12,0,5,delete,0\n",
           &trace, &why))
      << why;
  EXPECT_EQ(trace.keys(), 2u);
  EXPECT_EQ(trace.value_size(0), 213u);
  EXPECT_EQ(trace.value_size(1), 77u);
  ASSERT_EQ(trace.entries().size(), 4u);
  EXPECT_EQ(trace.entries()[2].operation, Operation::kSet);
  EXPECT_EQ(trace.entries()[3].operation, Operation::kDelete);
}

TEST(Trace, ReadsTimeKeyAndSize) {
  Trace trace;
  std::string why;
  ASSERT_TRUE(read("time,obj_id,obj_size\n1,77,4096\n2,78,5000000000\n3,77,10\n", &trace, &why))
      << why;
  EXPECT_EQ(trace.keys(), 2u);
  EXPECT_EQ(trace.value_size(0), 4096u);
  EXPECT_EQ(trace.value_size(1), bench::kValueSizeMax);
  ASSERT_EQ(trace.entries().size(), 3u);
  EXPECT_EQ(trace.entries()[2].id, 0u);
  EXPECT_EQ(trace.entries()[2].operation, Operation::kGet);
  ASSERT_TRUE(read("get a,b,c\n", &trace, &why)) << why;  // a key may hold commas
  EXPECT_EQ(trace.keys(), 1u);
}

TEST(Trace, ThreadsShareIt) {
  std::string text;
  for (int i = 0; i < 10; ++i) text += "get key" + std::to_string(i) + "\n";
  Trace trace;
  std::string why;
  ASSERT_TRUE(read(text, &trace, &why));
  Distribution some;
  ASSERT_TRUE(Distribution::parse("trace:x", &some, &why));
  some.prepare(trace.keys(), &trace);
  std::set<uint32_t> ids;
  for (uint32_t thread = 0; thread < 3; ++thread) {
    Stream stream(Options(), &some, thread, 3);
    for (int i = 0; i < 4; ++i) {
      Operation operation;
      uint32_t id = 0;
      stream.next(&operation, &id);
      ids.insert(id);
    }
  }
  EXPECT_EQ(ids.size(), 10u);
}

TEST(Trace, SaysWhichLineIsWrong) {
  const std::string long_key(251, 'k');
  for (const std::string& line :
       {std::string("got x"), std::string("get"), std::string("get "), std::string("get a b"),
        std::string("set a"), std::string("set a 1000001"), std::string("set a -1"),
        "get " + long_key, std::string("0,key,3,x,1,get,0"), std::string("0,key,x"),
        std::string("0,key,"), std::string("0,key,3,1,1,push,0")}) {
    Trace trace;
    std::string why;
    EXPECT_FALSE(read("get fine\n" + line + "\n", &trace, &why)) << line;
    EXPECT_NE(why.find("line 2"), std::string::npos) << why;
  }
  Trace trace;
  std::string why;
  EXPECT_FALSE(read("# nothing\n", &trace, &why));
}

}  // namespace
}  // namespace warpcache::load
