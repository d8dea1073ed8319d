// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "nic_cache/access_pattern.h"
#include "nic_cache/sweep.h"

namespace warpcache::nic {
namespace {

using sim::Operation;

// Requests as they are listed.
class ListedTrace final : public sim::Trace {
 public:
  explicit ListedTrace(std::vector<std::pair<Operation, uint64_t>> list) : list_(std::move(list)) {}

  size_t read(sim::Request* out, size_t count) override {
    const size_t now = std::min(count, list_.size() - done_);
    for (size_t i = 0; i < now; ++i) {
      const auto& [operation, key] = list_[done_ + i];
      out[i] = {key, 40, 10, operation};
    }
    done_ += now;
    return now;
  }
  uint64_t length() const override { return list_.size(); }

 private:
  std::vector<std::pair<Operation, uint64_t>> list_;
  size_t done_ = 0;
};

constexpr uint64_t kFar = uint64_t{1} << 39;  // a number that no array could hold

PackedTrace listed() {
  ListedTrace load({{Operation::kSet, 7}, {Operation::kSet, kFar}, {Operation::kSet, 7}});
  ListedTrace run({{Operation::kGet, 7},
                   {Operation::kSet, 9},
                   {Operation::kGet, kFar},
                   {Operation::kDelete, 7},
                   {Operation::kGet, 7},
                   {Operation::kGet, 7}});
  return {"listed", &load, &run, 1};
}

Setting setting_of(uint32_t rows, uint32_t ways) {
  Setting setting;
  setting.geometry.rows = rows;
  setting.geometry.ways = ways;
  setting.geometry.replacement = Replacement::kLru;
  return setting;
}

TEST(PackedTrace, NumbersKeysAsTheyAppear) {
  const PackedTrace trace = listed();
  EXPECT_EQ(trace.keys(), 3u);
  EXPECT_EQ(trace.load_steps(), 3u);
  EXPECT_EQ(trace.steps(), 9u);
  EXPECT_EQ(trace.load_bytes(), 100u);
  const std::vector<uint32_t> keys{0, 1, 0, 0, 2, 1, 0, 0, 0};
  for (uint64_t at = 0; at < trace.steps(); ++at) EXPECT_EQ(trace.step(at).key, keys[at]) << at;
  EXPECT_EQ(trace.step(3).operation, Operation::kGet);
  EXPECT_EQ(trace.step(6).operation, Operation::kDelete);
  EXPECT_EQ(trace.bytes(2), 50u);
  EXPECT_NE(trace.hash(0), trace.hash(1));
}

TEST(AccessPattern, ByHand) {
  const PackedTrace trace = listed();  // keys 0 2 1 0 0 0
  EXPECT_EQ(first_accesses(trace, 5), (std::vector<uint32_t>{0, 1, 2, 0, 0}));
  EXPECT_EQ(interval_counts(trace), (std::vector<uint64_t>{2, 1}));  // 1, 1 and 3
  const std::vector<CdfPoint> cdf = key_cdf(trace, 6);
  EXPECT_DOUBLE_EQ(cdf.front().requests, 0);
  EXPECT_DOUBLE_EQ(cdf.back().keys, 1);
  EXPECT_DOUBLE_EQ(cdf.back().requests, 1);
  for (const CdfPoint& point : cdf) {
    if (std::abs(point.keys - 2.0 / 3) < 1e-9) {
      EXPECT_DOUBLE_EQ(point.requests, 2.0 / 6);
    }
  }
}

TEST(Replay, CountsWhatIsMeasuredOnly) {
  const Result result = replay(listed(), setting_of(2, 8));
  EXPECT_EQ(result.front.gets, 4u);
  EXPECT_EQ(result.front.hits, 2u);  // then the key is deleted
  EXPECT_EQ(result.front.sets, 1u);
  EXPECT_EQ(result.front.deletes, 1u);
  EXPECT_EQ(result.host.get_misses, 2u);
  EXPECT_EQ(result.host.sets, 1u);
  EXPECT_EQ(result.items_end, 2u);
  EXPECT_EQ(result.stale, 0u);
  EXPECT_DOUBLE_EQ(result.miss_rate(), 0.5);
}

// As hash-sim counts them: without a load phase every first GET misses, and a SET follows it.
TEST(Replay, MissesOfAFileAreFollowedBySets) {
  ListedTrace run({{Operation::kGet, 1},
                   {Operation::kGet, 2},
                   {Operation::kGet, 1},
                   {Operation::kGet, 3},
                   {Operation::kGet, 2}});
  const PackedTrace trace("listed", nullptr, &run, 1);
  Setting setting = setting_of(2, 8);
  EXPECT_EQ(replay(trace, setting).front.hits, 0u);
  setting.refill = true;
  const Result result = replay(trace, setting);
  EXPECT_EQ(result.front.hits, 2u);
  EXPECT_EQ(result.refills, 3u);
  EXPECT_EQ(result.host.sets, 3u);
  EXPECT_EQ(result.stale, 0u);
  setting.reply_requests = 1;  // as above, but the reply to the second 1 is on its way
  EXPECT_EQ(replay(trace, setting).front.hits, 2u);
  setting.reply_requests = 9;  // all replies come after the last request
  EXPECT_EQ(replay(trace, setting).front.hits, 0u);
  EXPECT_EQ(replay(trace, setting).refills, 5u);
}

// A SET between a miss and its reply, two requests later.
TEST(Replay, LateRepliesOfUnsafeReadAllocateAreStale) {
  ListedTrace load({{Operation::kSet, 1}, {Operation::kSet, 2}});
  ListedTrace run(
      {{Operation::kGet, 1}, {Operation::kSet, 1}, {Operation::kGet, 3}, {Operation::kGet, 1}});
  const PackedTrace trace("listed", &load, &run, 1);
  Setting setting = setting_of(1, 1);  // 2 has taken the place of 1
  setting.reply_requests = 2;
  setting.policies.allocate = ReadAllocate::kUnsafe;
  EXPECT_EQ(replay(trace, setting).stale, 1u);
  setting.policies.allocate = ReadAllocate::kSafe;
  EXPECT_EQ(replay(trace, setting).stale, 0u);
  EXPECT_EQ(replay(trace, setting).front.killed, 1u);
}

Source small_source() {
  Source source;
  source.records = 1u << 12;
  source.requests = 20'000;
  return source;
}

Lists one_of_each() {
  Lists lists;
  lists.sizes = {Size{}};
  lists.replacements = {Replacement::kLru};
  lists.ways = {8};
  lists.tag_bits = {17};
  lists.storages = {Storage::kSlots};
  lists.slot_bytes = {512};
  lists.allocates = {ReadAllocate::kSafe};
  lists.writes = {WritePolicy::kForward};
  lists.reply_requests = {0};
  lists.hosts = {HostKind::kLru};
  return lists;
}

TEST(Combinations, WithoutLoadPhaseTheHostIsRefilled) {
  Source source = small_source();
  std::string why;
  Lists lists = one_of_each();
  const auto loaded = make_packed_trace(source, "b", &why);
  EXPECT_FALSE(combinations(lists, *loaded, &why).at(0).refill);
  source.load = false;
  const auto empty = make_packed_trace(source, "b", &why);
  EXPECT_TRUE(combinations(lists, *empty, &why).empty());
  EXPECT_NE(why.find("dram:BYTES or bits:BITS"), std::string::npos) << why;
  ASSERT_TRUE(parse_size("dram:65536", &lists.sizes[0]));
  EXPECT_TRUE(combinations(lists, *empty, &why).at(0).refill);
}

TEST(Sweep, SizesAreRead) {
  Size size;
  ASSERT_TRUE(parse_size("1/32", &size));
  EXPECT_EQ(size.kind, Size::Kind::kRatio);
  EXPECT_DOUBLE_EQ(size.amount, 1.0 / 32);
  ASSERT_TRUE(parse_size("dram:1048576", &size));
  EXPECT_EQ(size.kind, Size::Kind::kDram);
  ASSERT_TRUE(parse_size("bits:4980736", &size));
  EXPECT_EQ(size.kind, Size::Kind::kBlockMemory);
  EXPECT_DOUBLE_EQ(size.amount, 4980736);
  for (const char* text : {"", "1/", "/2", "1/0", "-1", "x", "bits:", "1/2/3"}) {
    EXPECT_FALSE(parse_size(text, &size)) << text;
  }
}

TEST(Sweep, EveryCombinationHasTheSizeThatIsAskedFor) {
  std::string why;
  const auto trace = make_packed_trace(small_source(), "a", &why);
  ASSERT_NE(trace, nullptr) << why;
  Lists lists = one_of_each();
  lists.ways = {1, 8};
  lists.writes = {WritePolicy::kBack, WritePolicy::kForward};
  const std::vector<Setting> settings = combinations(lists, *trace, &why);
  ASSERT_EQ(settings.size(), 4u);
  for (const Setting& setting : settings) {
    EXPECT_EQ(setting.host_bytes, trace->load_bytes());
    EXPECT_EQ(setting.geometry.entries(), (1u << 12) / 4);
  }
  lists.sizes[0] = {Size::Kind::kBlockMemory, 8.0 * 19 * 64};
  lists.replacements = {Replacement::kBitPlru};
  lists.ways = {8};
  EXPECT_EQ(combinations(lists, *trace, &why).at(0).geometry.rows, 64u);
  lists.sizes[0].amount = 1;
  EXPECT_TRUE(combinations(lists, *trace, &why).empty());
  EXPECT_FALSE(why.empty());
}

TEST(Replay, OurOwnStoreCanBeTheHost) {
  std::string why;
  Source source = small_source();
  source.records = 1u << 14;  // 8 MiB
  const auto trace = make_packed_trace(source, "a", &why);
  Lists lists = one_of_each();
  lists.hosts = {HostKind::kLru, HostKind::kStore};
  const std::vector<Setting> settings = combinations(lists, *trace, &why);
  ASSERT_EQ(settings.size(), 2u);
  const Result lru = replay(*trace, settings[0]);
  const Result store = replay(*trace, settings[1]);
  EXPECT_EQ(store.stale, 0u);
  EXPECT_EQ(lru.host.get_misses, 0u);    // everything fits
  EXPECT_GT(store.host.get_misses, 0u);  // index and headers take their part of the memory
  lists.host_capacity = 0;
  EXPECT_TRUE(combinations(lists, *trace, &why).empty());
}

TEST(Sweep, UnknownWorkloadsAreRefused) {
  std::string why;
  EXPECT_EQ(make_packed_trace(small_source(), "e", &why), nullptr);
  EXPECT_FALSE(why.empty());
}

// The same seed gives the same figures on any number of threads, another seed others.
TEST(Sweep, IsDeterminedByTheSeed) {
  std::string why;
  Lists lists = one_of_each();
  lists.replacements = {Replacement::kFifo, Replacement::kLru, Replacement::kLfu};
  const auto hits = [&](uint64_t seed, uint32_t threads) {
    Source source = small_source();
    source.seed = seed;
    const auto trace = make_packed_trace(source, "d", &why);
    std::vector<uint64_t> found;
    size_t last_done = 0;
    for (const Result& result : run_all(*trace, combinations(lists, *trace, &why), threads,
                                        [&](size_t done) { last_done = done; })) {
      found.push_back(result.front.hits);
    }
    EXPECT_EQ(last_done, 3u);
    return found;
  };
  EXPECT_EQ(hits(1, 1), hits(1, 3));
  EXPECT_NE(hits(1, 1), hits(2, 1));
}

// Every workload through caches of every kind: no hit is ever stale, and counts add up.
TEST(Replay, EveryPolicyIsConsistentOnEveryWorkload) {
  std::string why;
  Lists lists = one_of_each();
  lists.replacements = {Replacement::kLfu, Replacement::kBitPlru};
  lists.tag_bits = {0, 3, 17};
  lists.storages = {Storage::kSlots, Storage::kBlocks};
  lists.allocates = {ReadAllocate::kNone, ReadAllocate::kSafe};
  lists.writes = {WritePolicy::kBack, WritePolicy::kForward};
  lists.reply_requests = {0, 31};
  lists.host_capacity = 0;
  for (const char* mix : {"a", "d", "60:30:5:5"}) {
    Source source = small_source();
    source.sizes = "uniform:16:1:600";
    source.requests = 5'000;
    const auto trace = make_packed_trace(source, mix, &why);
    ASSERT_NE(trace, nullptr) << why;
    for (const Setting& setting : combinations(lists, *trace, &why)) {
      const Result result = replay(*trace, setting);
      EXPECT_EQ(result.stale, 0u);
      EXPECT_EQ(result.front.gets - result.front.hits, result.host.gets);
      EXPECT_EQ(result.front.gets + result.front.sets + result.front.deletes, 5'000u);
      EXPECT_LE(result.items_end, setting.geometry.entries());
      if (setting.policies.write == WritePolicy::kForward) {
        EXPECT_EQ(result.host.sets, result.front.sets);
      }
    }
  }
}

}  // namespace
}  // namespace warpcache::nic
