// SPDX-License-Identifier: Apache-2.0
//
// flush_prefix(): what it concerns is dead at once for every reader, what it does not concern lives
// on, and its slot becomes free when nobody can meet an item that it concerns.
#include "store/reclaim/flush.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/effort.h"
#include "store/reclaim/maintainer.h"
#include "store/testing/store_fixture.h"

namespace warpcache::store {
namespace {

Status flush_keys(Store& store, const std::string& prefix, uint32_t delay = 0) {
  return store.flush_prefix(warpcache::bytes_of(prefix), delay);
}
void let_seconds_pass(Store& store, uint32_t seconds) {
  for (uint32_t i = 0; i < seconds; ++i) store.set_clock(store.clock().now + 1);
}
const Shared& shared_words(const Store& store) { return *store.ref().core.shared; }

// Every item of the index is of the folded generation or later.
void check_generations(const Store& store) {
  const Core core = store.ref().core;
  for (PairNumber number = 0; number < core.shared->pair_count; ++number) {
    const PairSets sets = sets_of(core, pair_at(core, number));
    for (uint32_t i = 0; i < sets.count * kWays; ++i) {
      const Slot slot = sets.set[i / kWays]->slots[i % kWays];
      if (slot == 0) continue;
      const uint32_t generation = core.item_in(slot)->load_flush_generation();
      ASSERT_FALSE(is_later(core.shared->folded_generation, generation));
    }
  }
}

TEST(FlushPrefix, ConcernsKeysThatBeginWithIt) {
  const auto store = make_store(quiet_config(8 * kMiB));
  Worker worker(store.get());
  const std::vector<std::string> dead = {"a:", "a:1", "a:1:2", "a::"};
  const std::vector<std::string> alive = {"a", "b:1", "aa:1", "A:1", "xa:1", ":a:1"};
  for (const auto& key : dead) ASSERT_EQ(worker.set(key, "value"), Status::kOk);
  for (const auto& key : alive) ASSERT_EQ(worker.set(key, "value"), Status::kOk);
  ASSERT_EQ(flush_keys(*store, "a:"), Status::kOk);
  for (uint32_t second = 0; second < 4; ++second) {
    for (const auto& key : dead) EXPECT_FALSE(worker.get(key)) << key;
    for (const auto& key : alive) EXPECT_TRUE(worker.get(key)) << key;
    let_seconds_pass(*store, 1);
  }
  EXPECT_EQ(store->stats().get(StoreCounter::kItems), alive.size());
  for (const auto& key : dead) ASSERT_EQ(worker.set(key, "new"), Status::kOk);
  for (const auto& key : dead) EXPECT_TRUE(worker.get(key)) << key;
  check_accounts(*store);
}

TEST(FlushPrefix, IsSeenByAllThatReadAStore) {
  const auto store = make_store(quiet_config(8 * kMiB));
  Worker worker(store.get());
  const std::string large(kMiB, 'x');
  ASSERT_EQ(worker.set("a:large", large), Status::kOk);
  ASSERT_EQ(worker.set("a:1", "value"), Status::kOk);
  ASSERT_EQ(worker.set("b:large", large), Status::kOk);
  ASSERT_EQ(flush_keys(*store, "a:"), Status::kOk);
  for (const char* const key : {"a:1", "a:large"}) {
    Item header;
    EXPECT_FALSE(store->inspect(warpcache::bytes_of(std::string(key)), &header));
    EXPECT_FALSE(
        store->visit_locked(warpcache::bytes_of(std::string(key)), [](const Item&) { FAIL(); }));
    EXPECT_FALSE(worker.touch(key, 100));
  }
  std::vector<std::string> walked;
  for (uint64_t cursor = 0; cursor != StoreOwner::kWalkEnd;) {
    ASSERT_EQ(store->walk(cursor,
                          [&](const WalkedItem& item) {
                            walked.emplace_back(reinterpret_cast<const char*>(item.key.data),
                                                item.key.size);
                          }),
              Status::kOk);
  }
  EXPECT_EQ(walked, std::vector<std::string>{"b:large"});
  std::string value;
  EXPECT_TRUE(worker.get("b:large", &value));
  EXPECT_EQ(value, large);
}

// One slot for a prefix, however often it is flushed.
TEST(FlushPrefix, AgainTakesNoMoreSpace) {
  StoreConfig config = quiet_config(8 * kMiB);
  config.flushed_prefixes_max = 1;
  const auto store = make_store(config);
  Worker worker(store.get());
  for (uint32_t round = 0; round < 100; ++round) {
    ASSERT_EQ(worker.set("a:1", "value"), Status::kOk);
    ASSERT_TRUE(worker.get("a:1"));
    ASSERT_EQ(flush_keys(*store, "a:"), Status::kOk);
    ASSERT_FALSE(worker.get("a:1"));
    ASSERT_EQ(store->stats().flushed_prefixes, 1u);
  }
}

TEST(FlushPrefix, FullTableRefusesAndLosesNothing) {
  StoreConfig config = quiet_config(8 * kMiB);
  config.flushed_prefixes_max = 2;
  const auto store = make_store(config);
  Worker worker(store.get());
  for (const char* const key : {"a:1", "b:1", "c:1"}) {
    ASSERT_EQ(worker.set(key, "value"), Status::kOk);
  }
  ASSERT_EQ(flush_keys(*store, "a:"), Status::kOk);
  ASSERT_EQ(flush_keys(*store, "b:"), Status::kOk);
  EXPECT_EQ(flush_keys(*store, "c:"), Status::kOutOfMemory);
  EXPECT_EQ(flush_keys(*store, "c:", 10), Status::kOutOfMemory);
  EXPECT_EQ(flush_keys(*store, "a:"), Status::kOk);
  EXPECT_FALSE(worker.get("a:1"));
  EXPECT_FALSE(worker.get("b:1"));
  EXPECT_TRUE(worker.get("c:1"));
  let_seconds_pass(*store, 2);  // a pass, and a look whether readers have left
  EXPECT_EQ(store->stats().flushed_prefixes, 0u);
  EXPECT_EQ(flush_keys(*store, "c:"), Status::kOk);
  EXPECT_FALSE(worker.get("c:1"));
  EXPECT_EQ(store->stats().flushed_prefixes, 1u);
}

// What a pass finds alive is as good as new: a look-up compares no prefix any more.
TEST(FlushPrefix, LivingItemsGetTheStoresGeneration) {
  const auto store = make_store(quiet_config(8 * kMiB));
  Worker worker(store.get());
  ASSERT_EQ(worker.set("b:1", "value"), Status::kOk);
  ASSERT_EQ(flush_keys(*store, "a:"), Status::kOk);
  worker.enter();
  EXPECT_NE(worker.find("b:1").item->load_flush_generation(),
            shared_words(*store).flush_generation);
  worker.leave();
  let_seconds_pass(*store, 2);
  worker.enter();
  EXPECT_EQ(worker.find("b:1").item->load_flush_generation(),
            shared_words(*store).flush_generation);
  worker.leave();
  EXPECT_EQ(shared_words(*store).folded_generation, shared_words(*store).flush_generation);
}

// A reader that has found an item before it was removed must still see that it is dead.
TEST(FlushPrefix, SlotWaitsForReaders) {
  StoreConfig config = quiet_config(8 * kMiB);
  config.flushed_prefixes_max = 1;
  const auto store = make_store(config);
  Worker worker(store.get());
  ASSERT_EQ(worker.set("a:1", "value"), Status::kOk);
  Worker reader(store.get());
  reader.enter();
  const Item* const item = reader.find("a:1").item;
  ASSERT_NE(item, nullptr);
  ASSERT_EQ(flush_keys(*store, "a:"), Status::kOk);
  let_seconds_pass(*store, 5);
  EXPECT_EQ(store->stats().get(StoreCounter::kItems), 0u);
  EXPECT_EQ(flush_keys(*store, "b:"), Status::kOutOfMemory);
  EXPECT_FALSE(reader.ref().alive(*item, store->clock().now));
  reader.leave();
  let_seconds_pass(*store, 2);
  EXPECT_EQ(flush_keys(*store, "b:"), Status::kOk);
}

TEST(FlushPrefix, DelayedOne) {
  const auto store = make_store(quiet_config(8 * kMiB));
  Worker worker(store.get());
  ASSERT_EQ(worker.set("a:1", "value"), Status::kOk);
  ASSERT_EQ(worker.set("b:1", "value"), Status::kOk);
  ASSERT_EQ(flush_keys(*store, "a:", 3), Status::kOk);
  ASSERT_EQ(flush_keys(*store, "b:", 2), Status::kOk);
  EXPECT_EQ(store->stats().flushed_prefixes, 2u);
  let_seconds_pass(*store, 1);
  ASSERT_EQ(flush_keys(*store, "b:", 5), Status::kOk);  // instead of the one before
  let_seconds_pass(*store, 1);
  EXPECT_TRUE(worker.get("a:1"));
  EXPECT_TRUE(worker.get("b:1"));
  ASSERT_EQ(worker.set("a:2", "value"), Status::kOk);
  let_seconds_pass(*store, 1);
  EXPECT_FALSE(worker.get("a:1"));
  EXPECT_FALSE(worker.get("a:2"));
  EXPECT_TRUE(worker.get("b:1"));
  ASSERT_EQ(worker.set("a:1", "value"), Status::kOk);
  ASSERT_EQ(flush_keys(*store, "b:"), Status::kOk);
  EXPECT_FALSE(worker.get("b:1"));
  ASSERT_EQ(worker.set("b:1", "value"), Status::kOk);
  let_seconds_pass(*store, 10);
  EXPECT_TRUE(worker.get("a:1"));
  EXPECT_TRUE(worker.get("b:1"));
  EXPECT_EQ(store->stats().flushed_prefixes, 0u);
}

// The index grows and segments are compacted while passes are under way.
TEST(FlushPrefix, PassesOfAStoreThatGrows) {
  const auto store = make_store(quiet_config(64 * kMiB));
  Worker worker(store.get());
  std::map<std::string, bool> alive;
  const auto add = [&](uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; ++i) {
      const std::string key =
          std::string(1, static_cast<char>('a' + i % 4)) + ":" + std::to_string(i);
      ASSERT_EQ(worker.set(key, std::string(i % 50, 'v')), Status::kOk);
      alive[key] = true;
    }
  };
  const auto flush_letter = [&](const std::string& prefix) {
    ASSERT_EQ(flush_keys(*store, prefix), Status::kOk);
    for (auto& [key, lives] : alive) lives = lives && key.compare(0, prefix.size(), prefix) != 0;
  };
  const auto check = [&] {
    for (const auto& [key, lives] : alive) ASSERT_EQ(worker.get(key), lives) << key;
    check_generations(*store);
  };
  add(0, 240'000);
  flush_letter("a:");
  uint64_t added = 240'000;
  for (uint32_t second = 0; second < 6; ++second) {
    let_seconds_pass(*store, 1);
    add(added, added + 15'000);
    added += 15'000;
    if (second == 1) flush_letter("b:");
    if (second == 3) flush_letter("a:");
    if (second == 2) check();
    ASSERT_EQ(store->reclaim(40 * kMiB / 4), Status::kOk);  // moves items
  }
  let_seconds_pass(*store, 20);
  EXPECT_EQ(shared_words(*store).folded_generation, shared_words(*store).flush_generation);
  check();
  EXPECT_EQ(store->stats().get(StoreCounter::kEvicted), 0u);
  check_accounts(*store);
}

// Random commands against a map. Generations wrap on the way.
TEST(FlushPrefix, AgreesWithAModel) {
  StoreConfig config = quiet_config(8 * kMiB);
  config.flushed_prefixes_max = 3;
  for (uint32_t seed = 0; seed < testing_effort(20u, 400u); ++seed) {
    const auto store = make_store(config);
    Shared& shared = *store->ref().core.shared;
    shared.flush_generation = shared.folded_generation = UINT32_MAX - 20;
    shared.flush_mark = {shared.flush_generation, shared.flush_generation};
    Worker worker(store.get());
    std::mt19937 dice(seed);
    const auto below = [&dice](uint32_t bound) { return static_cast<uint32_t>(dice() % bound); };
    const std::vector<std::string> prefixes = {"a:", "b:", "a:a:", "a:b:", "b:b:b:", "a:a:a:"};
    const auto any_key = [&] {
      std::string key;
      for (uint32_t depth = 1 + below(3); depth != 0; --depth) key += below(2) != 0 ? "a:" : "b:";
      return key + std::to_string(below(4));
    };
    std::map<std::string, std::string> model;
    for (uint32_t step = 0; step < 3000; ++step) {
      const uint32_t kind = below(100);
      const std::string key = any_key();
      if (kind < 40) {
        const std::string value = std::to_string(step);
        ASSERT_EQ(worker.set(key, value), Status::kOk);
        model[key] = value;
      } else if (kind < 45) {
        worker.erase(key);
        model.erase(key);
      } else if (kind < 50) {
        const std::string& prefix = prefixes[below(static_cast<uint32_t>(prefixes.size()))];
        const Status status = flush_keys(*store, prefix);
        if (status == Status::kOutOfMemory) {
          ASSERT_EQ(store->stats().flushed_prefixes, 3u);
          continue;
        }
        std::erase_if(model, [&](const auto& one) { return one.first.starts_with(prefix); });
      } else if (kind == 50) {
        store->flush_all();
        model.clear();
      } else if (kind < 53) {
        let_seconds_pass(*store, 1);
      } else {
        std::string value;
        const bool found = worker.get(key, &value);
        const auto wanted = model.find(key);
        ASSERT_EQ(found, wanted != model.end()) << key << " seed " << seed << " step " << step;
        if (found) {
          ASSERT_EQ(value, wanted->second);
        }
      }
    }
    check_generations(*store);
    let_seconds_pass(*store, 3);
    EXPECT_EQ(store->stats().get(StoreCounter::kItems), model.size());
  }
}

}  // namespace
}  // namespace warpcache::store
