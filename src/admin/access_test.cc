// SPDX-License-Identifier: Apache-2.0
#include "admin/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warpcache::admin {
namespace {

using ::testing::HasSubstr;

class AccessTest : public testing::Test {
 protected:
  bool allows(const char* user, protocol::Op op, const char* key, uint32_t bits = 0) {
    protocol::Request request = {};
    request.op = op;
    request.bits = bits;
    return access_.rights_of(access_.number_of(user))->allows(request, bytes_of(key));
  }
  bool reads(const char* user, const char* key) { return allows(user, protocol::Op::kGet, key); }
  bool writes(const char* user, const char* key) { return allows(user, protocol::Op::kSet, key); }

  Access access_;
};

TEST_F(AccessTest, LinesAddUp) {
  ASSERT_EQ(access_.parse("# all may read what is public\n"
                          "* r public:\n"
                          "ann rw app: tmp:   # two prefixes\n"
                          "ann\tr\tlog:\r\n"
                          "\n"
                          "root rwa",
                          "test"),
            "");
  EXPECT_TRUE(reads("ann", "app:1") && writes("ann", "tmp:1") && reads("ann", "log:1"));
  EXPECT_FALSE(writes("ann", "log:1") || reads("ann", "other") || writes("ann", "public:x"));
  EXPECT_TRUE(reads("ann", "public:x") && reads("nobody", "public:x"));
  EXPECT_FALSE(reads("nobody", "app:1"));
  EXPECT_TRUE(reads("root", "") && writes("root", "any"));
  EXPECT_TRUE(access_.rights_of(access_.number_of("root"))->allows_administration());
  EXPECT_FALSE(access_.rights_of(access_.number_of("ann"))->allows_administration());
}

TEST_F(AccessTest, AReadThatChangesNeedsBoth) {
  ASSERT_EQ(access_.parse("reader r\nwriter w\nboth rw\n", "test"), "");
  for (const uint32_t bit : {protocol::kTouchBit, protocol::kVivify, protocol::kRecache}) {
    EXPECT_FALSE(allows("reader", protocol::Op::kGet, "k", bit));
    EXPECT_FALSE(allows("writer", protocol::Op::kGet, "k", bit));
    EXPECT_TRUE(allows("both", protocol::Op::kGet, "k", bit));
  }
  for (const auto op : {protocol::Op::kSet, protocol::Op::kDelete, protocol::Op::kIncr,
                        protocol::Op::kTouch, protocol::Op::kAppend}) {
    EXPECT_FALSE(allows("reader", op, "k"));
    EXPECT_TRUE(allows("writer", op, "k"));
  }
}

TEST_F(AccessTest, FlushingAPrefixNeedsAllOfIt) {
  ASSERT_EQ(access_.parse("reader r\nann rw app:\nall w\nroot ra\n", "test"), "");
  const auto flushes = [this](const char* user, const char* prefix) {
    return access_.rights_of(access_.number_of(user))->allows_flush(bytes_of(prefix));
  };
  EXPECT_TRUE(flushes("ann", "app:") && flushes("ann", "app:x:"));
  EXPECT_FALSE(flushes("ann", "ap:") || flushes("ann", "ap") || flushes("ann", "other:"));
  EXPECT_FALSE(flushes("reader", "app:"));
  EXPECT_TRUE(flushes("all", "x:") && flushes("root", "x:"));
}

TEST_F(AccessTest, WrongLinesChangeNothing) {
  ASSERT_EQ(access_.parse("ann r\n", "test"), "");
  for (const char* const text : {"ann\n", "bob r\nann read app:\n", "ann R\n"}) {
    EXPECT_THAT(access_.parse(text, "file"), HasSubstr("--access: line ")) << text;
  }
  EXPECT_TRUE(reads("ann", "k"));
  EXPECT_THAT(access_.load("/nonexistent/file"), HasSubstr("cannot be read"));
}

TEST_F(AccessTest, NumbersStayOverAReload) {
  ASSERT_EQ(access_.parse("ann r\n", "test"), "");
  const uint16_t ann = access_.number_of("ann");
  ASSERT_EQ(access_.parse("bob r\n", "test"), "");
  EXPECT_NE(access_.number_of("bob"), ann);
  EXPECT_EQ(access_.number_of("ann"), ann);
  EXPECT_FALSE(reads("ann", "k"));
}

}  // namespace
}  // namespace warpcache::admin
