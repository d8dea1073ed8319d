// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "store/host/restart_file.h"
#include "store/testing/store_fixture.h"

namespace warpcache::store {
namespace {

using ::testing::HasSubstr;

class RestartTest : public testing::Test {
 protected:
  void SetUp() override {
    config_.memory_limit = 4 << 20;
    config_.maintenance_thread = false;
    config_.file = path_;
    config_.version = "1";
  }
  void TearDown() override {
    for (const std::string& path : {path_, meta_}) std::filesystem::remove(path);
  }

  std::unique_ptr<Store> open() {
    std::unique_ptr<Store> store;
    EXPECT_EQ(Store::create(config_, &store, &why_), Status::kOk) << why_;
    return store;
  }
  // Stores `count` items and stops cleanly.
  void leave(uint32_t count) {
    const auto store = open();
    {
      Worker worker(store.get());
      for (uint32_t i = 0; i < count; ++i) {
        ASSERT_EQ(worker.set("key:" + std::to_string(i), value(i)), Status::kOk);
      }
    }
    ASSERT_EQ(store->save(), "");
  }
  static std::string value(uint32_t i) { return std::string(1 + i % 200, 'a'); }
  static uint64_t items(const Store& store) { return store.stats().get(StoreCounter::kItems); }

  // Why the items of the file are not used.
  std::string note() {
    const auto store = open();
    EXPECT_FALSE(store->took_over());
    EXPECT_EQ(items(*store), 0u);
    EXPECT_FALSE(std::filesystem::exists(meta_));
    return store->file_note();
  }

