// SPDX-License-Identifier: Apache-2.0
//
// Memory is reused when, and only when, nobody can see it any more.
#include <atomic>
#include <chrono>
#include <thread>

#include "base/testing/effort.h"
#include "base/testing/patience.h"
#include "store/reclaim/reclaim.h"
#include "store/testing/store_fixture.h"

namespace warpcache::store {
namespace {

StoreConfig impatient_config(uint64_t memory) {
  StoreConfig config = quiet_config(memory);
  config.reclaim_wait_ms_max = 20;
  return config;
}

// Writes other keys until nothing more can be stored or `bytes` are written. True: all were stored.
bool churn(Worker& worker, uint64_t first_key, uint64_t bytes) {
  constexpr uint64_t kSize = 500;
  for (uint64_t written = 0; written < bytes; written += kSize) {
    const uint64_t key = first_key + written / kSize;
    if (worker.set(key_name(key), make_value(key, 1, kSize)) != Status::kOk) return false;
  }
  return true;
}

struct Seen {
  uint64_t key;
  const Item* item;
};

TEST(Reuse, AHeldEpochKeepsWhatItHasSeen) {
  const auto store = make_store(impatient_config(4 * kMiB));
  Worker reader(store.get());
  Worker writer(store.get());
  constexpr uint64_t kKeys = 600;
  constexpr uint64_t kChain = 1'000'000;
  for (uint64_t key = 0; key < kKeys; ++key) {
    ASSERT_EQ(writer.set(key_name(key), make_value(key, 7, 200)), Status::kOk);
  }
  ASSERT_EQ(writer.set(key_name(kChain), make_value(kChain, 7, 200'000)), Status::kOk);
  reader.enter();
  std::vector<Seen> seen;
  for (uint64_t key = 0; key < kKeys; ++key) seen.push_back({key, reader.find(key_name(key)).item});
  seen.push_back({kChain, reader.find(key_name(kChain)).item});
  for (uint64_t key = 0; key < kKeys; key += 3) {
    ASSERT_EQ(writer.set(key_name(key), make_value(key, 8, 300)), Status::kOk);
  }
  for (uint64_t key = 1; key < kKeys; key += 3) ASSERT_TRUE(writer.erase(key_name(key)));
  ASSERT_TRUE(writer.erase(key_name(kChain)));
  // Eviction and compaction of everything else, until the data that the reader holds fills the
  // memory.
  EXPECT_FALSE(churn(writer, 10'000, 40 * kMiB));
  for (const Seen& one : seen) {
    ASSERT_NE(one.item, nullptr);
    ASSERT_EQ(check_value(one.key, reader.value_of(*one.item)), 7u);
  }
  reader.leave();
  EXPECT_TRUE(churn(writer, 500'000, 40 * kMiB));
}

TEST(Reuse, AnIdleThreadStopsNothing) {
  const auto store = make_store(impatient_config(4 * kMiB));
  Worker idle(store.get());
  Worker writer(store.get());
  idle.enter();
  EXPECT_FALSE(idle.get("nothing"));
  idle.leave();
  EXPECT_TRUE(churn(writer, 0, 40 * kMiB));
}

TEST(Reuse, ADeletedChainIsFreeAfterTheBatch) {
  const auto store = make_store(impatient_config(4 * kMiB));
  Worker writer(store.get());
  const uint64_t free_before = store->stats().free_segments;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(writer.set("large", make_value(1, 1, 1'000'000)), Status::kOk);
    ASSERT_TRUE(writer.erase("large"));
  }
  ASSERT_EQ(store->reclaim(3 * kMiB), Status::kOk);
  EXPECT_EQ(store->stats().free_segments, free_before);
}

TEST(Pin, HoldsMemoryNotEpochs) {
  StoreConfig config = impatient_config(8 * kMiB);
  config.segment_size = 64 * 1024;
  const auto store = make_store(config);
  Worker reader(store.get());
  Worker writer(store.get());
  ASSERT_EQ(writer.set("chain", make_value(1, 1, 300'000)), Status::kOk);
  ASSERT_EQ(writer.set("plain", make_value(2, 1, 20'000)), Status::kOk);
  reader.enter();
  const Item* chain = reader.find("chain").item;
  const Item* plain = reader.find("plain").item;
  const uint32_t chain_pin = reader.ref().pin(*chain, PinNeed::kMust);
  const uint32_t again = reader.ref().pin(*chain, PinNeed::kMust);
  const uint32_t plain_pin = reader.ref().pin(*plain, PinNeed::kMust);
  reader.leave();
  ASSERT_NE(chain_pin, 0u);
  ASSERT_NE(plain_pin, 0u);
  EXPECT_EQ(store->stats().pinned_segments, 5u);  // four of the chain, which has a tail
  ASSERT_TRUE(writer.erase("chain"));
  ASSERT_EQ(writer.set("plain", make_value(2, 2, 100)), Status::kOk);
  EXPECT_TRUE(churn(writer, 0, 40 * kMiB));
  EXPECT_EQ(check_value(1, reader.value_of(*chain)), 1u);
  EXPECT_EQ(check_value(2, reader.value_of(*plain)), 1u);
  reader.ref().unpin(chain_pin);
  EXPECT_TRUE(churn(writer, 100'000, 10 * kMiB));
  EXPECT_EQ(check_value(1, reader.value_of(*chain)), 1u);
  reader.ref().unpin(again);
  reader.ref().unpin(plain_pin);
  EXPECT_EQ(store->stats().pinned_segments, 0u);
  store->maintain();
  EXPECT_TRUE(churn(writer, 200'000, 10 * kMiB));
}

TEST(Pin, IsBoundedToAQuarter) {
  StoreConfig config = impatient_config(8 * kMiB);
  config.segment_size = 64 * 1024;
  const auto store = make_store(config);
  Worker worker(store.get());
  std::vector<uint32_t> pins;
  const auto pin_forty = [&](uint64_t first, PinNeed need) {
    for (uint64_t i = first; i < first + 40; ++i) {
      ASSERT_EQ(worker.set(key_name(i), make_value(i, 1, 120'000)), Status::kOk);
      worker.enter();
      const uint32_t pin = worker.ref().pin(*worker.find(key_name(i)).item, need);
      worker.leave();
      if (pin != 0) pins.push_back(pin);
    }
  };
  pin_forty(0, PinNeed::kMay);
  EXPECT_EQ(pins.size(), 16u);  // of a segment and a tail each, of 128
  pin_forty(40, PinNeed::kMust);
  EXPECT_EQ(pins.size(), 32u);
  for (const uint32_t pin : pins) worker.ref().unpin(pin);
  EXPECT_EQ(store->stats().pinned_segments, 0u);
}

// Live items are copied without the lock: no change made meanwhile may be lost, and the key must be
// found at any time.
TEST(Copying, LosesNoTouchNoWriteAndNoHit) {
  const auto store = make_store(quiet_config(16 * kMiB));
  constexpr uint64_t kKeys = 300;
  constexpr uint64_t kMoves = 40 * kKeys;
  constexpr int kRoundsMax = 1'000'000;
  Worker setup(store.get());
  for (uint64_t key = 0; key < kKeys; ++key) {
    ASSERT_EQ(setup.set(key_name(key), make_value(key, 1, 2000), 1000), Status::kOk);
  }
  std::atomic<bool> done = false;
  std::atomic<uint64_t> misses = 0;
  std::vector<uint32_t> last(kKeys, 1000);
  std::thread toucher([&] {
    Worker worker(store.get());
    for (uint32_t round = 1; !done; ++round) {
      for (uint64_t key = 0; key < kKeys; ++key) {
        std::string value;
        if (!worker.get(key_name(key), &value) || check_value(key, value) != 1) ++misses;
        last[key] = 1000 + round;
        if (key % 16 == round % 16) {
          ASSERT_EQ(worker.set(key_name(key), make_value(key, 1, 2000), last[key]), Status::kOk);
        } else {
          ASSERT_TRUE(worker.touch(key_name(key), last[key]));
        }
      }
    }
  });
  ThreadContext copier;
  ASSERT_EQ(store->register_thread(&copier), Status::kOk);
  {
    const Core core = store->ref().core;
    WorkerGroup worker_group;
    Reclaimer reclaimer(core, &copier, &worker_group);
    const auto moved = [&] { return store->stats().get(StoreCounter::kMovedItems); };
    for (int round = 0; round < kRoundsMax && moved() < kMoves; ++round) {
      for (SegmentId id = 1; id < core.shared->segment_top; ++id) {
        const SegmentState state = core.segment(id).load_state();
        if (state != SegmentState::kYoung && state != SegmentState::kMain) continue;
        ASSERT_NE(reclaimer.empty_segment(id, {}, true), Emptied::kNoSpace);
      }
      reclaimer.free_retired();
    }
  }
  done = true;
  toucher.join();
  EXPECT_EQ(misses, 0u);
  setup.enter();
  for (uint64_t key = 0; key < kKeys; ++key) {
    const Found found = setup.find(key_name(key));
    ASSERT_TRUE(found);
    EXPECT_EQ(found.item->load_expiry(), last[key]) << key;
    EXPECT_EQ(check_value(key, setup.value_of(*found.item)), 1u);
  }
  setup.leave();
  EXPECT_GE(store->stats().get(StoreCounter::kMovedItems), kMoves);
  store->unregister_thread(&copier);
}

// The same for one key whose lock is nearly always held: the copier gets it once to look, and again
// only after another touch, when the body is copied.
TEST(Copying, TakesTheExpiryUnderTheLock) {
  const auto store = make_store(quiet_config(16 * kMiB));
  Worker setup(store.get());
  const std::string key = "key";
  ASSERT_EQ(setup.set(key, make_value(1, 1, 2000), 1000), Status::kOk);
  for (uint64_t other = 0; other < 100; ++other) {  // so that its segment is sealed
    ASSERT_EQ(setup.set(key_name(other), make_value(other, 1, 2000)), Status::kOk);
    ASSERT_TRUE(setup.erase(key_name(other)));
  }
  std::atomic<bool> done = false;
  std::atomic<uint64_t> lost = 0;
  std::thread toucher([&] {
    Worker worker(store.get());
    const uint64_t hash = worker.ref().hash(bytes_of(key));
    for (uint32_t expiry = 1000; !done; ++expiry) {
      worker.enter();
      {
        LockedPair pair(worker.ref(), hash);
        const Found found = pair.find(bytes_of(key));
        ASSERT_TRUE(found);
        if (found.item->load_expiry() != expiry) ++lost;
        for (int i = 0; i < 3000 && !done; ++i) {
        }
        worker.ref().set_expiry(found, expiry + 1);
      }
      worker.leave();
      for (int i = 0; i < 100 && !done; ++i) {
      }
    }
  });
  ThreadContext copier;
  ASSERT_EQ(store->register_thread(&copier), Status::kOk);
  {
    const Core core = store->ref().core;
    WorkerGroup worker_group;
    Reclaimer reclaimer(core, &copier, &worker_group);
    const auto moved = [&] { return store->stats().get(StoreCounter::kMovedItems); };
    const auto end = std::chrono::steady_clock::now() + kPatience;
    const uint64_t wanted = thread_sanitizer_by_day() ? 200 : 2000;
    while (moved() < wanted && std::chrono::steady_clock::now() < end) {
      for (SegmentId id = 1; id < core.shared->segment_top; ++id) {
        const SegmentState state = core.segment(id).load_state();
        if (state != SegmentState::kYoung && state != SegmentState::kMain) {
          reclaimer.seal_own(id);
          continue;
        }
        ASSERT_NE(reclaimer.empty_segment(id, {}, true), Emptied::kNoSpace);
      }
      reclaimer.free_retired();
    }
    EXPECT_GE(moved(), 100u);
  }
  done = true;
  toucher.join();
  EXPECT_EQ(lost, 0u);
  store->unregister_thread(&copier);
}

// Bits set under the lock survive when a reader without the lock sets a hint beside them.
TEST(Item, AHitDoesNotUndoAToken) {
  const auto store = make_store(quiet_config(4 * kMiB));
  Worker writer(store.get());
  std::atomic<bool> done = false;
  std::thread reader([&] {
    Worker worker(store.get());
    while (!done) worker.get("key");
  });
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(writer.set("key", "value"), Status::kOk);
    writer.enter();
    {
      LockedPair pair(writer.ref(), writer.ref().hash(bytes_of("key")));
      const Found found = pair.find(bytes_of("key"));
      found.item->store_bits(static_cast<uint8_t>(found.item->load_bits() | kItemTokenSent));
    }
    for (int look = 0; look < 3; ++look) {
      ASSERT_NE(writer.find("key").item->load_bits() & kItemTokenSent, 0);
    }
    writer.leave();
  }
  done = true;
  reader.join();
}

TEST(Cas, IsAboveTheReplacedItemsAndUnique) {
  const auto store = make_store(quiet_config(4 * kMiB));
  Worker a(store.get());
  Worker b(store.get());
  uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    const Worker& worker = i % 3 == 0 ? a : b;
    const uint64_t next = worker.ref().next_cas(const_cast<Worker&>(worker).thread(), last);
    ASSERT_GT(next, last);
    last = next;
  }
  // After an id that a client chose, ids are unique too, over all keys.
  const uint64_t chosen = uint64_t{1} << 60;
  for (const uint64_t old : {chosen, chosen, UINT64_MAX, chosen + 1}) {
    const uint64_t next = a.ref().next_cas(a.thread(), old);
    ASSERT_GT(next, last);
    ASSERT_LT(next, chosen);
    last = next;
  }
}

}  // namespace
}  // namespace warpcache::store
