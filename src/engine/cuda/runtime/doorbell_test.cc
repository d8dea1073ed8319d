// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>

#include "engine/cuda/runtime/job.h"

namespace warpcache::engine::cuda {
namespace {

constexpr uint32_t kJobWords = Doorbell<PacketJob>::kJobWords;

// What a persistent kernel does (wait_for_host() in job_kernel.cuh). It must see whole jobs only,
// so it counts the words that have another job's tag.
class Kernel {
 public:
  Kernel(const Doorbell<PacketJob>& bell, uint32_t latest) : bell_(bell), last_(latest) {}

  // Returns the call, if there is a new one.
  BellWord look() {
    const BellWord call = {bell_.words[0]};
    EXPECT_NE(call.value(), last_);
    last_ = call.value();
    if (call.position() == BellWord::kEnd) return call;
    for (uint32_t i = 1; i <= call.position(); ++i) {
      const BellWord word = {bell_.words[i]};
      EXPECT_EQ(word.tag(), call.tag());
      words_[word.position()] = word.value();
    }
    return call;
  }
  // Words beyond those of the latest job that would pass for words of the next one.
  uint32_t mistakable(uint32_t next_number) const {
    uint32_t count = 0;
    for (uint32_t i = 1; i <= kJobWords; ++i) {
      if (BellWord{bell_.words[i]}.tag() == BellWord::tag_of_job(next_number)) ++count;
    }
    return count;
  }
  bool has(const PacketJob& job) const { return std::memcmp(words_, &job, sizeof job) == 0; }

 private:
  const Doorbell<PacketJob>& bell_;
  uint32_t last_;
  uint32_t words_[kJobWords] = {};
};

class DoorbellTest : public ::testing::Test {
 protected:
  std::unique_ptr<Doorbell<PacketJob>> bell_ = std::make_unique<Doorbell<PacketJob>>();
  BellRinger<PacketJob> ringer_;
  PacketJob job_ = {};
};

TEST_F(DoorbellTest, AKernelGetsWhatDiffers) {
  ringer_.start(*bell_, 7);
  Kernel kernel(*bell_, 7);
  std::mt19937 random(1);
  for (uint32_t number = 8; number < 500; ++number) {
    job_.number = number;
    job_.count = static_cast<uint32_t>(random() % 4);
    for (auto i = random() % 30; i != 0; --i) {
      job_.inline_data[random() % PacketJob::kInlineMax] = static_cast<uint8_t>(random());
    }
    ringer_.ring(*bell_, job_, number);
    EXPECT_EQ(kernel.look().value(), number);
    ASSERT_TRUE(kernel.has(job_)) << number;
  }
}

TEST_F(DoorbellTest, AJobLikeTheOneBeforeTakesOneLine) {
  ringer_.start(*bell_, 0);
  Kernel kernel(*bell_, 0);
  ringer_.ring(*bell_, job_, 1);
  EXPECT_EQ(kernel.look().position(), kJobWords);
  job_.number = 2;
  job_.count = 9;
  for (uint32_t i = 0; i < 9; ++i) job_.inline_data[i * 8] = 1;
  ringer_.ring(*bell_, job_, 2);
  EXPECT_LT(kernel.look().position(), Doorbell<PacketJob>::kLineWords);
  EXPECT_TRUE(kernel.has(job_));
  ringer_.ring(*bell_, job_, 3);
  EXPECT_EQ(kernel.look().position(), 0u);
}

TEST_F(DoorbellTest, ANewKernelGetsAll) {
  bell_->words[0] = ~uint64_t{0};  // the memory is not empty
  ringer_.start(*bell_, 4);
  EXPECT_EQ(BellWord{bell_->words[0]}.value(), 4u);
  job_.count = 3;
  ringer_.ring(*bell_, job_, 5);
  Kernel first(*bell_, 4);
  first.look();
  ringer_.end(*bell_, 6);
  EXPECT_EQ(first.look().position(), BellWord::kEnd);
  ringer_.start(*bell_, 6);
  Kernel second(*bell_, 6);
  ringer_.ring(*bell_, job_, 7);
  second.look();
  EXPECT_TRUE(second.has(job_));
}

// Tags have 24 bits and numbers 32: both begin anew after a while.
TEST_F(DoorbellTest, WordsOfLongAgoAreNoWordsOfAJob) {
  for (const uint32_t last : {BellWord::kTags - 1, UINT32_MAX}) {  // with a new round of tags after
    ringer_ = {};
    ringer_.start(*bell_, last - 2);
    Kernel kernel(*bell_, last - 2);
    ringer_.ring(*bell_, job_, last - 1);
    kernel.look();
    ringer_.ring(*bell_, job_, last);
    kernel.look();
    // As jobs of a round before have left them, where jobs change nothing now.
    for (uint32_t i = 0; i < 6; ++i) {
      bell_->words[kJobWords - i] = BellWord::make(1 + i, 0, 99).bits;
    }
    uint32_t number = last == UINT32_MAX ? 1 : last + 1;
    for (int i = 0; i < 5; ++i, ++number) {
      ringer_.ring(*bell_, job_, number);
      kernel.look();
      EXPECT_EQ(kernel.mistakable(number + 1), 0u) << number;
    }
    EXPECT_TRUE(kernel.has(job_));
  }
}

}  // namespace
}  // namespace warpcache::engine::cuda
