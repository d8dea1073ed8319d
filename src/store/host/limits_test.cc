// SPDX-License-Identifier: Apache-2.0
//
// Memory limits, refusing instead of evicting, and time.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <random>
#include <thread>
#include <utility>

#include "base/testing/effort.h"
#include "base/testing/patience.h"
#include "store/testing/store_fixture.h"

namespace warpcache::store {
namespace {

// Sets keys from `first` on until one is refused. Returns how many were stored.
uint64_t fill(Worker& worker, uint64_t first, uint64_t count_max, uint64_t value_max) {
  for (uint64_t i = 0; i < count_max; ++i) {
    const uint64_t key = first + i;
    const uint64_t size = 16 + key * 7919 % value_max;
    if (worker.set(key_name(key), make_value(key, 1, size)) != Status::kOk) return i;
  }
  return count_max;
}

class KeepAll : public testing::TestWithParam<uint64_t> {};

// Memory without live data can be used again, however it is scattered.
TEST_P(KeepAll, StoresWhileMemoryIsFree) {
  if (GetParam() > 8 * kMiB && thread_sanitizer_by_day()) GTEST_SKIP() << "tested at night";
  StoreConfig config = quiet_config(GetParam());
  config.keep_all = true;
  const auto store = make_store(config);
  Worker worker(store.get());
  const uint64_t stored = fill(worker, 0, 1'000'000, 1000);
  ASSERT_GT(stored, GetParam() / 1000);
  for (uint64_t key = 0; key < stored; ++key) ASSERT_TRUE(worker.get(key_name(key))) << key;
  EXPECT_EQ(store->stats().get(StoreCounter::kEvicted), 0u);
  // Every third key is deleted: dead space everywhere, and no empty segment.
  uint64_t deleted_bytes = 0;
  for (uint64_t key = 0; key < stored; key += 3) {
    deleted_bytes +=
        item_footprint(static_cast<uint32_t>(key_name(key).size()), 16 + key * 7919 % 1000);
    ASSERT_TRUE(worker.erase(key_name(key)));
  }
  const uint64_t before = store->census().live_bytes;
  EXPECT_GT(fill(worker, 2'000'000, 1'000'000, 1000), stored / 5);
  EXPECT_GT(store->census().live_bytes - before, deleted_bytes * 3 / 4);
  for (uint64_t key = 0; key < stored; ++key)
    ASSERT_EQ(worker.get(key_name(key)), key % 3 != 0) << key;
  EXPECT_EQ(store->stats().get(StoreCounter::kEvicted), 0u);
  EXPECT_GT(store->census().live_bytes, GetParam() / 2);
}

// Expired and flushed items are free space too.
TEST_P(KeepAll, ReusesWhatIsDeadByTime) {
  if (GetParam() > 8 * kMiB && thread_sanitizer_by_day()) GTEST_SKIP() << "tested at night";
  StoreConfig config = quiet_config(GetParam());
  config.keep_all = true;
  const auto store = make_store(config);
  Worker worker(store.get());
  uint64_t stored = 0;
  // Half of them expire, mixed with others.
  while (worker.set(key_name(stored), std::string(500, 'x'), stored % 2 == 0 ? 50 : 0) ==
         Status::kOk)
    ++stored;
  store->set_clock(60);
  const uint64_t more = fill(worker, 1'000'000, 1'000'000, 1000);
  EXPECT_GT(more, stored / 3);
  for (uint64_t key = 0; key < stored; ++key) ASSERT_EQ(worker.get(key_name(key)), key % 2 == 1);
  store->flush_all();
  for (uint64_t key = 0; key < stored; ++key) ASSERT_FALSE(worker.get(key_name(key)));
  EXPECT_GT(fill(worker, 3'000'000, 1'000'000, 1000), stored / 2);
  EXPECT_EQ(store->stats().get(StoreCounter::kEvicted), 0u);
}

INSTANTIATE_TEST_SUITE_P(Memories, KeepAll, testing::Values(2 * kMiB, 8 * kMiB, 32 * kMiB));

TEST(TinyMemory, WorksWithItemsOfEverySize) {
  if (thread_sanitizer_by_day()) GTEST_SKIP() << "tested at night";
  const auto store = make_store(quiet_config(2 * kMiB));
  EXPECT_EQ(store->stats().segment_limit, 128u);
  Worker worker(store.get());
  std::mt19937_64 random(1);
  std::string value;
  for (uint64_t i = 0; i < 5000; ++i) {
    const uint64_t size = 16 + (uint64_t{1} << (random() % 18)) + random() % 100;
    ASSERT_EQ(worker.set(key_name(i), make_value(i, 1, size)), Status::kOk) << i << " " << size;
    ASSERT_TRUE(worker.get(key_name(i), &value));
    ASSERT_EQ(check_value(i, value), 1u);
  }
}

TEST(Limit, GoesDownAndUp) {
  if (thread_sanitizer_by_day()) GTEST_SKIP() << "tested at night";
  const auto store = make_store(quiet_config(64 * kMiB));
  Worker worker(store.get());
  EXPECT_EQ(fill(worker, 0, 100'000, 1000), 100'000u);
  std::string value;
  for (uint64_t key = 90'000; key < 100'000; ++key) worker.get(key_name(key));
  ASSERT_TRUE(store->set_memory_limit(16 * kMiB));
  EXPECT_EQ(store->stats().memory_limit, 64 * kMiB);  // the caller does not wait for maintenance
  store->maintain();
  StoreStats stats = store->stats();
  EXPECT_EQ(stats.memory_limit, 16 * kMiB);
  EXPECT_LE(stats.used_bytes, 16 * kMiB);
  EXPECT_LE(store->census().live_bytes, 16 * kMiB);
  uint64_t kept = 0;
  for (uint64_t key = 0; key < 100'000; ++key) {
    if (!worker.get(key_name(key), &value)) continue;
    ++kept;
    ASSERT_EQ(check_value(key, value), 1u);
  }
  EXPECT_GT(kept, 10'000u);
  EXPECT_EQ(kept, stats.get(StoreCounter::kItems));
  EXPECT_EQ(fill(worker, 200'000, 50'000, 1000), 50'000u);
  EXPECT_LE(store->stats().used_bytes, 16 * kMiB);

  const uint64_t evicted = store->stats().get(StoreCounter::kEvicted);
  ASSERT_TRUE(store->set_memory_limit(128 * kMiB));
  store->maintain();
  EXPECT_EQ(store->stats().memory_limit, 128 * kMiB);
  EXPECT_EQ(fill(worker, 300'000, 150'000, 1000), 150'000u);
  for (uint64_t key = 300'000; key < 450'000; ++key) ASSERT_TRUE(worker.get(key_name(key)));
  EXPECT_EQ(store->stats().get(StoreCounter::kEvicted), evicted);
  // The smallest limit is the index and a few segments; the largest is the reserved address space.
  EXPECT_FALSE(store->set_memory_limit(0));
  EXPECT_FALSE(store->set_memory_limit(uint64_t{1} << 60));
  store->maintain();
  EXPECT_EQ(store->stats().memory_limit, 128 * kMiB);
  EXPECT_EQ(fill(worker, 500'000, 20'000, 1000), 20'000u);
}

TEST(Limit, KeepAllShrinksAsFarAsItsItemsAllow) {
  StoreConfig config = quiet_config(16 * kMiB);
  config.keep_all = true;
  const auto store = make_store(config);
  Worker worker(store.get());
  ASSERT_EQ(fill(worker, 0, 10'000, 1000), 10'000u);
  ASSERT_TRUE(store->set_memory_limit(2 * kMiB));
  store->maintain();
  EXPECT_GE(store->stats().memory_limit, store->census().live_bytes);
  EXPECT_LT(store->stats().memory_limit, 16 * kMiB);
  for (uint64_t key = 0; key < 10'000; ++key) ASSERT_TRUE(worker.get(key_name(key)));
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
uint64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long long size = 0;
  unsigned long long resident = 0;
  const int read = file == nullptr ? 0 : std::fscanf(file, "%llu %llu", &size, &resident);
  if (file != nullptr) std::fclose(file);
  EXPECT_EQ(read, 2);
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
}

// The limit holds for the memory that the system counts: beside it are the segment table and a few
// other tables.
TEST(Limit, HoldsForResidentMemory) {
  constexpr uint64_t kOverhead = 2 * kMiB;
  const uint64_t before = resident_bytes();
  const auto store = make_store(quiet_config(64 * kMiB));
  Worker worker(store.get());
  for (uint64_t round = 0; round < 4; ++round) {
    ASSERT_EQ(fill(worker, round * 150'000, 150'000, round % 2 == 0 ? 1000 : 100), 150'000u);
    EXPECT_LE(resident_bytes(), before + 64 * kMiB + kOverhead);
  }
  EXPECT_GE(resident_bytes(), before + 60 * kMiB);
  ASSERT_TRUE(store->set_memory_limit(24 * kMiB));
  store->maintain();
  EXPECT_LE(resident_bytes(), before + 24 * kMiB + kOverhead);
}

// With less address space than wanted the limit can only be lowered; with too little for that no
// store is made.
TEST(Limit, WithLittleAddressSpace) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  const rlimit little = {2048 * kMiB, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  StoreConfig config = quiet_config(64 * kMiB);
  config.memory_reach = 8192 * kMiB;
  std::unique_ptr<Store> store;
  EXPECT_EQ(Store::create(config, &store), Status::kOk);
  EXPECT_FALSE(store->set_memory_limit(128 * kMiB));
  store.reset();
  config.memory_limit = 4096 * kMiB;
  EXPECT_EQ(Store::create(config, &store), Status::kOutOfMemory);
  EXPECT_EQ(store, nullptr);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}
#endif

TEST(Time, ItemsExpireAndTheirSegmentsComeBack) {
  const auto store = make_store(quiet_config(8 * kMiB));
  Worker worker(store.get());
  const uint64_t free_before = store->stats().free_segments;
  for (uint64_t key = 0; key < 3000; ++key)
    ASSERT_EQ(worker.set(key_name(key), std::string(1000, 'x'), 100), Status::kOk);
  EXPECT_TRUE(worker.touch(key_name(5), 500));
  EXPECT_LT(store->stats().free_segments, free_before - 40);
  store->set_clock(99);
  EXPECT_TRUE(worker.get(key_name(0)));
  store->set_clock(100);
  EXPECT_FALSE(worker.get(key_name(0)));
  EXPECT_TRUE(worker.get(key_name(5)));  // touched: raises its segment's deadline
  store->set_clock(101);
  EXPECT_GT(store->stats().free_segments, free_before - 8);
  EXPECT_GT(store->stats().get(StoreCounter::kExpired), 2700u);
  store->set_clock(499);
  EXPECT_TRUE(worker.get(key_name(5)));
  store->set_clock(500);
  EXPECT_FALSE(worker.get(key_name(5)));
}

// In large memories items share a segment with others of similar time to live: the segment dies as
// a whole, and nothing is copied.
TEST(Time, ShortLivedItemsStandTogether) {
  const auto store = make_store(quiet_config(4096 * kMiB));
  Worker worker(store.get());
  constexpr uint64_t kKeys = 40'000;
  const std::string value(250, 'x');
  for (uint64_t key = 0; key < kKeys; ++key) {
    ASSERT_EQ(worker.set(key_name(key), value, key % 2 == 0 ? 100 : 0), Status::kOk);
  }
  const uint64_t free_before = store->stats().free_segments;
  store->set_clock(100);
  EXPECT_GE(store->stats().free_segments, free_before + 4);
  EXPECT_EQ(store->stats().get(StoreCounter::kMovedItems), 0u);
  for (uint64_t key = 0; key < kKeys; ++key) ASSERT_EQ(worker.get(key_name(key)), key % 2 == 1);
}

TEST(Time, FlushNowAndLater) {
  const auto store = make_store(quiet_config(8 * kMiB));
  Worker worker(store.get());
  store->set_clock(10);
  ASSERT_EQ(worker.set("a", "1"), Status::kOk);
  store->flush_all();
  EXPECT_FALSE(worker.get("a"));
  ASSERT_EQ(worker.set("a", "2"), Status::kOk);
  EXPECT_TRUE(worker.get("a"));
  store->flush_all(5);
  store->set_clock(13);
  EXPECT_TRUE(worker.get("a"));
  store->set_clock(14);
  EXPECT_FALSE(worker.get("a"));
  ASSERT_EQ(worker.set("a", "2"), Status::kOk);
  store->set_clock(15);
  EXPECT_FALSE(worker.get("a"));
  ASSERT_EQ(worker.set("a", "3"), Status::kOk);
  EXPECT_TRUE(worker.get("a"));
  store->flush_all(100);
  store->flush_all(2);  // replaces the one that has not taken effect
  store->set_clock(17);
  EXPECT_FALSE(worker.get("a"));
  ASSERT_EQ(worker.set("a", "4"), Status::kOk);
  store->set_clock(200);
  EXPECT_TRUE(worker.get("a"));
  store->flush_all(1);
  EXPECT_FALSE(worker.get("a"));
  ASSERT_EQ(worker.set("a", "5"), Status::kOk);
  store->set_clock(201);
  EXPECT_FALSE(worker.get("a"));
  ASSERT_EQ(worker.set("a", "6"), Status::kOk);
  store->flush_all(5);
  store->cancel_flush();
  store->set_clock(210);
  EXPECT_TRUE(worker.get("a"));
}

// Flushed items are reclaimed before live ones, wherever they lie.
TEST(Time, AfterAFlushAllOfTheMemoryIsThereForNewItems) {
  const auto store = make_store(quiet_config(16 * kMiB));
  Worker worker(store.get());
  const std::string value(1000, 'x');
  constexpr uint64_t kOld = 30'000;
  constexpr uint64_t kNew = 12'000;  // about 13 MB
  for (uint64_t key = 0; key < kOld; ++key) {
    ASSERT_EQ(worker.set(key_name(key), value), Status::kOk);
    ASSERT_TRUE(worker.get(key_name(key)));  // so that it is kept as long as possible
  }
  ASSERT_GT(store->stats().main_segments, store->stats().young_segments);
  store->flush_all();
  const uint64_t evicted_before = store->stats().get(StoreCounter::kEvicted);
  for (uint64_t key = kOld; key < kOld + kNew; ++key)
    ASSERT_EQ(worker.set(key_name(key), value), Status::kOk);
  for (uint64_t key = kOld; key < kOld + kNew; ++key) ASSERT_TRUE(worker.get(key_name(key))) << key;
  EXPECT_EQ(store->stats().get(StoreCounter::kEvicted), evicted_before);
}

TEST(Time, TheClockMovesByItself) {
  StoreConfig config = quiet_config(8 * kMiB);
  config.manual_clock = false;
  const auto store = make_store(config);
  const Clock start = store->clock();
  EXPECT_GE(start.now, kClockStart);
  store->shift_clock(1000);
  EXPECT_GE(store->clock().now, start.now + 1000);
  EXPECT_EQ(store->clock().unix_start, start.unix_start);
}

// The clock is at the second of time(2), whenever in a second the store was made.
TEST(Time, TheClockIsTheWallClocks) {
  using std::chrono::milliseconds;
  const auto wall = [] {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<milliseconds>(now).count();
  };
  const auto sleep_to = [&wall](int64_t ms_of_second) {
    std::this_thread::sleep_for(milliseconds((1000 + ms_of_second - wall() % 1000) % 1000));
  };
  for (const int64_t made_at : {100, 500, 850}) {
    StoreConfig config = quiet_config(8 * kMiB);
    config.manual_clock = false;
    config.maintenance_thread = true;
    sleep_to(made_at);
    const auto store = make_store(config);
    bool agrees = false;
    for (int attempt = 0; attempt < 5 && !agrees; ++attempt) {
      sleep_to(400);
      const Clock clock = store->clock();
      const int64_t now = wall();
      agrees = now % 1000 < 800 && clock.unix_start + clock.now == now / 1000;
    }
    EXPECT_TRUE(agrees) << made_at;
  }
}

TEST(Time, AStoppedClockMovesByHandAlone) {
  StoreConfig config = quiet_config(8 * kMiB);
  config.manual_clock = false;
  const auto store = make_store(config);
  store->shift_clock(100);
  store->pause_clock(true);
  const uint32_t stopped = store->clock().now;
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  store->pause_clock(true);  // it does not move anyway
  store->tick();
  EXPECT_EQ(store->clock().now, stopped);
  store->shift_clock(5);
  EXPECT_EQ(store->clock().now, stopped + 5);
  store->pause_clock(false);
  store->tick();
  EXPECT_GT(store->clock().now, stopped + 5);
}

// Though a second has begun that no tick() has shown yet, as on a busy machine.
TEST(Time, AStoppedClockShowsTheSecondAtWhichItStands) {
  StoreConfig config = quiet_config(8 * kMiB);
  config.manual_clock = false;
  const auto store = make_store(config);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  store->pause_clock(true);
  const uint32_t stopped = store->clock().now;
  store->tick();
  EXPECT_EQ(store->clock().now, stopped);
}

TEST(Threads, MayComeAndGo) {
  const auto store = make_store(quiet_config(8 * kMiB));
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<Worker>> workers;
    for (uint32_t i = 0; i + 3 < StoreConfig{}.readers_max; ++i)  // three are the store's own
      workers.push_back(std::make_unique<Worker>(store.get()));
    ThreadContext one_more;
    EXPECT_EQ(store->register_thread(&one_more), Status::kOutOfMemory);
    EXPECT_EQ(workers.back()->set("k", "v"), Status::kOk);
    EXPECT_TRUE(workers.front()->get("k"));
  }
}

TEST(Faults, AFailedAllocationLeavesEverythingAsItWas) {
  StoreConfig config = quiet_config(8 * kMiB);
  struct Failing : Faults {
    bool on = false;
    bool fails_allocation() override { return on; }
  } failing;
  config.faults = &failing;
  const auto store = make_store(config);
  Worker worker(store.get());
  ASSERT_EQ(worker.set("k", "v"), Status::kOk);
  const uint64_t live = store->census().live_bytes;
  failing.on = true;
  EXPECT_EQ(worker.set("k", "w"), Status::kDeferred);
  EXPECT_EQ(worker.set("l", "w"), Status::kDeferred);
  failing.on = false;
  std::string value;
  EXPECT_TRUE(worker.get("k", &value));
  EXPECT_EQ(value, "v");
  EXPECT_EQ(store->census().live_bytes, live);
}

TEST(Faults, EvictionsAreReported) {
  StoreConfig config = quiet_config(2 * kMiB);
  struct Counting : Observer {
    uint64_t count = 0;
    void evicted(const Item& item, uint32_t now) override {
      EXPECT_GT(item.key_size, 4u);
      EXPECT_NE(item.load_cas(), 0u);
      EXPECT_NE(now, 0u);
      ++count;
    }
  } seen;
  config.observer = &seen;
  const auto store = make_store(config);
  Worker worker(store.get());
  ASSERT_EQ(fill(worker, 0, 10'000, 1000), 10'000u);
  EXPECT_GT(seen.count, 5000u);
  EXPECT_EQ(seen.count, store->stats().get(StoreCounter::kEvicted));
}

// A worker calls them; its other clients would wait too.
TEST(Maintenance, AFlushAndANewLimitDoNotWaitForAStepOfIt) {
  struct Once : Observer {
    std::function<void()> in_step;
    void evicted(const Item&, uint32_t) override {
      if (in_step) std::exchange(in_step, nullptr)();
    }
  } once;
  StoreConfig config = quiet_config(8 * kMiB);
  config.observer = &once;
  const auto store = make_store(config);
  std::future<bool> asked;
  once.in_step = [&store, &asked] {
    asked = std::async(std::launch::async, [&store] {
      store->flush_all();
      return store->set_memory_limit(6 * kMiB);
    });
    EXPECT_EQ(asked.wait_for(kPatience), std::future_status::ready);
  };
  Worker worker(store.get());
  for (uint64_t key = 0; key < 10'000; ++key)
    ASSERT_EQ(worker.set(key_name(key), std::string(1000, 'x')), Status::kOk);
  ASSERT_TRUE(asked.valid() && asked.get());
  store->maintain();
  EXPECT_LE(store->stats().memory_limit, 6 * kMiB);
}

}  // namespace
}  // namespace warpcache::store