  StoreConfig config_;
  const std::string path_ = testing::TempDir() + "/restart-" + std::to_string(getpid());
  const std::string meta_ = path_ + ".meta";
  std::string why_;
};

TEST_F(RestartTest, ItemsComeBackAsTheyWere) {
  leave(0);
  uint64_t bytes = 0;
  uint64_t live = 0;
  std::string large;
  Item before[100];
  {
    const auto store = open();
    EXPECT_TRUE(store->took_over());
    EXPECT_EQ(store->file_note(), "");
    {
      Worker worker(store.get());
      for (uint32_t i = 0; i < 10'000; ++i) {
        ASSERT_EQ(worker.set("key:" + std::to_string(i), value(i)), Status::kOk);
      }
      large = std::string(3 * store->stats().segment_size, 'x');  // with its header: a tail
      ASSERT_EQ(worker.set("large", large), Status::kOk);
    }
    for (uint32_t i = 0; i < 100; ++i) {
      ASSERT_TRUE(store->inspect(bytes_of("key:" + std::to_string(9900 + i)), &before[i]));
    }
    bytes = store->stats().get(StoreCounter::kBytes);
    live = store->census().live_bytes;
    ASSERT_EQ(store->save(), "");
  }
  const auto store = open();
  EXPECT_TRUE(store->took_over());
  EXPECT_EQ(store->stats().get(StoreCounter::kBytes), bytes);
  EXPECT_EQ(store->census().live_bytes, live);
  EXPECT_GT(items(*store), 5000u);
  Worker worker(store.get());
  std::string got;
  for (uint32_t i = 0; i < 100; ++i) {
    Item after = {};
    const std::string key = "key:" + std::to_string(9900 + i);
    ASSERT_TRUE(store->inspect(bytes_of(key), &after));
    EXPECT_EQ(after.cas, before[i].cas);
    EXPECT_EQ(after.expiry, before[i].expiry);
    ASSERT_TRUE(worker.get(key, &got));
    EXPECT_EQ(got, value(9900 + i));
  }
  ASSERT_TRUE(worker.get("large", &got));
  EXPECT_EQ(got, large);
  EXPECT_EQ(store->census().get(SegmentState::kTails), 1u);
  ASSERT_TRUE(worker.erase("large"));
  ASSERT_EQ(store->reclaim(1 << 20), Status::kOk);
  EXPECT_EQ(store->census().get(SegmentState::kTails), 0u);
  // It works on, through growth and eviction, with new CAS ids.
  for (uint32_t i = 0; i < 50'000; ++i) {
    ASSERT_EQ(worker.set("new:" + std::to_string(i), value(i)), Status::kOk);
  }
  Item fresh = {};
  ASSERT_TRUE(store->inspect(bytes_of("new:49999"), &fresh));
  EXPECT_GT(fresh.cas, before[99].cas);
}

TEST_F(RestartTest, TheDescriptionIsUsedOnce) {
  leave(10);
  EXPECT_TRUE(std::filesystem::exists(meta_));
  struct stat state {};
  ASSERT_EQ(stat(meta_.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0600u);
  { EXPECT_TRUE(open()->took_over()); }  // ends without save(), as in a crash
  EXPECT_THAT(note(), HasSubstr("was not stopped by SIGUSR1"));
}

TEST_F(RestartTest, WhatDoesNotFitIsNotUsed) {
  leave(10);
  config_.version = "2";
  EXPECT_THAT(note(), HasSubstr("another version"));
  leave(10);
  {
    // Written before sets had ghosts and chains had tails.
    std::fstream file(meta_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offsetof(RestartHeader, layout));
    const uint32_t old = 1;
    file.write(reinterpret_cast<const char*>(&old), sizeof old);
  }
  EXPECT_THAT(note(), HasSubstr("another version"));
  leave(10);
  config_.memory_limit *= 2;
  EXPECT_THAT(note(), HasSubstr("-m"));
  leave(10);
  std::filesystem::resize_file(meta_, std::filesystem::file_size(meta_) - 1);
  EXPECT_THAT(note(), HasSubstr("damaged"));
  leave(10);
  std::fstream(meta_, std::ios::in | std::ios::out).seekp(500).put('!');
  EXPECT_THAT(note(), HasSubstr("damaged"));
  leave(10);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) + 4096);
  EXPECT_THAT(note(), HasSubstr("not the file"));
  leave(10);
  const std::string other = path_ + ".other";
  std::filesystem::rename(meta_, other);
  leave(20);
  std::filesystem::rename(other, meta_);
  EXPECT_THAT(note(), HasSubstr("not the file"));
  leave(10);
  std::filesystem::remove(path_);
  EXPECT_THAT(note(), HasSubstr("not the file"));
  std::filesystem::remove(path_);
  std::filesystem::remove(meta_);
  EXPECT_EQ(note(), "");  // the first start
}

TEST_F(RestartTest, WhatIsNoDescriptionStopsTheStart) {
  std::ofstream(meta_).close();
  std::unique_ptr<Store> store;
  EXPECT_NE(Store::create(config_, &store, &why_), Status::kOk);
  EXPECT_THAT(why_, HasSubstr("is not a description"));
  EXPECT_TRUE(std::filesystem::exists(meta_));
  std::filesystem::remove(meta_);
  config_.file = testing::TempDir();
  EXPECT_NE(Store::create(config_, &store, &why_), Status::kOk);
  EXPECT_THAT(why_, HasSubstr("cannot be opened"));
}

// What was flushed stays flushed, swept or not, and what is due comes.
TEST_F(RestartTest, FlushedPrefixesStayFlushed) {
  config_.manual_clock = true;
  const auto flush = [](Store& store, const char* prefix, uint32_t delay) {
    return store.flush_prefix(bytes_of(std::string(prefix)), delay);
  };
  {
    const auto store = open();
    {
      Worker worker(store.get());
      for (const char* const key : {"a:1", "b:1", "c:1"}) {
        ASSERT_EQ(worker.set(key, "value"), Status::kOk);
      }
    }
    ASSERT_EQ(flush(*store, "a:", 0), Status::kOk);
    ASSERT_EQ(flush(*store, "b:", 2), Status::kOk);
    ASSERT_EQ(store->save(), "");
  }
  config_.flushed_prefixes_max = 2;
  const auto store = open();
  ASSERT_TRUE(store->took_over());
  Worker worker(store.get());
  EXPECT_FALSE(worker.get("a:1"));
  EXPECT_TRUE(worker.get("b:1"));
  EXPECT_TRUE(worker.get("c:1"));
  EXPECT_EQ(store->stats().flushed_prefixes, 2u);
  EXPECT_EQ(flush(*store, "c:", 0), Status::kOutOfMemory);
  const uint32_t now = store->clock().now;
  for (uint32_t second = 1; second <= 4; ++second) store->set_clock(now + second);
  EXPECT_FALSE(worker.get("b:1"));
  EXPECT_TRUE(worker.get("c:1"));
  EXPECT_EQ(store->stats().flushed_prefixes, 0u);
  EXPECT_EQ(items(*store), 1u);
}

// Else copies of items from before an earlier flush would count as new ones after some flushes.
TEST_F(RestartTest, OwnerOfCopiesIsToldTheGeneration) {
  {
    const auto store = open();
    for (uint32_t i = 0; i < 5; ++i) store->flush_all();
    ASSERT_EQ(store->save(), "");
  }
  uint32_t told = 0;
  config_.copies.context = &told;
  config_.copies.drop = [](void*, Bytes) {};
  config_.copies.flush = [](void* context, uint32_t generation) {
    *static_cast<uint32_t*>(context) = generation;
  };
  const auto store = open();
  EXPECT_EQ(told, store->ref().core.shared->flush_generation);
  EXPECT_EQ(told, 5u);
}

TEST_F(RestartTest, OneServerAtATime) {
  const auto store = open();
  std::unique_ptr<Store> other;
  EXPECT_NE(Store::create(config_, &other, &why_), Status::kOk);
  EXPECT_THAT(why_, HasSubstr("another server uses"));
}

TEST_F(RestartTest, TheLimitIsThatOfTheCommandLine) {
  {
    const auto store = open();
    ASSERT_TRUE(store->set_memory_limit(3 << 20));
    store->maintain();
    EXPECT_FALSE(store->set_memory_limit(8 << 20));
    ASSERT_EQ(store->save(), "");
  }
  const auto store = open();
  EXPECT_TRUE(store->took_over());
  store->maintain();
  EXPECT_EQ(store->stats().memory_limit, config_.memory_limit);
}

}  // namespace
}  // namespace warpcache::store
