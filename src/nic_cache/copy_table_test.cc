// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/copy_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "nic_cache/testing/copies.h"

namespace warpcache::nic_cache {
namespace {

class CopyTableTest : public ::testing::Test {
 protected:
  explicit CopyTableTest(uint32_t blocks = 1) : memory_(blocks), table_(memory_.view(), 7) {}

  bool fill(const std::string& key, const std::string& value) {
    return table_.fill({.key = bytes_of(key), .value = bytes_of(value), .cas = 11});
  }
  void end_grace() {
    if (table_.retire_begin()) table_.retire_end();
  }
  const nic_copy* find(const std::string& key) const { return memory_.find(key); }

  CopyPages memory_;
  CopyTable table_;
};

TEST_F(CopyTableTest, HoldsThePiecesOfReplies) {
  ASSERT_TRUE(table_.fill({.key = bytes_of("key"),
                           .value = bytes_of("value"),
                           .cas = 12,
                           .client_flags = 34,
                           .expiry = 56,
                           .generation = 78}));
  const nic_copy* const copy = find("key");
  ASSERT_NE(copy, nullptr);
  const std::string text(reinterpret_cast<const char*>(copy->text), 37);
  EXPECT_EQ(text, "VALUE key 34 5\r\nvalue\r\nEND\r\n 12" + std::string(6, '\0'));
  EXPECT_EQ(copy->head_size, 14);
  EXPECT_EQ(copy->value_size, 5);
  EXPECT_EQ(copy->cas_size, 3);
  EXPECT_EQ(copy->expiry, 56u);
  EXPECT_EQ(copy->generation, 78u);
  EXPECT_EQ(table_.counts().copies, 1u);
}

TEST_F(CopyTableTest, ADroppedCopyIsNotFound) {
  ASSERT_TRUE(fill("a", "1"));
  ASSERT_TRUE(fill("b", "2"));
  table_.drop(bytes_of("a"));
  EXPECT_EQ(find("a"), nullptr);
  EXPECT_NE(find("b"), nullptr);
  table_.drop(bytes_of("a"));
  table_.drop(bytes_of(std::string(251, 'k')));
  EXPECT_EQ(table_.counts().dropped, 1u);
}

TEST_F(CopyTableTest, KeepsTheKeysOfDroppedCopies) {
  const std::string long_key(250, 'k');
  std::vector<std::vector<uint8_t>> keys;
  ASSERT_TRUE(fill("a", "1"));
  table_.drop(bytes_of("a"));
  table_.take_dropped(&keys);
  EXPECT_TRUE(keys.empty());  // not asked for
  table_.keep_dropped();
  ASSERT_TRUE(fill("a", "1"));
  ASSERT_TRUE(fill(long_key, "2"));
  table_.drop(bytes_of("a"));
  table_.drop(bytes_of("other"));
  table_.drop(bytes_of(long_key));
  table_.take_dropped(&keys);
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(std::string(keys[0].begin(), keys[0].end()), "a");
  EXPECT_EQ(std::string(keys[1].begin(), keys[1].end()), long_key);
  keys.clear();
  table_.take_dropped(&keys);
  EXPECT_TRUE(keys.empty());
  for (int i = 0; i < 2000; ++i) {  // more than there is room for
    ASSERT_TRUE(fill(long_key, "2"));
    table_.drop(bytes_of(long_key));
    end_grace();
  }
  table_.take_dropped(&keys);
  EXPECT_GT(keys.size(), 100u);
  EXPECT_LT(keys.size(), 2000u);
}

TEST_F(CopyTableTest, ANewCopyReplacesTheOldOne) {
  ASSERT_TRUE(fill("a", "1"));
  ASSERT_TRUE(fill("a", "22"));
  EXPECT_EQ(find("a")->value_size, 2);
  EXPECT_EQ(table_.counts().copies, 1u);
  table_.drop(bytes_of("a"));
  EXPECT_EQ(find("a"), nullptr);
}

// A run of the program may still read the memory.
TEST_F(CopyTableTest, MemoryIsNotUsedAgainBeforeTheGracePeriodEnds) {
  ASSERT_TRUE(fill("a", "old value"));
  const nic_copy* const old = find("a");
  table_.drop(bytes_of("a"));
  ASSERT_TRUE(table_.retire_begin());
  for (int i = 0; fill("key" + std::to_string(i), "new value"); ++i) {
    ASSERT_NE(find("key" + std::to_string(i)), old);
    ASSERT_LT(i, 100'000);
  }
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(old->text), 9), "VALUE a 0");
  table_.retire_end();
  EXPECT_FALSE(fill("other", "x") && find("other") == nullptr);
}

// Memory that is full of small copies becomes free for large ones, page by page.
TEST_F(CopyTableTest, FullMemoryTakesOtherSizes) {
  for (int i = 0; i < 20'000; ++i) {
    (void)fill("key" + std::to_string(i), "x");
    end_grace();
  }
  EXPECT_LE(table_.counts().bytes, uint64_t{1} << 20);
  EXPECT_GT(table_.counts().evicted, 0u);
  bool filled = false;
  for (int i = 0; i < 200 && !filled; ++i) {
    filled = fill("large", std::string(1300, 'v'));
    end_grace();
  }
  EXPECT_TRUE(filled);
  ASSERT_NE(find("large"), nullptr);
}

TEST_F(CopyTableTest, KnowsWhetherACopyWouldPutOthersOut) {
  EXPECT_TRUE(table_.has_space(bytes_of("a")));
  std::string key;
  for (int i = 0; i < 100'000 && table_.counts().evicted == 0; ++i) {
    key = "key" + std::to_string(i);
    const bool space = table_.has_space(bytes_of(key));
    ASSERT_TRUE(fill(key, "x"));
    EXPECT_EQ(space, table_.counts().evicted == 0);
    end_grace();
  }
  EXPECT_EQ(table_.counts().evicted, 1u);
  EXPECT_FALSE(table_.has_space(bytes_of(key)));
  table_.drop(bytes_of(key));
  EXPECT_TRUE(table_.has_space(bytes_of(key)));
}

TEST_F(CopyTableTest, FullMemoryHasNoSpaceInAnySet) {
  int i = 0;
  while (fill("key" + std::to_string(i), std::string(1300, 'v'))) ++i;  // 32 granules each
  EXPECT_EQ(table_.counts().no_space, 1u);
  EXPECT_FALSE(table_.has_space(bytes_of("another")));
}

TEST_F(CopyTableTest, RefusesWhatNoTextCommandNames) {
  EXPECT_FALSE(fill("a b", "1"));
  EXPECT_FALSE(fill("", "1"));
  EXPECT_FALSE(fill("a\r", "1"));
  EXPECT_FALSE(fill("long", std::string(1380, 'v')));
  EXPECT_FALSE(fill("longer", std::string(100'000, 'v')));
  EXPECT_EQ(table_.counts().refused, 5u);
}

TEST_F(CopyTableTest, EveryCopyThatIsCountedIsFound) {
  std::vector<std::string> keys;
  for (int i = 0; i < 3000; ++i) {
    keys.push_back("key" + std::to_string(i));
    (void)fill(keys.back(), std::string(static_cast<size_t>(i % 700), 'v'));
    if (i % 3 == 0) table_.drop(bytes_of(keys[static_cast<size_t>(i / 2)]));
    if (i % 16 == 0) end_grace();
  }
  uint64_t found = 0;
  for (const std::string& key : keys) found += find(key) != nullptr ? 1u : 0u;
  EXPECT_EQ(found, table_.counts().copies);
  EXPECT_GT(found, 0u);
}

TEST_F(CopyTableTest, TellsWhichCopiesWereHit) {
  ASSERT_TRUE(fill("a", "1"));
  ASSERT_TRUE(fill("b", "2"));
  const nic_copy& copy = *find("b");
  memory_.view().sets[copy.set].touched = static_cast<uint8_t>(1u << copy.way);
  std::vector<std::vector<uint8_t>> keys;
  table_.take_touched(memory_.view().set_count, &keys);
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(std::string(keys[0].begin(), keys[0].end()), "b");
  keys.clear();
  table_.take_touched(memory_.view().set_count, &keys);
  EXPECT_TRUE(keys.empty());
}

}  // namespace
}  // namespace warpcache::nic_cache
