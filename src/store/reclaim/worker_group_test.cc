// SPDX-License-Identifier: Apache-2.0
//
// Maintenance by a worker group does what one thread does.
#include <ostream>
#include <tuple>

#include "base/testing/effort.h"
#include "store/testing/worker_group_fixture.h"

namespace warpcache::store {
namespace {

// The contents of a store: keys in all states, in segments of many small or few large items.
struct Content {
  uint64_t memory = 8 * kMiB;
  uint64_t keys = 20'000;
  uint64_t value_min = 16;
  uint64_t value_max = 100;
  char fill = 0;             // every byte of the values; 0: values of make_value()
  uint32_t rule_by_day = 0;  // the number of the rule that ThreadSanitizer sees in CI
};

// How a failure names it.
void PrintTo(const Content& content, std::ostream* out) {
  *out << content.keys << " values of " << content.value_min << " to " << content.value_max
       << " bytes in " << content.memory << " bytes";
}

std::string value_of_key(const Content& content, uint64_t key) {
  const uint64_t span = content.value_max - content.value_min + 1;
  const size_t size = content.value_min + key * 7919 % span;
  return content.fill == 0 ? make_value(key, 1, size) : std::string(size, content.fill);
}

std::unique_ptr<Store> make_filled(const Content& content) {
  StoreConfig config = quiet_config(content.memory);
  config.segment_size = 64 * 1024;  // of many items each, also of the longest
  auto store = make_store(config);
  Worker worker(store.get());
  for (uint64_t key = 0; key < content.keys; ++key) {
    const uint32_t expiry = key % 7 == 0 ? 50 : key % 7 == 1 ? 500 : 0;
    EXPECT_EQ(worker.set(key_name(key), value_of_key(content, key), expiry), Status::kOk);
    for (uint64_t reads = key / 3 % 5; reads > 1; --reads) worker.get(key_name(key));
    if (key % 5 == 0) worker.erase(key_name(key));
    if (key % 11 != 0) continue;
    EXPECT_EQ(worker.set(key_name(key / 2), value_of_key(content, key / 2)), Status::kOk);
  }
  // set_clock() would remove what has expired.
  store_relaxed(&store->ref().core.shared->now, 60);
  return store;
}

std::vector<SegmentId> sealed_segments(const Core& core) {
  std::vector<SegmentId> sealed;
  for (SegmentId id = 1; id < core.shared->segment_top; ++id) {
    const SegmentState state = core.segment(id).load_state();
    if (state == SegmentState::kYoung || state == SegmentState::kMain) sealed.push_back(id);
  }
  EXPECT_GT(sealed.size(), 10u);
  return sealed;
}

// Empties every segment that is sealed now.
void empty_all(ThreadWorkerGroup& worker_group, const KeepRule& rule) {
  const Core core = worker_group.core();
  Reclaimer reclaimer(core, worker_group.leader(), worker_group.worker_group());
  for (const SegmentId id : sealed_segments(core)) {
    EXPECT_EQ(reclaimer.empty_segment(id, rule, false), Emptied::kDone);
    EXPECT_GT(reclaimer.free_retired(), 0u);
  }
}

void expect_same(Store& one, Store& other, const Content& content) {
  Worker left(&one);
  Worker right(&other);
  left.enter();
  right.enter();
  for (uint64_t key = 0; key < content.keys; ++key) {
    const Found a = left.find(key_name(key));
    const Found b = right.find(key_name(key));
    ASSERT_EQ(static_cast<bool>(a), static_cast<bool>(b)) << key;
    if (!a) continue;
    ASSERT_EQ(a.set->counter(a.way), b.set->counter(b.way)) << key;
    ASSERT_EQ(a.item->load_cas(), b.item->load_cas()) << key;
    ASSERT_EQ(a.item->load_expiry(), b.item->load_expiry()) << key;
    ASSERT_EQ(a.item->load_bits(), b.item->load_bits()) << key;
    ASSERT_EQ(left.value_of(*a.item), value_of_key(content, key));
    ASSERT_EQ(right.value_of(*b.item), value_of_key(content, key));
  }
  const StoreStats a = one.stats();
  const StoreStats b = other.stats();
  for (uint32_t i = 0; i < static_cast<uint32_t>(StoreCounter::kCount); ++i) {
    EXPECT_EQ(a.counter[i], b.counter[i]) << i;
  }
  EXPECT_EQ(one.census().live_bytes, other.census().live_bytes);
}

struct NumberedRule {
  uint32_t number;
  KeepRule rule;
};

void PrintTo(const NumberedRule& numbered, std::ostream* out) {
  *out << "rule " << numbered.number;
}

class WorkerGroupTest : public testing::TestWithParam<std::tuple<Content, NumberedRule>> {};

TEST_P(WorkerGroupTest, EmptiesSegmentsAsOneDoes) {
  const auto& [content, numbered] = GetParam();
  const KeepRule& rule = numbered.rule;
  if (numbered.number != content.rule_by_day && thread_sanitizer_by_day()) {
    GTEST_SKIP() << "tested at night";
  }
  const auto one = make_filled(content);
  const auto other = make_filled(content);
  {
    ThreadWorkerGroup alone(one.get(), 0);
    ThreadWorkerGroup worker_group(other.get(), 3);
    empty_all(alone, rule);
    empty_all(worker_group, rule);
  }
  expect_same(*one, *other, content);
  check_accounts(*one);
  check_accounts(*other);
  if (rule.counter_min < 4) {
    EXPECT_GT(other->stats().get(StoreCounter::kMovedItems), content.keys / 10);
  }
  if (rule.counter_min > 0) {
    EXPECT_GT(other->stats().get(StoreCounter::kEvicted), content.keys / 10);
  }
}

// Values of equal bytes: read as a header they give an item of any size, of none or of an enormous
// one.
INSTANTIATE_TEST_SUITE_P(
    Contents, WorkerGroupTest,
    testing::Combine(testing::Values(Content{}, Content{8 * kMiB, 20'000, 1, 100, '\1', 1},
                                     Content{8 * kMiB, 4'000, 1000, 1100, '\xff', 2},
                                     Content{16 * kMiB, 3'000, 16, 5000, 0, 3},
                                     Content{16 * kMiB, 400, 1000, 31'000, 0, 1},
                                     Content{512 * kMiB, 100'000, 16, 150, 0, 2}),
                     testing::Values(NumberedRule{0, {0, Generation::kMain, Spend::kNothing}},
                                     NumberedRule{1, {1, Generation::kMain, Spend::kAll}},
                                     NumberedRule{2, {2, Generation::kYoung, Spend::kOne}},
                                     NumberedRule{3, {4, Generation::kMain, Spend::kNothing}})));

TEST(WorkerGroup, SweepsAsOneDoes) {
  const Content content;
  const auto one = make_filled(content);
  const auto other = make_filled(content);
  const uint64_t items = one->stats().get(StoreCounter::kItems);
  {
    ThreadWorkerGroup alone(one.get(), 0);
    ThreadWorkerGroup worker_group(other.get(), 3);
    for (ThreadWorkerGroup* each : {&alone, &worker_group}) {
      const Core core = each->core();
      each->worker_group()->sweep = {0, load_relaxed(&core.shared->pair_count)};
      each->worker_group()->run(core, *each->leader(), Task::kSweep);
    }
  }
  expect_same(*one, *other, content);
  check_accounts(*one);
  check_accounts(*other);
  const uint64_t expired = other->stats().get(StoreCounter::kExpired);
  EXPECT_GT(expired, content.keys / 20);
  EXPECT_EQ(other->stats().get(StoreCounter::kItems) + expired, items);
}

// Items that must stay and find no space keep their places; the rest of the segment can be emptied
// later.
TEST(WorkerGroup, FindsNowhereToCopyTo) {
  const Content content;
  const auto store = make_filled(content);
  ThreadWorkerGroup worker_group(store.get(), 3);
  const Core core = worker_group.core();
  const uint64_t items = store->stats().get(StoreCounter::kItems);
  Reclaimer reclaimer(core, worker_group.leader(), worker_group.worker_group());
  const SegmentId taken = take_chain(core, {core.shared->free_count - 1, 0}, 0,
                                     SegmentState::kStaged, Generation::kYoung);
  ASSERT_NE(taken, kNoSegment);
  const KeepRule all;
  const auto empty = [&](bool must_keep) {
    return reclaimer.empty_segment(core.shared->young.oldest, all, must_keep);
  };
  // One segment is free: it takes the items of the first segment and some of the next ones.
  Emptied emptied = Emptied::kDone;
  for (uint32_t i = 0; i < 20 && emptied == Emptied::kDone; ++i) emptied = empty(true);
  ASSERT_EQ(emptied, Emptied::kNoSpace);
  check_accounts(*store);
  StoreStats stats = store->stats();
  EXPECT_EQ(stats.get(StoreCounter::kEvicted), 0u);
  EXPECT_EQ(stats.get(StoreCounter::kItems) + stats.get(StoreCounter::kExpired), items);
  EXPECT_EQ(empty(false), Emptied::kDone);
  check_accounts(*store);
  stats = store->stats();
  EXPECT_GT(stats.get(StoreCounter::kEvicted), 0u);
  EXPECT_EQ(stats.get(StoreCounter::kItems) + stats.get(StoreCounter::kExpired) +
                stats.get(StoreCounter::kEvicted),
            items);
  free_chain(core, taken);
  EXPECT_EQ(empty(true), Emptied::kDone);
  check_accounts(*store);
}

// The merged shares are the result of one worker.
TEST(WorkerGroup, SurveysAsOneDoes) {
  const auto store = make_filled({});
  const Core core = store->ref().core;
  const SegmentId first = sealed_segments(core).front();
  for (const bool flushed : {false, true}) {
    for (uint32_t start = 0; start < 20; start += 3) {
      SurveyTask task;
      task.first = first;
      task.end = core.shared->segment_top;
      task.start = first + start;
      task.count = task.end - first - start % 2 * 10;
      task.now = core.shared->now;
      task.oldest_inside = UINT64_MAX;
      task.flush_ticket = flushed ? 10 : 0;
      SurveyTask shared = task;
      survey_share(core, task, {});
      for (uint32_t worker = 0; worker < 7; ++worker) survey_share(core, shared, {worker, 7});
      const Survey one = surveyed(task);
      const Survey several = surveyed(shared);
      EXPECT_EQ(one.dead, several.dead);
      EXPECT_EQ(one.wasteful, several.wasteful);
      EXPECT_EQ(one.waste, several.waste);
      EXPECT_EQ(one.waste_bytes, several.waste_bytes);
      EXPECT_EQ(one.outdated, several.outdated);
      EXPECT_EQ(one.flushed, several.flushed);
      EXPECT_EQ(one.flushed != kNoSegment, flushed);
      EXPECT_EQ(one.in_use, several.in_use);
      EXPECT_NE(one.wasteful, kNoSegment);
    }
  }
}

// The first dead segment is found, whichever worker scans it.
TEST(WorkerGroup, FindsTheFirstDeadSegment) {
  const auto store = make_filled({});
  const Core core = store->ref().core;
  const std::vector<SegmentId> sealed = sealed_segments(core);
  for (const uint32_t dead : {2u, 5u, 7u}) core.segment(sealed[dead]).deadline = 1;
  SurveyTask task;
  task.first = core.shared->index_segments;
  task.end = core.shared->segment_top;
  task.count = task.end - task.first;
  task.now = core.shared->now;
  task.oldest_inside = UINT64_MAX;
  for (const auto& [start, dead] : {std::pair{3u, 5u}, {6u, 7u}, {8u, 2u}}) {
    SurveyTask shared = task;
    shared.start = sealed[start];
    for (uint32_t worker = 5; worker-- > 0;) survey_share(core, shared, {worker, 5});
    EXPECT_EQ(surveyed(shared).dead, sealed[dead]);
  }
}

TEST(WorkerGroup, FindsTheOldestEpoch) {
  std::vector<EpochSlot> slots(100);
  for (uint32_t i = 0; i < 100; ++i) slots[i].epoch = i % 3 == 0 ? kEpochIdle : 1000 - i;
  slots[41].epoch = 7;
  for (const uint32_t workers : {1u, 3u, 64u, 200u}) {
    uint64_t oldest = UINT64_MAX;
    for (uint32_t worker = 0; worker < workers; ++worker) {
      oldest = std::min(oldest, oldest_epoch(slots.data(), 100, worker, workers));
    }
    EXPECT_EQ(oldest, 7u);
  }
}

}  // namespace
}  // namespace warpcache::store
