// SPDX-License-Identifier: Apache-2.0
//
// Each eviction of a GPU's store is reported to an observer while it wants that, and the number of
// those that were not reported (store/cuda/eviction_watch.h).
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/patience.h"
#include "engine/testing/rig.h"
#include "engine/testing/store_admin.h"
#include "gpu/talker.h"
#include "store/index/eviction_log.h"

namespace warpcache::gpu_tests {
namespace {

using engine::RigKind;

// Called by the store's threads.
struct Told : store::Observer {
  void evicted(const store::Item& item, uint32_t now) override {
    EXPECT_EQ(item.value_size, 40u);
    EXPECT_EQ(item.client_flags, 7u);
    EXPECT_NE(item.load_cas(), 0u);
    EXPECT_NE(now, 0u);
    EXPECT_TRUE(takes);
    const std::lock_guard guard(mutex);
    keys.emplace_back(reinterpret_cast<const char*>(item.key().data), item.key_size);
  }
  bool wants_evictions() override { return wants; }
  bool takes_eviction() override { return takes; }
  void missed_evictions(uint64_t count) override { missed += count; }

  uint64_t count() {
    const std::lock_guard guard(mutex);
    return keys.size();
  }

  std::atomic<bool> wants{true};
  std::atomic<bool> takes{true};
  std::atomic<uint64_t> missed{0};
  std::mutex mutex;  // guards what follows
  std::vector<std::string> keys;
};

template <typename Condition>
bool eventually(const Condition& condition) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class EvictionsOfGpu : public testing::TestWithParam<RigKind> {
 protected:
  void SetUp() override {
    engine::RigConfig config;
    config.store.memory_limit = config.store.memory_reach = uint64_t{1} << 20;
    config.store.manual_clock = true;
    config.store.maintenance_thread = false;
    config.store.observer = &told_;
    std::string why;
    rig_ = engine::make_rig(GetParam(), config, &why);
    if (rig_ == nullptr) GTEST_SKIP() << why;
    admin_ = std::make_unique<engine::StoreAdmin>(rig_->store());
    talker_ = std::make_unique<Talker>(rig_->make_engine(*admin_));
  }
  void TearDown() override {
    if (rig_ != nullptr) rig_->rest();
  }

  uint64_t evicted() const { return rig_->store().stats().get(store::StoreCounter::kEvicted); }
  // Stores new keys until `count` items more are evicted.
  void evict(uint64_t count) {
    const uint64_t wanted = evicted() + count;
    while (evicted() < wanted) {
      std::string sets;
      for (uint32_t i = 0; i < 400; ++i) {
        sets += "set key" + std::to_string(++number_) + " 7 0 40 noreply\r\n" +
                std::string(40, 'v') + "\r\n";
      }
      ASSERT_EQ(talker_->say(sets + "mn\r\n"), "MN\r\n");
    }
    rig_->rest();
    rig_->maintain();
  }

  Told told_;
  std::unique_ptr<engine::Rig> rig_;
  std::unique_ptr<engine::StoreAdmin> admin_;
  std::unique_ptr<Talker> talker_;
  uint32_t number_ = 0;
};

TEST_P(EvictionsOfGpu, AreToldOnceEach) {
  rig_->store().watch_evictions();
  evict(2000);
  ASSERT_TRUE(eventually([this] { return told_.count() + told_.missed >= evicted(); }));
  EXPECT_EQ(told_.missed, 0u);
  EXPECT_EQ(told_.count(), evicted());
  const std::set<std::string> named(told_.keys.begin(), told_.keys.end());
  EXPECT_EQ(named.size(), told_.keys.size());
  for (uint32_t i = 1; i <= number_; ++i) {
    const std::string key = "key" + std::to_string(i);
    store::Item header;
    EXPECT_NE(rig_->store().inspect(bytes_of(key), &header), named.count(key) != 0) << key;
  }
}

TEST_P(EvictionsOfGpu, AreToldWhileSomebodyWantsThem) {
  evict(100);
  EXPECT_EQ(told_.count(), 0u);
  for (uint32_t times = 0; times < 2; ++times) {
    told_.wants = true;
    rig_->rest();
    rig_->store().watch_evictions();
    const uint64_t before = evicted();
    const uint64_t told_before = told_.count();
    evict(100);
    ASSERT_TRUE(eventually(
        [&] { return told_.count() - told_before + told_.missed >= evicted() - before; }));
    EXPECT_EQ(told_.missed, 0u);
    told_.wants = false;
    EXPECT_TRUE(eventually([this] {  // no more, once the thread has looked
      const uint64_t count = told_.count();
      evict(100);
      return told_.count() == count;
    }));
  }
}

TEST_P(EvictionsOfGpu, ThatDoNotFitAreCounted) {
  told_.takes = false;
  rig_->store().watch_evictions();
  evict(store::kEvictionRecords + 1000);
  EXPECT_EQ(told_.count(), 0u);
  EXPECT_EQ(told_.missed, evicted() - store::kEvictionRecords);
  const uint64_t missed = told_.missed;
  told_.takes = true;
  ASSERT_TRUE(eventually([this] { return told_.count() >= store::kEvictionRecords; }));
  EXPECT_EQ(told_.count(), store::kEvictionRecords);
  // There is space again.
  ASSERT_TRUE(eventually([&] {
    const uint64_t count = told_.count();
    evict(1);
    return told_.count() > count;
  }));
  ASSERT_TRUE(eventually([this] { return told_.count() + told_.missed == evicted(); }));
  EXPECT_GE(told_.missed, missed);
}

INSTANTIATE_TEST_SUITE_P(Engines, EvictionsOfGpu,
                         testing::Values(RigKind::kCudaLaunch, RigKind::kCudaPersistent,
                                         RigKind::kCudaHostValues, RigKind::kCudaEdge),
                         [](const auto& made) { return engine::rig_name(made.param); });

}  // namespace
}  // namespace warpcache::gpu_tests
