// SPDX-License-Identifier: Apache-2.0
#include "admin/long_replies.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace warpcache::admin {
namespace {

using Kind = LongReplies::Kind;
using Step = LongReply::Step;

// A reply of a given number of steps of 1,000 bytes; the last step returns `end`.
class Steps final : public LongReply {
 public:
  explicit Steps(uint64_t count, Step end = Step::kLast, std::atomic<uint64_t>* made = nullptr)
      : count_(count), end_(end), made_(made) {}
  Step step(std::string& text) override {
    text.assign(1000, 'x');
    if (made_ != nullptr) made_->fetch_add(1);
    return --count_ == 0 ? end_ : Step::kMore;
  }

 private:
  uint64_t count_;
  const Step end_;
  std::atomic<uint64_t>* made_;
};

class NoMemory final : public LongReply {
 public:
  Step step(std::string&) override { throw std::bad_alloc(); }
};

// Reads to the end and leaves. Returns the number of bytes, or its negative if the reply was broken
// off.
int64_t read_all(BytePipe* pipe) {
  int64_t bytes = 0;
  while (pipe->state() == BytePipe::State::kOpen) {
    const size_t count = pipe->readable().size;
    if (count == 0) {
      std::this_thread::yield();
      continue;
    }
    pipe->consume(count);
    bytes += static_cast<int64_t>(count);
  }
  const bool broken = pipe->state() == BytePipe::State::kBroken;
  pipe->leave();
  return broken ? -bytes - 1 : bytes;
}

class LongRepliesTest : public testing::Test {
 protected:
  void SetUp() override { replies_.start(); }
  BytePipe* add(Kind kind, uint64_t steps, Step end = Step::kLast) {
    return replies_.add(kind, std::make_unique<Steps>(steps, end));
  }

  LongReplies replies_;
};

TEST_F(LongRepliesTest, ComeWhole) {
  EXPECT_EQ(read_all(add(Kind::kDump, 5000)), 5'000'000);
  EXPECT_EQ(read_all(add(Kind::kStats, 1)), 1000);
}

// While nobody reads, the reply is made only until its pipe is full.
TEST_F(LongRepliesTest, AreMadeNoFasterThanTheyAreRead) {
  std::atomic<uint64_t> made{0};
  BytePipe* unread =
      replies_.add(Kind::kDump, std::make_unique<Steps>(100'000, Step::kLast, &made));
  EXPECT_EQ(read_all(add(Kind::kStats, 100'000)), 100'000'000);
  EXPECT_LE(made.load(), LongReplies::kPipeBytes / 1000 + 1);
  unread->leave();
}

TEST_F(LongRepliesTest, ThereIsABoundOnThem) {
  std::vector<BytePipe*> unread = {add(Kind::kDump, 100'000)};
  EXPECT_EQ(add(Kind::kDump, 1), nullptr);
  for (uint32_t i = 1; i < LongReplies::kRepliesMax; ++i) {
    unread.push_back(add(Kind::kStats, 100'000));
    ASSERT_NE(unread.back(), nullptr);
  }
  EXPECT_EQ(add(Kind::kStats, 1), nullptr);
  unread[3]->leave();
  unread[3] = add(Kind::kStats, 1);
  ASSERT_NE(unread[3], nullptr);
  EXPECT_EQ(add(Kind::kStats, 1), nullptr);
  unread[0]->leave();
  unread[0] = add(Kind::kDump, 1);
  ASSERT_NE(unread[0], nullptr);
  for (BytePipe* pipe : unread) pipe->leave();
}

TEST_F(LongRepliesTest, ABrokenOneSaysSo) {
  EXPECT_LT(read_all(add(Kind::kDump, 3, Step::kBroken)), 0);
  EXPECT_LT(read_all(replies_.add(Kind::kDump, std::make_unique<NoMemory>())), 0);
}

TEST_F(LongRepliesTest, AStopBreaksThem) {
  BytePipe* pipe = add(Kind::kDump, 1'000'000);
  replies_.stop();
  EXPECT_LT(read_all(pipe), 0);
}

// A reader that reads nothing loses its reply when another client asks; other readers do not.
TEST(LongRepliesStall, EndsWhereAnotherWantsThePlace) {
  LongReplies replies(std::chrono::milliseconds(0));
  replies.start();
  BytePipe* const stalled = replies.add(Kind::kDump, std::make_unique<Steps>(1'000'000));
  BytePipe* const other = replies.add(Kind::kStats, std::make_unique<Steps>(1'000'000));
  EXPECT_EQ(stalled->state(), BytePipe::State::kOpen);
  EXPECT_EQ(replies.add(Kind::kDump, std::make_unique<Steps>(1)), nullptr);
  EXPECT_EQ(stalled->state(), BytePipe::State::kBroken);
  EXPECT_EQ(other->state(), BytePipe::State::kOpen);
  stalled->leave();
  EXPECT_EQ(read_all(replies.add(Kind::kDump, std::make_unique<Steps>(1))), 1000);
  other->leave();
}

}  // namespace
}  // namespace warpcache::admin
