// SPDX-License-Identifier: Apache-2.0
//
// Reservations in the log: values that are received beside other items, and published there.
#include <atomic>
#include <random>
#include <thread>

#include "base/testing/effort.h"
#include "store/testing/store_fixture.h"

namespace warpcache::store {
namespace {

// Of a segment of 1 MiB, which holds three.
constexpr uint32_t kInLogValue = 256 * 1024;

uint64_t held_segments(const Store& store) { return store.census().get(SegmentState::kHeld); }

uint32_t reserve_in_log(Store& store, Worker& worker, const std::string& key, uint32_t size) {
  uint32_t id = 0;
  EXPECT_EQ(store.reserve(static_cast<uint8_t>(key.size()), size, &id, &worker.thread()),
            Status::kOk);
  return id;
}

// Fills a reservation's value through its windows.
void fill(Store& store, uint32_t id, const std::string& value) {
  uint32_t offset = 0;
  while (offset < value.size()) {
    const MutableBytes window = store.reservation_window(id, offset);
    ASSERT_GT(window.size, 0u);
    const size_t count = std::min<size_t>(window.size, value.size() - offset);
    std::memcpy(window.data, value.data() + offset, count);
    offset += static_cast<uint32_t>(count);
  }
}

void publish_reserved(Worker& worker, const std::string& key, uint32_t id, uint32_t expiry = 0) {
  worker.enter();
  Allocation allocation;
  ASSERT_EQ(worker.ref().allocate_reserved(worker.thread(), id, expiry, allocation), Status::kOk);
  ASSERT_TRUE(allocation.holds_value);
  std::memcpy(allocation.item->key_data(), key.data(), key.size());
  worker.publish(worker.ref().hash(bytes_of(key)), key, allocation);
  worker.leave();
}

TEST(InLog, IsPublishedWhereItWasReceived) {
  const auto store = make_store(quiet_config(1024 * kMiB));
  Worker worker(store.get());
  const uint64_t free_before = store->stats().free_segments;
  for (uint64_t i = 0; i < 30; ++i) {
    const std::string key = key_name(i);
    const uint32_t id = reserve_in_log(*store, worker, key, kInLogValue);
    EXPECT_EQ(store->stats().reserved_segments, 1u);
    const uint8_t* const place = store->reservation_window(id, 0).data;
    fill(*store, id, make_value(i, 1, kInLogValue));
    publish_reserved(worker, key, id);
    EXPECT_EQ(store->stats().reserved_segments, 0u);
    worker.enter();
    EXPECT_EQ(worker.find(key).item->value_data(), place);
    worker.leave();
    store->abandon_reservation(id);  // used up: nothing happens
  }
  EXPECT_EQ(free_before - store->stats().free_segments, 10u);
  for (uint64_t i = 0; i < 30; ++i) {
    std::string value;
    ASSERT_TRUE(worker.get(key_name(i), &value));
    EXPECT_EQ(check_value(i, value), 1u);
  }
  check_accounts(*store);
}

// A value does not begin up to 32 bytes after the start of a page, wherever the log has grown to.
TEST(InLog, BeginsAwayFromThePagesStart) {
  const auto store = make_store(quiet_config(1024 * kMiB));
  Worker worker(store.get());
  for (uint32_t i = 0; i < 600; ++i) {
    ASSERT_EQ(worker.set(key_name(i), std::string(i * 16, 'x')), Status::kOk);
    const uint32_t id = reserve_in_log(*store, worker, "large", 40'000);
    const auto at = reinterpret_cast<uintptr_t>(store->reservation_window(id, 0).data);
    const uintptr_t item = (at - 5 - sizeof(Item)) % 4096;
    EXPECT_GE(item, 64u);
    EXPECT_LE(item, 4096u - 32);
    fill(*store, id, std::string(40'000, 'y'));
    publish_reserved(worker, "large", id);
  }
  for (uint32_t i = 0; i < 600; ++i) {
    std::string value;
    ASSERT_TRUE(worker.get(key_name(i), &value));
    EXPECT_EQ(value, std::string(i * 16, 'x'));
  }
  check_accounts(*store);
}

TEST(InLog, NeitherDoesAChain) {
  const auto store = make_store(quiet_config(1024 * kMiB));
  Worker worker(store.get());
  for (const uint32_t size : {600'000u, 1024u * 1024 - 100, 3'000'000u}) {
    const uint32_t id = reserve_in_log(*store, worker, "large", size);
    const auto at = reinterpret_cast<uintptr_t>(store->reservation_window(id, 0).data);
    EXPECT_GE((at - 5 - sizeof(Item)) % 4096, 64u);
    fill(*store, id, make_value(size, 1, size));
    publish_reserved(worker, "large", id);
    std::string value;
    ASSERT_TRUE(worker.get("large", &value));
    EXPECT_EQ(check_value(size, value), 1u);
  }
}

// Others fill the segment and the store many times over while a value is being received.
TEST(InLog, SurvivesEvictionOfAllElse) {
  if (thread_sanitizer_by_day()) GTEST_SKIP() << "tested at night";
  const auto store = make_store(quiet_config(64 * kMiB));
  Worker worker(store.get());
  const auto size = static_cast<uint32_t>(store->stats().segment_size / 4);
  const uint32_t slow = reserve_in_log(*store, worker, "slow", size);
  fill(*store, slow, make_value(7, 1, size));
  for (uint64_t round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 300'000; ++i) {
      ASSERT_EQ(worker.set(key_name(i), make_value(i, round, 300)), Status::kOk);
    }
    EXPECT_EQ(held_segments(*store), 1u);
    EXPECT_EQ(store->stats().reserved_segments, 1u);
  }
  worker.enter();
  EXPECT_EQ(check_value(7, worker.value_of(worker.ref().reserved_item(slow))), 1u);
  worker.leave();
  publish_reserved(worker, "slow", slow);
  EXPECT_EQ(held_segments(*store), 0u);
  std::string value;
  ASSERT_TRUE(worker.get("slow", &value));
  EXPECT_EQ(check_value(7, value), 1u);
  check_accounts(*store);
  // Its segment is emptied like any other: the value has moved, or is gone.
  const auto place = [&]() -> const Item* {
    worker.enter();
    const Item* const item = worker.find("slow").item;
    worker.leave();
    return item;
  };
  const Item* const before = place();
  for (uint64_t i = 0; i < 600'000; ++i) {
    ASSERT_EQ(worker.set(key_name(i), make_value(i, 9, 300)), Status::kOk);
  }
  EXPECT_NE(place(), before);
}

// Nobody walks a segment that was sealed in the batch that publishes there.
TEST(InLog, IsNotWalkedBeforeItsBatchEnds) {
  const auto store = make_store(quiet_config(64 * kMiB));
  Worker worker(store.get());
  Worker other(store.get());
  const auto size = static_cast<uint32_t>(store->stats().segment_size / 4);
  const uint32_t id = reserve_in_log(*store, worker, "key", size);
  fill(*store, id, make_value(1, 1, size));
  for (uint64_t i = 0; i < 2000; ++i) {  // seals its segment
    ASSERT_EQ(worker.set(key_name(i), make_value(i, 1, 300)), Status::kOk);
  }
  ASSERT_EQ(held_segments(*store), 1u);
  worker.enter();
  Allocation allocation;
  ASSERT_EQ(worker.ref().allocate_reserved(worker.thread(), id, 0, allocation), Status::kOk);
  EXPECT_EQ(held_segments(*store), 0u);
  for (uint64_t i = 0; i < 2000; ++i)
    (void)other.erase(key_name(i));  // nothing else is alive there
  for (int i = 0; i < 10; ++i) store->maintain();
  std::memcpy(allocation.item->key_data(), "key", 3);
  worker.publish(worker.ref().hash(bytes_of("key")), "key", allocation);
  worker.leave();
  for (int i = 0; i < 10; ++i) store->maintain();
  std::string value;
  ASSERT_TRUE(other.get("key", &value));
  EXPECT_EQ(check_value(1, value), 1u);
  check_accounts(*store);
}

TEST(InLog, AbandonedOnesLeaveNothing) {
  const auto store = make_store(quiet_config(1024 * kMiB));
  Worker worker(store.get());
  const uint64_t free_before = store->stats().free_segments;
  // The last of its segment: the space is free at once.
  for (int i = 0; i < 100; ++i) {
    const uint32_t id = reserve_in_log(*store, worker, "key", kInLogValue);
    store->abandon_reservation(id);
    store->abandon_reservation(id);
  }
  EXPECT_EQ(free_before - store->stats().free_segments, 1u);
  // Not the last: with its segment, of which nothing is alive then.
  std::vector<uint32_t> ids;
  for (int i = 0; i < 30; ++i) ids.push_back(reserve_in_log(*store, worker, "key", kInLogValue));
  EXPECT_EQ(store->stats().reserved_segments, 30u);
  EXPECT_EQ(held_segments(*store), 9u);
  for (const uint32_t id : ids) store->abandon_reservation(id);
  EXPECT_EQ(store->stats().reserved_segments, 0u);
  EXPECT_EQ(held_segments(*store), 0u);
  check_accounts(*store);
  for (int i = 0; i < 30; ++i) {
    (void)reserve_in_log(*store, worker, "key", kInLogValue);
    if (i % 3 == 0) store->maintain();
  }
  EXPECT_LE(free_before - store->stats().free_segments, 22u);
}

TEST(InLog, AbandonedAfterAllocation) {
  const auto store = make_store(quiet_config(1024 * kMiB));
  Worker worker(store.get());
  const uint32_t id = reserve_in_log(*store, worker, "key", kInLogValue);
  worker.abandon_allocated(id);
  EXPECT_EQ(store->stats().reserved_segments, 0u);
  const uint32_t next = reserve_in_log(*store, worker, "key", kInLogValue);
  EXPECT_EQ(next % kReservationsMax, id % kReservationsMax);
  EXPECT_NE(next, id);
  store->abandon_reservation(next);
  check_accounts(*store);
}

// Each counts as a segment: as many as would hold a segment each may be under way, and they hold no
// more.
TEST(InLog, AreBounded) {
  if (thread_sanitizer_by_day()) GTEST_SKIP() << "tested at night";
  const auto store = make_store(quiet_config(64 * kMiB));
  Worker worker(store.get());
  const auto size = static_cast<uint32_t>(store->stats().segment_size / 4);
  const uint64_t most = store->stats().segment_limit / kReservedShareMax;
  std::vector<uint32_t> ids;
  uint32_t id = 0;
  Status status = Status::kOk;
  while ((status = store->reserve(3, size, &id, &worker.thread())) == Status::kOk) {
    ids.push_back(id);
    // The worst case: whoever is slow is alone in a segment.
    for (uint64_t i = 0; i < 250; ++i) {
      ASSERT_EQ(worker.set(key_name(i + 1000 * ids.size()), make_value(i, 1, 300)), Status::kOk);
    }
  }
  EXPECT_EQ(status, Status::kDeferred);
  EXPECT_EQ(ids.size(), std::min<uint64_t>(most, kReservationsMax));
  EXPECT_LE(held_segments(*store), ids.size());
  // The rest of the memory is used as ever.
  for (uint64_t i = 0; i < 300'000; ++i) {
    ASSERT_EQ(worker.set(key_name(i), make_value(i, 2, 300)), Status::kOk);
  }
  for (const uint32_t one : ids) store->abandon_reservation(one);
  EXPECT_EQ(held_segments(*store), 0u);
  EXPECT_EQ(store->stats().reserved_segments, 0u);
  check_accounts(*store);
}

// With keep_all nothing alive goes, and what is reserved is not taken for dead.
TEST(InLog, WithKeepAll) {
  StoreConfig config = quiet_config(16 * kMiB);
  config.keep_all = true;
  config.segment_size = 256 * 1024;
  const auto store = make_store(config);
  Worker worker(store.get());
  const uint32_t id = reserve_in_log(*store, worker, "slow", 100'000);
  fill(*store, id, make_value(5, 1, 100'000));
  uint64_t stored = 0;
  while (worker.set(key_name(stored), make_value(stored, 1, 5000)) == Status::kOk) ++stored;
  EXPECT_GT(stored, 1000u);
  publish_reserved(worker, "slow", id);
  std::string value;
  ASSERT_TRUE(worker.get("slow", &value));
  EXPECT_EQ(check_value(5, value), 1u);
  for (uint64_t i = 0; i < stored; ++i) {
    ASSERT_TRUE(worker.get(key_name(i), &value)) << i;
    ASSERT_EQ(check_value(i, value), 1u);
  }
  check_accounts(*store);
}

// Items with a short time to live lie together, so these are copied there.
TEST(InLog, GoesToTheSegmentsOfItsExpiry) {
  StoreConfig config = quiet_config(64 * kMiB);
  config.segment_size = 16 * 1024;  // 4096 segments: several expiry classes
  const auto store = make_store(config);
  Worker worker(store.get());
  const uint32_t now = store->ref().clock().now;
  ASSERT_EQ(worker.set("short", "x", now + 100), Status::kOk);
  const uint32_t id = reserve_in_log(*store, worker, "key", 4000);
  fill(*store, id, make_value(1, 1, 4000));
  publish_reserved(worker, "key", id, now + 100);
  EXPECT_EQ(store->stats().reserved_segments, 0u);
  worker.enter();
  const Core& core = worker.ref().core;
  EXPECT_EQ(core.segment_of(worker.find("key").item), core.segment_of(worker.find("short").item));
  worker.leave();
  std::string value;
  ASSERT_TRUE(worker.get("key", &value));
  EXPECT_EQ(check_value(1, value), 1u);
}

// As TakesAgainWhatWasReplaced.
TEST(InLog, TakesAgainWhatWasReplaced) {
  const auto store = make_store(quiet_config(1024 * kMiB));
  Worker worker(store.get());
  const uint64_t free_before = store->stats().free_segments;
  for (uint64_t i = 0; i < 300; ++i) {
    const uint32_t id = reserve_in_log(*store, worker, "large", kInLogValue);
    fill(*store, id, make_value(1, i, kInLogValue));
    publish_reserved(worker, "large", id);
    ASSERT_LE(free_before - store->stats().free_segments, 4u);
  }
  std::string value;
  ASSERT_TRUE(worker.get("large", &value));
  EXPECT_EQ(check_value(1, value), 299u);
  check_accounts(*store);
}

TEST(InLog, ReadersAndPinsKeepWhatWasReplaced) {
  const auto store = make_store(quiet_config(1024 * kMiB));
  Worker worker(store.get());
  Worker reader(store.get());
  const auto replace_in_log = [&](uint64_t version) {
    const uint32_t id = reserve_in_log(*store, worker, "large", kInLogValue);
    fill(*store, id, make_value(1, version, kInLogValue));
    publish_reserved(worker, "large", id);
  };
  replace_in_log(1);
  reader.enter();
  const Item* const read = reader.find("large").item;
  for (uint64_t i = 2; i < 40; ++i) replace_in_log(i);
  EXPECT_EQ(check_value(1, reader.value_of(*read)), 1u);
  const uint32_t pin = reader.ref().pin(*read, PinNeed::kMust);
  ASSERT_NE(pin, 0u);
  reader.leave();
  for (uint64_t i = 40; i < 100; ++i) replace_in_log(i);
  EXPECT_EQ(check_value(1, reader.value_of(*read)), 1u);
  reader.ref().unpin(pin);
  for (uint64_t i = 100; i < 110; ++i) replace_in_log(i);
  EXPECT_LE(store->stats().retired_segments, 2u);
  check_accounts(*store);
}

// Threads receive, publish, abandon, replace and read at once, while maintenance evicts.
TEST(InLog, ManyThreads) {
  StoreConfig config = quiet_config(32 * kMiB);
  config.segment_size = 128 * 1024;
  config.maintenance_thread = true;
  config.manual_clock = false;
  config.threads = 4;
  const auto store = make_store(config);
  std::atomic<uint64_t> read{0};
  const auto run = [&](uint32_t number) {
    Worker worker(store.get());
    std::mt19937 random(number);
    std::vector<std::pair<uint64_t, uint32_t>> under_way;
    for (uint64_t round = 1; round < 3000; ++round) {
      const uint64_t key = random() % 300;
      const auto size = static_cast<uint32_t>(5000 + random() % 50'000);
      uint32_t id = 0;
      const Status status =
          store->reserve(static_cast<uint8_t>(key_name(key).size()), size, &id, &worker.thread());
      if (status == Status::kOk) {
        fill(*store, id, make_value(key, round, size));
        under_way.emplace_back(key, id);
      }
      for (int i = 0; i < 5; ++i) {
        const uint64_t small = 1000 + random() % 2000;
        (void)worker.set(key_name(small), make_value(small, round, random() % 3000));
      }
      if (under_way.size() > 6 || (!under_way.empty() && random() % 2 == 0)) {
        const size_t which = random() % under_way.size();
        const auto [name, one] = under_way[which];
        under_way.erase(under_way.begin() + static_cast<ptrdiff_t>(which));
        if (random() % 4 == 0) {
          store->abandon_reservation(one);
        } else {
          publish_reserved(worker, key_name(name), one);
        }
      }
      const uint64_t wanted = random() % 300;
      std::string value;
      if (!worker.get(key_name(wanted), &value)) continue;
      ASSERT_NE(check_value(wanted, value), UINT64_MAX);
      read.fetch_add(1, std::memory_order_relaxed);
      if (random() % 16 == 0) (void)worker.erase(key_name(wanted));
    }
    for (const auto& [name, one] : under_way) store->abandon_reservation(one);
  };
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) threads.emplace_back(run, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(read.load(), 0u);
  EXPECT_EQ(store->stats().reserved_segments, 0u);
  EXPECT_EQ(held_segments(*store), 0u);
}

}  // namespace
}  // namespace warpcache::store
