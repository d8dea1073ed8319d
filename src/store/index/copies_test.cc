// SPDX-License-Identifier: Apache-2.0
#include "store/index/copies.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/testing/store_fixture.h"

namespace warpcache::store {
namespace {

// An owner of copies that looks at the store when it is called, as any reader could.
struct Owner {
  Store* store = nullptr;
  std::vector<std::string> dropped;
  std::vector<uint32_t> seconds;
  uint32_t flushes = 0;
  uint32_t late = 0;  // calls after the change could be seen
};

CopyHooks hooks_of(Owner& owner) {
  CopyHooks hooks;
  hooks.context = &owner;
  hooks.drop = [](void* context, Bytes key) {
    auto& self = *static_cast<Owner*>(context);
    const StoreRef ref = self.store->ref();
    const Found found = ref.find(ref.hash(key), key);
    self.late += !found || found.item->key_data() != key.data ? 1u : 0u;
    self.dropped.emplace_back(reinterpret_cast<const char*>(key.data), key.size);
  };
  hooks.flush = [](void* context, uint32_t generation) {
    auto& self = *static_cast<Owner*>(context);
    self.late += load_relaxed(&self.store->ref().core.shared->flush_generation) != self.flushes;
    ++self.flushes;
    self.late += generation != self.flushes;
  };
  hooks.clock = [](void* context, uint32_t now) {
    auto& self = *static_cast<Owner*>(context);
    if (self.store != nullptr) self.late += self.store->clock().now >= now ? 1u : 0u;
    self.seconds.push_back(now);
  };
  return hooks;
}

class CopiesTest : public ::testing::Test {
 protected:
  explicit CopiesTest(uint64_t memory = 4 * kMiB) {
    StoreConfig config = quiet_config(memory);
    config.copies = hooks_of(owner_);
    store_ = make_store(config);
    owner_.store = store_.get();
    owner_.seconds.clear();
  }
  ~CopiesTest() override { EXPECT_EQ(owner_.late, 0u); }

  Owner owner_;
  std::unique_ptr<Store> store_;
};

using Keys = std::vector<std::string>;

TEST_F(CopiesTest, AreDroppedBeforeTheirItemChanges) {
  Worker worker(store_.get());
  ASSERT_EQ(worker.set("a", "1"), Status::kOk);
  ASSERT_EQ(worker.set("b", "1"), Status::kOk);
  EXPECT_EQ(owner_.dropped, Keys{});  // no item had a copy
  ASSERT_EQ(worker.set("a", "2"), Status::kOk);
  EXPECT_EQ(owner_.dropped, Keys{"a"});
  ASSERT_TRUE(worker.touch("b", 100));
  EXPECT_EQ(owner_.dropped, (Keys{"a", "b"}));
  ASSERT_TRUE(worker.erase("a"));
  EXPECT_EQ(owner_.dropped, (Keys{"a", "b", "a"}));
  ASSERT_FALSE(worker.erase("a"));
  EXPECT_EQ(owner_.dropped.size(), 3u);
}

TEST_F(CopiesTest, AreDroppedWhenItemsAreEvicted) {
  Worker worker(store_.get());
  for (uint64_t i = 0; i < 20'000; ++i) {
    ASSERT_EQ(worker.set(key_name(i), std::string(1000, 'v')), Status::kOk);
    if (i % 64 == 0) store_->maintain();
  }
  EXPECT_GT(owner_.dropped.size(), 10'000u);
  EXPECT_EQ(owner_.dropped.size() + store_->stats().get(StoreCounter::kItems), 20'000u);
}

TEST_F(CopiesTest, AreDroppedWhenDeadItemsAreRemoved) {
  Worker worker(store_.get());
  ASSERT_EQ(worker.set("a", "1", store_->clock().now + 1), Status::kOk);
  store_->set_clock(store_->clock().now + 2);
  ASSERT_EQ(worker.set("a", "2"), Status::kOk);
  EXPECT_EQ(owner_.dropped, Keys{"a"});
}

TEST_F(CopiesTest, AreFlushedBeforeItems) {
  store_->flush_all();
  store_->flush_all();
  EXPECT_EQ(owner_.flushes, 2u);
}

TEST_F(CopiesTest, HaveTheClockFirst) {
  const uint32_t now = store_->clock().now;
  store_->set_clock(now + 1);
  store_->set_clock(now + 5);
  EXPECT_EQ(owner_.seconds, (std::vector<uint32_t>{now + 1, now + 5}));
}

}  // namespace
}  // namespace warpcache::store
