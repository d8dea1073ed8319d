// SPDX-License-Identifier: Apache-2.0
//
// Many threads on one store. Run under ThreadSanitizer too.
#include <atomic>
#include <random>
#include <thread>

#include "base/testing/effort.h"
#include "store/testing/worker_group_fixture.h"

namespace warpcache::store {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kEffort = 1;
#else
const uint64_t kEffort = testing_effort<uint64_t>(2, 8);
#endif

// Keys that are never removed must be found at any time, while the index grows.
TEST(Stress, NoHitIsLostWhileTheIndexGrows) {
  StoreConfig config = quiet_config(256 * kMiB);
  config.maintenance_thread = true;
  const auto store = make_store(config);
  constexpr uint64_t kStable = 4000;
  Worker setup(store.get());
  for (uint64_t i = 0; i < kStable; ++i)
    ASSERT_EQ(setup.set(key_name(i), make_value(i, 1, 16)), Status::kOk);
  std::atomic<bool> done = false;
  std::atomic<uint64_t> misses = 0;
  std::atomic<uint64_t> wrong = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Worker worker(store.get());
      std::mt19937_64 random(t);
      std::string value;
      while (!done) {
        worker.enter();
        for (int i = 0; i < 50; ++i) {
          const uint64_t key = random() % kStable;
          if (!worker.get(key_name(key), &value)) {
            ++misses;
          } else if (check_value(key, value) == UINT64_MAX) {
            ++wrong;
          }
        }
        worker.leave();
      }
    });
  }
  std::vector<std::thread> writers;
  const uint64_t kNew = 30'000 * kEffort;
  for (uint64_t t = 0; t < 2; ++t) {
    writers.emplace_back([&, t] {
      Worker worker(store.get());
      for (uint64_t i = 0; i < kNew; ++i) {
        const uint64_t key = kStable + 2 * i + t;
        ASSERT_EQ(worker.set(key_name(key), make_value(key, 1, 16)), Status::kOk);
        if (i % 3 == 0) {
          ASSERT_TRUE(worker.erase(key_name(key)));
        }
        const uint64_t rewritten = (i * 7919) % kStable;  // replaces swap the slot in place
        if (rewritten % 2 == t) {
          ASSERT_EQ(worker.set(key_name(rewritten), make_value(rewritten, i, 16 + i % 100)),
                    Status::kOk);
        }
      }
    });
  }
  for (std::thread& thread : writers) thread.join();
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(misses, 0u);
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(store->stats().get(StoreCounter::kEvicted), 0u);
  EXPECT_GT(store->stats().get(StoreCounter::kSplits), 500u);
}

// A key disappears for all readers at the same moment: a reader that has missed it does not find it
// later, neither by its tag nor where it was found before.
TEST(Stress, WhatIsMissingIsNotFoundAgain) {
  const auto store = make_store(quiet_config(64 * kMiB));
  const std::string key = key_name(1);
  std::atomic<bool> done = false;
  std::atomic<uint64_t> again = 0;
  std::thread reader([&] {
    Worker worker(store.get());
    const StoreRef ref = store->ref();
    const uint64_t hash = ref.hash(bytes_of(key));
    while (!done) {
      worker.enter();
      const Candidate hint = ref.probe(hash);
      for (int i = 0; hint.slot != 0 && i < 100; ++i) {
        if (ref.find(hash, bytes_of(key))) continue;
        const Found found = ref.find(hash, bytes_of(key), hint);
        if (found && found.item == ref.core.item_in(hint.slot)) ++again;
        break;
      }
      worker.leave();
    }
  });
  Worker writer(store.get());
  for (uint64_t i = 0; i < 100'000 * kEffort; ++i) {
    ASSERT_EQ(writer.set(key, make_value(1, i, 16)), Status::kOk);
    ASSERT_TRUE(writer.erase(key));
  }
  done = true;
  reader.join();
  EXPECT_EQ(again, 0u);
}

struct Mix {
  uint64_t memory = 4 * kMiB;
  bool keep_all = false;
  uint64_t keys = 6000;
  uint64_t value_max = 1500;
  uint64_t large_every = 0;  // one value in this number is a chain
  uint64_t operations = 20'000 * kEffort;
  uint32_t workers = 0;     // workers that share maintenance; 0: the store's own thread does it
  uint32_t evacuators = 0;  // reclaimers beside its leader's, where there is a worker group
};

