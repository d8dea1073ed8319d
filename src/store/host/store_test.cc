// SPDX-License-Identifier: Apache-2.0
#include "store/host/store.h"

#include <algorithm>
#include <set>

#include "store/log/item_run.h"
#include "store/testing/store_fixture.h"

namespace warpcache::store {
namespace {

TEST(Store, SetGetReplaceDelete) {
  const auto store = make_store(quiet_config(4 * kMiB));
  Worker worker(store.get());
  std::string value;
  EXPECT_FALSE(worker.get("a"));
  EXPECT_EQ(worker.set("a", "one"), Status::kOk);
  EXPECT_TRUE(worker.get("a", &value));
  EXPECT_EQ(value, "one");
  EXPECT_EQ(worker.set("a", "three"), Status::kOk);
  EXPECT_TRUE(worker.get("a", &value));
  EXPECT_EQ(value, "three");
  EXPECT_EQ(worker.set("b", ""), Status::kOk);
  EXPECT_TRUE(worker.get("b", &value));
  EXPECT_EQ(value, "");
  EXPECT_EQ(store->stats().get(StoreCounter::kItems), 2u);
  EXPECT_EQ(store->stats().get(StoreCounter::kTotalItems), 3u);
  EXPECT_TRUE(worker.erase("a"));
  EXPECT_FALSE(worker.erase("a"));
  EXPECT_FALSE(worker.get("a"));
  EXPECT_EQ(store->stats().get(StoreCounter::kItems), 1u);
  EXPECT_EQ(store->stats().get(StoreCounter::kBytes), item_bytes(1, 0));
}

// Space for several items at once, as the threads of a warp take it; set() then finds its item
// prepared.
TEST(Store, ItemsOfARunAreLikeOthers) {
  const auto store = make_store(quiet_config(4 * kMiB));
  Worker worker(store.get());
  const Core& core = worker.ref().core;
  std::string value;
  for (uint64_t round = 0; round < 5000; ++round) {
    worker.enter();
    const uint32_t bytes = static_cast<uint32_t>(item_footprint(1, 100));
    const auto expiry_class = static_cast<uint32_t>(round % 2);
    const auto run = begin_run(core, worker.thread(), 3 * bytes, expiry_class);
    if (run.data == nullptr) {
      worker.leave();
      ASSERT_EQ(store->reclaim(3 * bytes), Status::kOk);
      continue;
    }
    ASSERT_GE(run.space, 3 * bytes);
    Item* items[3];
    for (uint32_t i = 0; i < 3; ++i) {
      items[i] = detail::init_item(run.data + i * bytes, 1, 100, 0, Layout::kPlain);
    }
    end_run(core, worker.thread(), 3 * bytes, expiry_class);
    const std::string text = make_value(round, round, 100);
    worker.thread().prepared = items[0];
    EXPECT_EQ(worker.set("a", text), Status::kOk);
    EXPECT_EQ(worker.thread().prepared, nullptr);
    EXPECT_EQ(worker.find("a").item, items[0]);
    worker.thread().prepared = items[1];
    const Status other_size = worker.set("b", "short");
    EXPECT_TRUE(other_size == Status::kOk || other_size == Status::kDeferred);
    EXPECT_EQ(worker.thread().prepared, items[1]);
    worker.thread().prepared_holds_value = true;
    Allocation taken;
    EXPECT_EQ(worker.ref().allocate(worker.thread(), 1, 100, 0, taken), Status::kOk);
    EXPECT_EQ(taken.item, items[1]);
    EXPECT_TRUE(taken.holds_value);
    worker.thread().prepared_holds_value = false;
    for (uint32_t i = 1; i < 3; ++i) {
      Allocation unused = {items[i], bytes, false};
      worker.ref().abandon(worker.thread(), unused);
    }
    worker.leave();
    ASSERT_TRUE(worker.get("a", &value));
    ASSERT_EQ(value, text);
  }
  EXPECT_EQ(store->stats().get(StoreCounter::kItems), 2u);
}

// Items of a run count in their segments before they are published, and no longer when they are
// given back.
TEST(Store, ItemsOfAnItemRunAreLikeOthers) {
  const auto store = make_store(quiet_config(4 * kMiB));
  Worker worker(store.get());
  const StoreRef ref = worker.ref();
  for (uint64_t round = 0; round < 3000; ++round) {
    worker.enter();
    Item* items[5] = {};
    {
      ItemRun run(ref.core, worker.thread(), 0);
      for (Item*& item : items) item = run.add(1, 1000, round % 3 == 0 ? 0 : 5);
    }
    for (uint32_t i = 5; i-- > 0;) {
      if (items[i] == nullptr) continue;
      EXPECT_EQ(items[i]->value_size, 1000u);
      *items[i]->key_data() = static_cast<uint8_t>('a' + i);
      if (i % 2 == 1 || round % 7 == 0) {
        abandon_counted(ref.core, worker.thread(), items[i]);
        continue;
      }
      const Bytes key = items[i]->key();
      const uint64_t hash = ref.hash(key);
      LockedPair pair(ref, hash, ref.probe(hash));
      pair.publish_counted(worker.thread(), items[i], pair.find(key, ref.probe(hash)));
    }
    worker.leave();
    if (items[4] == nullptr) {
      ASSERT_EQ(store->reclaim(5000), Status::kOk);
    }
    if (round % 100 == 0) check_accounts(*store);
  }
  EXPECT_EQ(store->stats().get(StoreCounter::kItems), 3u);
  check_accounts(*store);
}

// The rest of a segment is used, although all the items that want space together need more.
TEST(Store, RunsFillTheirSegment) {
  const auto store = make_store(quiet_config(4 * kMiB));
  Worker worker(store.get());
  const Core& core = worker.ref().core;
  const uint32_t bytes = static_cast<uint32_t>(item_footprint(1, 100));
  constexpr uint32_t kTogether = 32;
  worker.enter();
  uint32_t runs_at_the_end = 0;
  for (uint32_t left = 3 * core.segment_size(); left >= bytes;) {
    const auto run = begin_run(core, worker.thread(), bytes, 0);
    ASSERT_NE(run.data, nullptr);
    ASSERT_EQ(run.space, (left - 1) % core.segment_size() + 1);
    const uint32_t count = std::min(kTogether, run.space / bytes);
    if (count < kTogether) ++runs_at_the_end;
    for (uint32_t i = 0; i < count; ++i) {
      detail::init_item(run.data + i * bytes, 1, 100, 0, Layout::kPlain);
    }
    end_run(core, worker.thread(), count * bytes, 0);
    left -= count * bytes;
    if (left % core.segment_size() < bytes) left -= left % core.segment_size();
  }
  EXPECT_EQ(runs_at_the_end, 3u);
  worker.leave();
}

// A 256th of the memory; from 96 MiB on at least memcached's 2^16 slots.
TEST(Store, SlotsAtTheStart) {
  const auto slots = [](uint64_t memory, uint32_t hash_power) {
    StoreConfig config = quiet_config(memory);
    config.hash_power = hash_power;
    return make_store(config)->stats().index_pairs * 2 * kWays;
  };
  EXPECT_EQ(slots(95 * kMiB, 0), uint64_t{1} << 14);
  EXPECT_EQ(slots(96 * kMiB, 0), uint64_t{1} << 16);
  EXPECT_EQ(slots(512 * kMiB, 0), uint64_t{1} << 17);
  EXPECT_EQ(slots(128 * kMiB, 14), uint64_t{1} << 14);
}

TEST(Store, ManyKeysThroughGrowth) {
  const auto store = make_store(quiet_config(64 * kMiB));
  Worker worker(store.get());
  constexpr uint64_t kKeys = 300'000;
  const uint64_t pairs = store->stats().index_pairs;
  for (uint64_t i = 0; i < kKeys; ++i)
    ASSERT_EQ(worker.set(key_name(i), make_value(i, i, 20)), Status::kOk);
  EXPECT_GT(store->stats().index_pairs, 10 * pairs);
  EXPECT_EQ(store->stats().get(StoreCounter::kItems), kKeys);
  EXPECT_EQ(store->stats().get(StoreCounter::kEvicted), 0u);
  std::string value;
  for (uint64_t i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(worker.get(key_name(i), &value)) << i;
    ASSERT_EQ(check_value(i, value), i);
  }
  for (uint64_t i = 0; i < kKeys; i += 2) ASSERT_TRUE(worker.erase(key_name(i)));
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_EQ(worker.get(key_name(i)), i % 2 == 1);
}

TEST(Store, EvictsUnderLoadAndStaysRight) {
  const auto store = make_store(quiet_config(8 * kMiB));
  Worker worker(store.get());
  std::string value;
  for (uint64_t i = 0; i < 200'000; ++i) {
    ASSERT_EQ(worker.set(key_name(i), make_value(i, i, 100 + i % 400)), Status::kOk) << i;
    const uint64_t older = i - i % 1000;
    if (worker.get(key_name(older), &value)) {
      ASSERT_EQ(check_value(older, value), older);
    }
  }
  const StoreStats stats = store->stats();
  EXPECT_GT(stats.get(StoreCounter::kEvicted), 100'000u);
  EXPECT_EQ(stats.get(StoreCounter::kItems) + stats.get(StoreCounter::kEvicted), 200'000u);
  uint64_t walked = 0;
  for (uint64_t cursor = 0; cursor != StoreOwner::kWalkEnd;) {
    const Status status = store->walk(cursor, [&](const WalkedItem& item) {
      ++walked;
      EXPECT_GT(item.key.size, 4u);
    });
    ASSERT_EQ(status, Status::kOk);
  }
  EXPECT_EQ(walked, stats.get(StoreCounter::kItems));
}

}  // namespace
}  // namespace warpcache::store
