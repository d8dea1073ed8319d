// SPDX-License-Identifier: Apache-2.0
//
// The index grows from the low end of the memory, whatever is stored there: the segment that it
// needs next is emptied, moved or swapped. Also copying without space to copy to.
#include <random>

#include "store/testing/store_fixture.h"

namespace warpcache::store {
namespace {

constexpr uint64_t kTiny = 10'000'000;  // the first of the keys that make the index grow

uint64_t index_segments(const Store& store) { return store.census().get(SegmentState::kIndex); }

// Adds keys with small values. Returns how many were stored.
uint64_t add_tiny(Worker& worker, uint64_t first, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    if (worker.set(key_name(kTiny + first + i), "tiny") != Status::kOk) return i;
  }
  return count;
}

uint64_t count_tiny(Worker& worker, uint64_t first, uint64_t count) {
  uint64_t found = 0;
  std::string value;
  for (uint64_t i = first; i < first + count; ++i) {
    if (!worker.get(key_name(kTiny + i), &value)) continue;
    EXPECT_EQ(value, "tiny");
    ++found;
  }
  return found;
}

// Every value found for the keys below `count` is right. Returns how many are found.
uint64_t check_all(Worker& worker, uint64_t count) {
  uint64_t found = 0;
  std::string value;
  for (uint64_t key = 0; key < count; ++key) {
    if (!worker.get(key_name(key), &value)) continue;
    EXPECT_EQ(check_value(key, value), 1u) << key;
    ++found;
  }
  return found;
}

// Sets keys from 0 on until there is no more free memory. Returns how many.
uint64_t fill_up(Worker& worker, size_t size, uint64_t free_segments) {
  uint64_t key = 0;
  while (worker.store().stats().free_segments > free_segments) {
    EXPECT_EQ(worker.set(key_name(key), make_value(key, 1, size)), Status::kOk);
    ++key;
  }
  return key;
}

// A reader that computed the pair of a key and was paused while the index grew, even to more than
// twice its size, gets to the right pair and no other.
TEST(Growth, IsNoTrapForWhoStoodStill) {
  const auto store = make_store(quiet_config(16 * kMiB));
  Worker worker(store.get());
  const Core& core = worker.ref().core;
  const uint32_t first = load_relaxed(&core.shared->pair_count);
  uint64_t count = 0;
  while (load_relaxed(&core.shared->pair_count) < 3 * first + first / 4)
    count += add_tiny(worker, count, 64);
  const uint32_t now = load_relaxed(&core.shared->pair_count);
  worker.enter();
  for (uint64_t i = 0; i < count; i += 7) {
    const std::string key = key_name(kTiny + i);
    const uint64_t hash = worker.ref().hash(bytes_of(key));
    for (uint32_t then = first; then <= now; then += first / 8) {
      const PairNumber stale = pair_of(hash, then);
      EXPECT_TRUE(find_key_from(core, hash, bytes_of(key), stale)) << key << ", " << then;
      Set* const pair = lock_pair_from(core, hash, stale);
      EXPECT_EQ(pair, pair_at(core, pair_of(hash, now))) << key << ", " << then;
      unlock_pair(pair);
    }
  }
  for (PairNumber number = now; number < 2 * now; ++number) {
    const uint64_t end = uint64_t{load_relaxed(&core.shared->index_segments)} << core.segment_shift;
    const Set* const beyond = pair_at(core, number);
    if (reinterpret_cast<const uint8_t*>(beyond + 2) - core.arena > static_cast<int64_t>(end))
      break;
    EXPECT_EQ(beyond->lock, 0u);
  }
  worker.leave();
}

// Keys that are reported in advance get ways in the index, and are counted once.
TEST(Growth, IsReservedForKeysToCome) {
  const auto store = make_store(quiet_config(64 * kMiB));
  Worker worker(store.get());
  const Core& core = worker.ref().core;
  for (int32_t keys : {1, 1000, 50'000, 100'000}) {
    reserve_growth(core, worker.thread(), keys);
    EXPECT_FALSE(is_behind(core)) << keys;
    worker.thread().new_items = -keys;
    settle_growth(core, worker.thread());
    EXPECT_EQ(load_relaxed(&core.shared->items), 0u);
  }
  EXPECT_GT(load_relaxed(&core.shared->pair_count), 100'000u / kItemsPairTarget - 1);
}

TEST(Growth, SwapsWhatIsBeyondTheLimit) {
  const auto store = make_store(quiet_config(8 * kMiB));
  Worker worker(store.get());
  const uint64_t keys = fill_up(worker, 1000, 4);
  // The latest keys lie lowest. They are deleted, and the limit is lowered by that amount.
  const uint64_t per_segment = keys / 120;
  for (uint64_t key = keys - 50 * per_segment; key < keys; ++key)
    ASSERT_TRUE(worker.erase(key_name(key)));
  const StoreStats before = store->stats();
  const uint64_t absent_before = store->census().get(SegmentState::kAbsent);
  ASSERT_TRUE(store->set_memory_limit(before.memory_limit - 40 * before.segment_size));
  store->maintain();
  const uint64_t absent = store->census().get(SegmentState::kAbsent);
  ASSERT_EQ(absent, absent_before + 40);
  EXPECT_EQ(add_tiny(worker, 0, 60'000), 60'000u);
  store->maintain();
  EXPECT_GT(index_segments(*store), 12u);
  EXPECT_EQ(store->census().get(SegmentState::kAbsent), absent);
  EXPECT_EQ(store->stats().segment_limit, before.segment_limit - 40);
  EXPECT_GT(count_tiny(worker, 0, 60'000), 55'000u);
  check_all(worker, keys);
}

TEST(Growth, MovesChains) {
  for (const size_t size : {size_t{40'000}, size_t{150'000}}) {
    const auto store = make_store(quiet_config(8 * kMiB));
    Worker worker(store.get());
    const uint64_t keys = fill_up(worker, size, 8);
    for (uint64_t key = 0; key < keys / 2; ++key) ASSERT_TRUE(worker.erase(key_name(key)));
    EXPECT_EQ(add_tiny(worker, 0, 50'000), 50'000u);
    EXPECT_GT(index_segments(*store), 12u);
    EXPECT_EQ(store->stats().get(StoreCounter::kEvicted), 0u);
    EXPECT_EQ(check_all(worker, keys), keys - keys / 2);
    EXPECT_EQ(count_tiny(worker, 0, 50'000), 50'000u);
  }
}

// A chain that cannot be copied is evicted; with keep_all the index waits.
TEST(Growth, EvictsChainsThatFitNowhere) {
  for (const bool keep_all : {false, true}) {
    StoreConfig config = quiet_config(4 * kMiB);
    config.segment_size = 64 * 1024;
    config.keep_all = keep_all;
    const auto store = make_store(config);
    Worker worker(store.get());
    ASSERT_EQ(worker.set("first", std::string(500'000, 'x')), Status::kOk);
    const uint64_t keys = fill_up(worker, 150'000, 5);
    ASSERT_TRUE(worker.erase("first"));
    const uint64_t segments = index_segments(*store);
    const uint64_t added = add_tiny(worker, 0, 30'000);
    const uint64_t found = check_all(worker, keys);
    if (keep_all) {
      EXPECT_LT(added, 30'000u);
      EXPECT_EQ(count_tiny(worker, 0, added), added);
      EXPECT_EQ(found, keys);
      EXPECT_EQ(store->stats().get(StoreCounter::kEvicted), 0u);
    } else {
      EXPECT_EQ(added, 30'000u);
      EXPECT_LT(found, keys);
      EXPECT_GT(index_segments(*store), segments + 3);
    }
  }
}

// The index wants a segment in which chains end: they move, and their tails with them.
TEST(Growth, MovesChainsThatEndThere) {
  const auto store = make_store(quiet_config(16 * kMiB));
  Worker worker(store.get());
  const size_t segment = store->stats().segment_size;
  const uint64_t keys = fill_up(worker, segment + 200, 40);
  ASSERT_GT(store->census().get(SegmentState::kTails), 2u);
  // What is deleted leaves the rest, and their tails, where they are.
  for (uint64_t key = 0; key < keys; ++key) {
    ASSERT_EQ(key % 10 == 0 || worker.erase(key_name(key)), true);
  }
  store->maintain();
  EXPECT_EQ(add_tiny(worker, 0, 150'000), 150'000u);
  EXPECT_EQ(store->stats().get(StoreCounter::kEvicted), 0u);
  EXPECT_EQ(check_all(worker, keys), (keys + 9) / 10);
  EXPECT_EQ(count_tiny(worker, 0, 150'000), 150'000u);
}

TEST(Growth, WaitsForAReservation) {
  const auto store = make_store(quiet_config(4 * kMiB));
  Worker worker(store.get());
  const uint64_t keys = fill_up(worker, 1000, 10);
  uint32_t id = 0;
  ASSERT_EQ(store->reserve(5, 400'000, &id), Status::kOk);  // the lowest but the copier's two
  EXPECT_EQ(add_tiny(worker, 0, 20'000), 20'000u);
  const uint64_t stuck = index_segments(*store);
  EXPECT_GT(add_tiny(worker, 20'000, 10'000), 0u);
  EXPECT_EQ(index_segments(*store), stuck);
  store->abandon_reservation(id);
  EXPECT_EQ(add_tiny(worker, 30'000, 20'000), 20'000u);
  EXPECT_GT(index_segments(*store), stuck);
  check_all(worker, keys);
}

// An idle append point keeps its open segment, wherever it lies.
TEST(Growth, EndsTheOpenSegmentsOfOthers) {
  StoreConfig config = quiet_config(16 * kMiB);
  config.threads = 4;
  const auto store = make_store(config);
  Worker worker(store.get());
  Worker quiet(store.get());
  ASSERT_NE(worker.thread().append_point, quiet.thread().append_point);
  const uint64_t keys = fill_up(worker, 1000, 5);
  ASSERT_EQ(quiet.set("quiet", "1"), Status::kOk);
  for (uint64_t key = 0; key < keys; key += 2) ASSERT_TRUE(worker.erase(key_name(key)));
  EXPECT_EQ(add_tiny(worker, 0, 60'000), 60'000u);
  EXPECT_GT(index_segments(*store), 15u);
  std::string value;
  ASSERT_TRUE(quiet.get("quiet", &value));
  EXPECT_EQ(value, "1");
  ASSERT_EQ(quiet.set("quiet", "2"), Status::kOk);
  EXPECT_EQ(store->stats().get(StoreCounter::kEvicted), 0u);
  EXPECT_EQ(check_all(worker, keys), keys / 2);
}

// A batch may still write to the segment that the index needs: the index waits for it.
TEST(Growth, WaitsForABatch) {
  StoreConfig config = quiet_config(4 * kMiB);
  config.segment_size = 64 * 1024;
  const auto store = make_store(config);
  Worker worker(store.get());
  Worker reader(store.get());
  reader.enter();
  const uint64_t keys = fill_up(worker, 1000, 4);
  ASSERT_TRUE(store->set_memory_limit(8 * kMiB));  // there is memory, above what is there so far
  store->maintain();
  EXPECT_EQ(add_tiny(worker, 0, 12'500), 12'500u);
  const uint64_t segments = index_segments(*store);
  store->maintain();
  EXPECT_EQ(add_tiny(worker, 12'500, 1000), 1000u);
  EXPECT_EQ(index_segments(*store), segments);
  reader.leave();
  store->maintain();
  EXPECT_EQ(add_tiny(worker, 13'500, 1000), 1000u);
  EXPECT_GT(index_segments(*store), segments);
  EXPECT_EQ(count_tiny(worker, 0, 14'500), 14'500u);
  EXPECT_EQ(check_all(worker, keys), keys);
}

// Pins keep the originals of copied items in memory, so copying gains nothing. Items that then fit
// nowhere are evicted; with keep_all they stay in place.
TEST(Copying, WithNowhereToCopyTo) {
  for (const bool keep_all : {false, true}) {
    StoreConfig config = quiet_config(2 * kMiB);
    config.keep_all = keep_all;
    config.reclaim_wait_ms_max = 20;
    const auto store = make_store(config);
    Worker worker(store.get());
    const uint64_t keys = fill_up(worker, 1000, 3);
    std::vector<uint32_t> pins;
    worker.enter();
    for (uint64_t key = 0; key < keys; ++key) {
      ASSERT_TRUE(worker.get(key_name(key)));
      if (key % 60 != 1) continue;
      const uint32_t pin = worker.ref().pin(*worker.find(key_name(key)).item, PinNeed::kMust);
      if (pin != 0) pins.push_back(pin);
    }
    worker.leave();
    EXPECT_GT(pins.size(), 4u);
    uint64_t erased = 0;
    for (uint64_t key = 0; keep_all && key < keys; ++key) {
      if (key % 60 < 30) continue;
      ASSERT_TRUE(worker.erase(key_name(key)));
      ++erased;
    }
    uint64_t more = 0;
    while (more < keys &&
           worker.set(key_name(keys + more), make_value(keys + more, 1, 1000)) == Status::kOk)
      ++more;
    const uint64_t evicted = store->stats().get(StoreCounter::kEvicted);
    EXPECT_EQ(check_all(worker, keys + more), keys + more - erased - evicted);
    EXPECT_EQ(keep_all, evicted == 0);
    for (const uint32_t pin : pins) worker.ref().unpin(pin);
  }
}

// All of these together, in random order.
TEST(Growth, ThroughMemoryInEveryState) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    std::mt19937_64 random(seed);
    StoreConfig config = quiet_config(16 * kMiB);
    config.threads = 4;
    config.seed = seed;
    const auto store = make_store(config);
    Worker first(store.get());
    Worker second(store.get());
    const uint64_t keys = fill_up(first, 4000, 6);
    for (uint64_t i = 0; i < 150'000; ++i) {
      Worker& worker = random() % 8 == 0 ? second : first;
      const uint64_t key = random() % keys;
      const uint64_t what = random() % 1000;
      if (what < 2) {
        ASSERT_EQ(worker.set(key_name(key), make_value(key, 1, 90'000)), Status::kOk);
      } else if (what < 30) {
        worker.erase(key_name(key));
      } else if (what < 31) {
        ASSERT_TRUE(store->set_memory_limit((10 + random() % 8) * kMiB));
        store->maintain();
      } else {
        ASSERT_EQ(add_tiny(worker, i, 1), 1u);
      }
    }
    check_all(first, keys);
    EXPECT_GT(index_segments(*store), 12u);
  }
}

}  // namespace
}  // namespace warpcache::store
