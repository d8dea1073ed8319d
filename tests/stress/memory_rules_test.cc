// SPDX-License-Identifier: Apache-2.0
//
// Rules of the design about memory: data that a batch uses stays, space that was never published is
// skipped, and a waiting thread does not stop the others.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include "store/testing/store_fixture.h"
#include "stress/speaker.h"

namespace warpcache::stress {
namespace {

// Microseconds in which this thread was ready to run and had no processor.
int64_t queued_us() {
  std::ifstream in("/proc/thread-self/schedstat");
  int64_t ran_ns = 0;
  int64_t queued_ns = 0;
  in >> ran_ns >> queued_ns;
  return queued_ns / 1000;
}

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using store::check_value;
using store::key_name;
using store::kMiB;
using store::make_store;
using store::make_value;
using store::quiet_config;
using store::Worker;

// Rule 1. No segment is walked or reused while a batch may still write to it.
TEST(Batch, AnItemMayBeWrittenSlowly) {
  store::StoreConfig config = quiet_config(4 * kMiB);
  config.keep_all = true;
  config.reclaim_wait_ms_max = 20;
  const auto store = make_store(config);
  Worker slow(store.get());
  Worker quick(store.get());
  const std::string value = make_value(1, 1, 3000);
  const std::string key = "slow";
  slow.enter();
  store::Allocation allocation;
  ASSERT_EQ(slow.ref().allocate(slow.thread(), 4, 3000, 0, allocation), Status::kOk);
  std::memcpy(allocation.item->key_data(), key.data(), key.size());
  slow.ref().write_value(*allocation.item, 0, bytes_of(value.substr(0, 1500)));
  // All the memory is written and deleted again, as far as the held batch allows.
  const auto churn = [&quick](uint64_t from) {
    for (uint64_t i = from; i < from + 8000; ++i) {
      if (quick.set(key_name(i), make_value(i, 1, 900)) != Status::kOk) break;
    }
    for (uint64_t i = from; i < from + 8000; ++i) quick.erase(key_name(i));
  };
  for (uint64_t round = 0; round < 3; ++round) churn(round * 10'000);
  store->set_clock(store->clock().now + 1);  // frees every segment in which nothing is alive
  slow.ref().write_value(*allocation.item, 1500, bytes_of(value.substr(1500)));
  slow.publish(slow.ref().hash(bytes_of(key)), key, allocation);
  slow.leave();
  std::string read;
  for (uint64_t round = 3; round < 8; ++round) {
    churn(round * 10'000);
    store->set_clock(store->clock().now + 1);
    ASSERT_TRUE(slow.get(key, &read));
    ASSERT_EQ(read, value);
  }
}

// The bytes of an item, as they lie in memory, for a key chosen by a client.
std::string forged_item(const std::string& key, uint32_t value_size) {
  store::Item item = {};
  item.cas = 7;
  item.value_size = value_size;
  item.key_size = static_cast<uint8_t>(key.size());
  std::string image(reinterpret_cast<const char*>(&item), sizeof(item));
  image += key;
  image.resize((image.size() + 15) / 16 * 16, '\0');
  return image;
}

// Rule 1. Values that look like items of other keys, and space that was taken and never used: the
// walk visits only what was written as items.
TEST(Walker, ForgedItemsAndAbandonedSpaceChangeNothing) {
  store::StoreConfig config = quiet_config(4 * kMiB);
  config.segment_size = 64 * 1024;  // of many items, so that some are moved
  config.keep_all = true;
  config.reclaim_wait_ms_max = 50;
  const auto store = make_store(config);
  Worker worker(store.get());
  constexpr uint64_t kVictims = 50;
  for (uint64_t i = 0; i < kVictims; ++i) {
    ASSERT_EQ(worker.set(key_name(i), make_value(i, 1, 100)), Status::kOk);
  }
  std::mt19937_64 random(1);
  const auto forged = [&random] {
    std::string value;
    while (value.size() < 1000)
      value += forged_item(key_name(random() % kVictims), static_cast<uint32_t>(random() % 4000));
    return value;
  };
  // Takes space anywhere, fills it with forged items, and gives it back or publishes it.
  const auto leave_space = [&](uint64_t key) {
    worker.enter();
    store::Allocation kept;
    store::Allocation dropped;
    const std::string name = key_name(key);
    const std::string value = forged();
    const uint32_t size = static_cast<uint32_t>(value.size());
    const uint8_t name_size = static_cast<uint8_t>(name.size());
    if (worker.ref().allocate(worker.thread(), name_size, size, 0, dropped) == Status::kOk)
      worker.ref().write_value(*dropped.item, 0, bytes_of(value));
    if (worker.ref().allocate(worker.thread(), name_size, size, 0, kept) == Status::kOk) {
      std::memcpy(kept.item->key_data(), name.data(), name.size());
      worker.ref().write_value(*kept.item, 0, bytes_of(value));
      worker.publish(worker.ref().hash(bytes_of(name)), name, kept);
    }
    if (dropped) worker.ref().abandon(worker.thread(), dropped);
    worker.leave();
  };
  for (uint64_t i = 0; i < 20'000; ++i) {
    const uint64_t key = 1000 + random() % 1500;
    switch (random() % 3) {
      case 0:
        leave_space(key);
        break;
      case 1:
        worker.erase(key_name(key));
        break;
      default:
        (void)worker.set(key_name(key), forged());  // may find no memory
    }
    if (i % 500 != 0) continue;
    store->maintain();
    std::string value;
    for (uint64_t v = 0; v < kVictims; ++v) {
      ASSERT_TRUE(worker.get(key_name(v), &value)) << v;
      ASSERT_EQ(check_value(v, value), 1u);
    }
  }
  EXPECT_GT(store->stats().get(store::StoreCounter::kMovedItems), 1000u);
}

// Rules 1 and 2. A batch is held for a second while its items are replaced, deleted and evicted.
TEST(Batch, HeldForASecondItKeepsItsItemsAndStopsNobody) {
  store::StoreConfig config = quiet_config(32 * kMiB);
  config.maintenance_thread = true;
  config.reclaim_wait_ms_max = 5000;
  const auto store = make_store(config);
  constexpr uint64_t kHeld = 500;
  constexpr uint64_t kHot = 100'000;
  Worker holder(store.get());
  for (uint64_t i = 0; i < kHeld; ++i)
    ASSERT_EQ(holder.set(key_name(i), make_value(i, 1, 600)), Status::kOk);
  ASSERT_EQ(holder.set(key_name(kHeld), make_value(kHeld, 1, 500'000)), Status::kOk);
  ASSERT_EQ(holder.set(key_name(kHot), make_value(kHot, 1, 100)), Status::kOk);

  std::atomic<bool> released = false;
  std::atomic<bool> done = false;
  std::atomic<uint64_t> reads = 0;
  std::atomic<uint64_t> writes = 0;
  std::atomic<int64_t> longest_read_us = 0;  // without the time in which it had no processor
  holder.enter();
  std::vector<const store::Item*> items;
  for (uint64_t i = 0; i <= kHeld; ++i) items.push_back(holder.find(key_name(i)).item);
  std::vector<std::thread> others;
  others.emplace_back([&] {
    Worker reader(store.get());
    int64_t queued = queued_us();
    while (!released) {
      const auto start = steady_clock::now();
      EXPECT_TRUE(reader.get(key_name(kHot)));
      int64_t took =
          std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - start)
              .count();
      if (took > longest_read_us) took -= queued_us() - queued;
      longest_read_us = std::max<int64_t>(longest_read_us, took);
      if (++reads % 64 == 0) queued = queued_us();
    }
  });
  others.emplace_back([&] {
    Worker writer(store.get());
    for (uint64_t i = 0; i <= kHeld; i += 2) EXPECT_EQ(writer.set(key_name(i), "new"), Status::kOk);
    for (uint64_t i = 1; i <= kHeld; i += 2) EXPECT_TRUE(writer.erase(key_name(i)));
    for (uint64_t i = 200'000; !done; ++i) {
      EXPECT_EQ(writer.set(key_name(i), make_value(i, 1, 1000)), Status::kOk);
      if (!released) ++writes;
      writer.get(key_name(kHot));
    }
  });
  // For a second, or longer if a slow build needs it for this number of writes: they must not stop.
  constexpr uint64_t kWritesMin = 10'000;
  const auto start = steady_clock::now();
  const auto end = start + milliseconds(1000);
  const auto latest = start + milliseconds(20'000);
  while (steady_clock::now() < end || (writes <= kWritesMin && steady_clock::now() < latest)) {
    for (uint64_t i = 0; i <= kHeld; ++i) {
      ASSERT_NE(items[i], nullptr);
      ASSERT_EQ(check_value(i, holder.value_of(*items[i])), 1u);
    }
  }
  released = true;
  holder.leave();
  const uint64_t held_writes = writes;
  const auto evicted = [&] { return store->stats().get(store::StoreCounter::kEvicted); };
  do {
    std::this_thread::sleep_for(milliseconds(300));
  } while (evicted() == 0 && steady_clock::now() < latest + milliseconds(10'000));
  done = true;
  for (std::thread& thread : others) thread.join();
  // Reads continued; writes continued until the memory was full of retired segments.
  EXPECT_GT(reads, 1000u);
  EXPECT_LT(longest_read_us, 500'000);
  EXPECT_GT(held_writes, kWritesMin);
  EXPECT_GT(evicted(), 0u);
}

// Fails every allocation while switched on.
struct Failing : store::Faults {
  std::atomic<bool> on = false;
  bool fails_allocation() override { return on; }
};

// Rule 3. A command without memory has no effect, except that a set removes the old value.
TEST(Failure, WithoutMemoryOnlySetsHaveAnEffect) {
  Failing failing;
  store::StoreConfig config = quiet_config(8 * kMiB);
  config.faults = &failing;
  const auto store = make_store(config);
  Speaker speaker(*store);
  const std::string no_memory = "SERVER_ERROR out of memory storing object\r\n";
  const std::string kept = "VALUE k 5 1\r\n7\r\nEND\r\n";
  const struct {
    std::string command;
    std::string reply;
    std::string then;
  } cases[] = {
      {"set k 0 0 1\r\n8\r\n", no_memory, "END\r\n"},
      {"add k 0 0 1\r\n8\r\n", "NOT_STORED\r\n", kept},
      {"add x 0 0 1\r\n8\r\n", no_memory, kept},
      {"replace k 0 0 1\r\n8\r\n", no_memory, kept},
      {"append k 0 0 1\r\n8\r\n", no_memory, kept},
      {"prepend k 0 0 1\r\n8\r\n", no_memory, kept},
      {"cas k 0 0 1 77\r\n8\r\n", no_memory, kept},
      {"cas k 0 0 1 78\r\n8\r\n", "EXISTS\r\n", kept},
      {"incr k 1\r\n", "SERVER_ERROR out of memory\r\n", kept},
      {"decr k 1\r\n", "SERVER_ERROR out of memory\r\n", kept},
      {"touch k 0\r\n", "TOUCHED\r\n", kept},
      {"ms k 1\r\n8\r\n", no_memory, "END\r\n"},
      {"md k x\r\n", "SERVER_ERROR out of memory\r\n", kept},
      {"delete k\r\n", "DELETED\r\n", "END\r\n"},
  };
  for (const auto& one : cases) {
    failing.on = false;
    ASSERT_EQ(speaker.say("ms k 1 F5 E77\r\n7\r\n"), "HD\r\n");
    failing.on = true;
    EXPECT_EQ(speaker.say(one.command), one.reply) << one.command;
    EXPECT_EQ(speaker.say("get k\r\n"), one.then) << one.command;
    EXPECT_EQ(speaker.say("get x\r\n"), "END\r\n") << one.command;
  }
}

// Rule 17. A reservation that finds no memory leaves nothing behind, and no item is lost.
TEST(Failure, WithoutMemoryNothingIsReserved) {
  Failing failing;
  store::StoreConfig config = quiet_config(16 * kMiB);
  config.reclaim_wait_ms_max = 20;
  config.faults = &failing;
  const auto store = make_store(config);
  Speaker speaker(*store);
  const std::string value = make_value(1, 1, 200'000);
  ASSERT_EQ(speaker.set_reserved("big", value), "STORED\r\n");
  failing.on = true;
  uint32_t id = 0;
  EXPECT_EQ(speaker.engine().reserve(3, 200'000, &id), Status::kOutOfMemory);
  EXPECT_EQ(store->stats().reserved_segments, 0u);
  EXPECT_EQ(speaker.say("get big\r\n"), "VALUE big 0 200000\r\n" + value + "\r\nEND\r\n");
  failing.on = false;
  EXPECT_EQ(speaker.set_reserved("big", value), "STORED\r\n");
  EXPECT_EQ(store->stats().reserved_segments, 0u);
}

// Rule 17. A body that is received piece by piece is not visible before it is complete, and an
// unfinished one leaves nothing behind.
TEST(Reservation, IsSeenWholeOrNotAtAll) {
  store::StoreConfig config = quiet_config(16 * kMiB);
  config.reclaim_wait_ms_max = 100;
  const auto store = make_store(config);
  Speaker speaker(*store);
  Speaker other(*store);
  const std::string old_value = make_value(1, 1, 100'000);
  const std::string new_value = make_value(1, 2, 200'000);
  EXPECT_EQ(speaker.set_reserved("big", old_value), "STORED\r\n");
  const std::string old_reply = other.say("get big\r\n");
  EXPECT_EQ(old_reply, "VALUE big 0 100000\r\n" + old_value + "\r\nEND\r\n");
  uint32_t id = 0;
  ASSERT_EQ(speaker.engine().reserve(3, 200'000, &id), Status::kOk);
  const MutableBytes window = speaker.engine().reservation_window(id, 0, 0);
  std::memcpy(window.data, new_value.data(), window.size);
  for (uint64_t i = 0; i < 20'000; ++i) {
    ASSERT_EQ(other.say(set_command(key_name(i), make_value(i, 1, 1000))), "STORED\r\n");
    if (i % 100 == 0) {
      ASSERT_EQ(other.say("get big\r\n"), old_reply);
    }
  }
  EXPECT_EQ(std::memcmp(window.data, new_value.data(), window.size), 0);
  EXPECT_NE(store->stats().reserved_segments, 0u);
  speaker.engine().abandon(id);
  EXPECT_EQ(store->stats().reserved_segments, 0u);
  EXPECT_EQ(other.say("get big\r\n"), old_reply);
  EXPECT_EQ(speaker.set_reserved("big", new_value), "STORED\r\n");
  EXPECT_EQ(other.say("get big\r\n"), "VALUE big 0 200000\r\n" + new_value + "\r\nEND\r\n");
}

}  // namespace
}  // namespace warpcache::stress
