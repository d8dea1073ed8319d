// SPDX-License-Identifier: Apache-2.0
//
// flush_prefix() while other threads read, write and sweep: what was stored before a flush began is
// never seen after it has ended, nor anything made of it.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/effort.h"
#include "store/reclaim/flush.h"
#include "store/testing/store_fixture.h"

namespace warpcache::store {
namespace {

constexpr uint32_t kFlushedLetters = 3;
constexpr uint32_t kKeysOfLetter = 40;  // of a prefix

std::string lettered_key(uint32_t prefix, uint32_t number) {
  return std::string(1, static_cast<char>('a' + prefix)) + ":" + std::to_string(number);
}

// A value is the number of the write that it goes back to.
class FlushThreads : public testing::Test {
 protected:
  // As append does: keeps the number of a living item, else takes the next one.
  void rewrite(Worker& worker, const std::string& key, bool keeps) {
    const StoreRef& ref = worker.ref();
    const uint64_t hash = ref.hash(warpcache::bytes_of(key));
    worker.enter();
    Allocation allocation;
    const Status status = ref.allocate(worker.thread(), static_cast<uint8_t>(key.size()),
                                       sizeof(uint64_t), 0, allocation);
    if (status == Status::kOk) {
      std::memcpy(allocation.item->key_data(), key.data(), key.size());
      LockedPair pair(ref, hash);
      const Found found = pair.find(warpcache::bytes_of(key));
      // The next number comes last: the item is of a generation from before that.
      const bool alive = found && pair.alive(*found.item, 2);
      const uint64_t number = alive && keeps ? number_of(*found.item) : writes_.fetch_add(1) + 1;
      std::memcpy(allocation.item->value_data(), &number, sizeof number);
      pair.publish(worker.thread(), allocation, found);
    }
    worker.leave();
    if (status == Status::kDeferred) {
      ASSERT_EQ(worker.store().reclaim(item_bytes(8, 8)), Status::kOk);
    }
  }
  static uint64_t number_of(const Item& item) {
    uint64_t number = 0;
    std::memcpy(&number, item.value_data(), sizeof number);
    return number;
  }

  std::atomic<uint64_t> writes_{0};
  // Writes up to this number had begun before a flush of the prefix that has ended.
  std::array<std::atomic<uint64_t>, kFlushedLetters> flushed_{};
};

TEST_F(FlushThreads, NothingComesBack) {
  StoreConfig config = quiet_config(8 * kMiB);
  config.flushed_prefixes_max = 2;  // so that slots change hands
  config.reclaim_wait_ms_max = 60'000;
  const auto store = make_store(config);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (uint32_t seed = 0; seed < 2; ++seed) {
    threads.emplace_back([&, seed] {  // writers
      Worker worker(store.get());
      for (uint32_t i = seed; !stop; i += 7) {
        rewrite(worker, lettered_key(i % kFlushedLetters, i / 3 % kKeysOfLetter), i % 4 != 0);
      }
    });
    threads.emplace_back([&, seed] {  // readers
      Worker worker(store.get());
      for (uint32_t i = seed; !stop; i += 5) {
        const uint32_t prefix = i % kFlushedLetters;
        const uint64_t dead = flushed_[prefix];
        worker.enter();
        const Found found = worker.find(lettered_key(prefix, i / 3 % kKeysOfLetter));
        if (found && worker.ref().alive(*found.item, 2) && number_of(*found.item) <= dead) ++wrong;
        worker.leave();
      }
    });
  }
  threads.emplace_back([&] {  // maintenance
    while (!stop) {
      store->set_clock(store->clock().now + 1);
      std::this_thread::yield();
    }
  });
  uint64_t flushes = 0;
  uint64_t refused = 0;
  const uint64_t wanted = testing_effort(2'000u, 100'000u);
  for (uint32_t i = 0; flushes < wanted; ++i) {
    const uint32_t prefix = i % kFlushedLetters;
    const uint64_t before = writes_;
    if (store->flush_prefix(warpcache::bytes_of(lettered_key(prefix, 0).substr(0, 2))) ==
        Status::kOk) {
      flushed_[prefix] = before;
      ++flushes;
    } else {
      ++refused;
      std::this_thread::yield();
    }
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace warpcache::store