void run_mix(const Mix& mix) {
  StoreConfig config = quiet_config(mix.memory);
  config.maintenance_thread = mix.workers == 0;
  config.keep_all = mix.keep_all;
  config.manual_clock = false;
  config.reclaim_wait_ms_max = 10'000;  // threads that are in an epoch may not be running
  const auto store = make_store(config);
  std::unique_ptr<WorkerGroupMaintenance> maintenance;
  if (mix.workers != 0)
    maintenance =
        std::make_unique<WorkerGroupMaintenance>(store.get(), mix.workers, mix.evacuators);
  // For each key, the version that its only writer has announced: a hit that begins later shows
  // this version or a later one. A deletion counts as a version too.
  std::vector<std::atomic<uint64_t>> known(mix.keys);
  constexpr uint64_t kWriters = 3;
  std::atomic<uint64_t> stale = 0;
  std::atomic<uint64_t> torn = 0;
  std::atomic<uint64_t> hits = 0;
  std::atomic<uint64_t> refused = 0;
  const auto read = [&](Worker& worker, uint64_t key, std::string& value) {
    const uint64_t least = known[key].load();
    if (!worker.get(key_name(key), &value)) return;
    ++hits;
    const uint64_t version = check_value(key, value);
    if (version == UINT64_MAX) {
      ++torn;
    } else if (version < least) {
      ++stale;
    }
  };
  const auto write = [&](Worker& worker, std::mt19937_64& random, uint64_t key) {
    const uint64_t version = known[key].load() + 1;
    if (random() % 8 == 0) {
      worker.erase(key_name(key));
      known[key] = version;
      return;
    }
    const bool large = mix.large_every != 0 && random() % mix.large_every == 0;
    const uint64_t size = large ? 40'000 + random() % 200'000 : random() % mix.value_max;
    const uint32_t expiry = random() % 16 == 0 ? worker.ref().clock().now + 1 : 0;
    const Status status = worker.set(key_name(key), make_value(key, version, size), expiry);
    if (status == Status::kOk) {
      known[key] = version;
    } else {
      ++refused;
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kWriters; ++t) {
    threads.emplace_back([&, t] {
      Worker worker(store.get());
      if (maintenance != nullptr) {
        worker.reclaim = [&](uint64_t bytes) { return maintenance->reclaim(bytes); };
      }
      std::mt19937_64 random(t + 1);
      std::string value;
      for (uint64_t i = 0; i < mix.operations; ++i) {
        // Squared: some keys are used far more often than others.
        const uint64_t skewed = (random() % mix.keys) * (random() % mix.keys) / mix.keys;
        if (random() % 2 == 0) {
          read(worker, skewed, value);
        } else {
          const uint64_t own = skewed / kWriters * kWriters + t;
          if (own < mix.keys) write(worker, random, own);
        }
        if (random() % 512 == 0) worker.touch(key_name(skewed), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (mix.evacuators != 0) {
    EXPECT_GT(maintenance->copied_by_evacuators(), 0u);
  }
  maintenance.reset();
  EXPECT_EQ(stale, 0u);
  EXPECT_EQ(torn, 0u);
  EXPECT_GT(hits, mix.operations / 8);
  if (mix.keep_all) {
    EXPECT_EQ(store->stats().get(StoreCounter::kEvicted), 0u);
  } else {
    EXPECT_EQ(refused, 0u);
  }
  if (mix.workers != 0) {
    EXPECT_GT(store->stats().get(StoreCounter::kMovedItems), 100u);
    check_accounts(*store);  // nothing else is at work now
  }
}

TEST(Stress, SmallItemsUnderEviction) { run_mix({}); }

TEST(Stress, LargeAndSmallItemsUnderEviction) {
  Mix mix;
  mix.memory = 8 * kMiB;
  mix.large_every = 40;
  mix.operations = 8'000 * kEffort;
  run_mix(mix);
}

TEST(Stress, TinyMemory) {
  Mix mix;
  mix.memory = 2 * kMiB;
  mix.value_max = 400;
  run_mix(mix);
}

TEST(Stress, KeepAllRefusesButNeverEvicts) {
  Mix mix;
  mix.keep_all = true;
  run_mix(mix);
}

TEST(Stress, AWorkerGroupUnderEviction) {
  Mix mix;
  mix.operations = 8'000 * kEffort;
  mix.workers = 3;
  run_mix(mix);
}

TEST(Stress, AWorkerGroupWithLargeAndSmallItems) {
  Mix mix;
  mix.memory = 8 * kMiB;
  mix.large_every = 40;
  mix.value_max = 20'000;
  mix.keys = 1500;
  mix.operations = 1'000 * kEffort;
  mix.workers = 2;
  run_mix(mix);
}

TEST(Stress, EvacuatorsUnderEviction) {
  Mix mix;
  mix.operations = 8'000 * kEffort;
  mix.workers = 1;
  mix.evacuators = 3;
  run_mix(mix);
}

TEST(Stress, EvacuatorsWithLargeAndSmallItems) {
  Mix mix;
  mix.memory = 8 * kMiB;
  mix.large_every = 40;
  mix.operations = 4'000 * kEffort;
  mix.workers = 1;
  mix.evacuators = 2;
  run_mix(mix);
}

TEST(Stress, AWorkerGroupKeepsAll) {
  Mix mix;
  mix.memory = 2 * kMiB;
  mix.keep_all = true;
  mix.operations = 4'000 * kEffort;
  mix.workers = 3;
  run_mix(mix);
}

}  // namespace
}  // namespace warpcache::store
