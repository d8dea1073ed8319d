// SPDX-License-Identifier: Apache-2.0
//
// A batch takes long, while other requests replace, delete and evict the items that it has found:
// it must see what it found, and the memory must be used again after its end.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/testing/rig.h"
#include "engine/testing/store_admin.h"
#include "gpu/stalled_reader.h"
#include "gpu/talker.h"
#include "store/testing/store_fixture.h"

namespace warpcache::gpu_tests {
namespace {

using Clock = std::chrono::steady_clock;
using engine::RigKind;
using store::StoreCounter;

constexpr uint64_t kMemoryBytes = 16 * store::kMiB;
constexpr uint32_t kReclaimWaitMs = 1;  // waiting is useless: the stalled batch does not end
constexpr auto kStalledFor = std::chrono::milliseconds(1200);
constexpr auto kTurnMax = std::chrono::seconds(2);  // for a batch while the other one is stalled
constexpr auto kPatience = std::chrono::seconds(10);
constexpr auto kFillPatience = std::chrono::seconds(30);

constexpr uint32_t kValueSize = 900;
constexpr uint32_t kLongValueSize = 150000;  // in three segments
constexpr uint64_t kKeysOfAKind = 60;        // nearly one segment
// One key in this number is replaced, so that no segment is worth compacting. Compaction without
// free segments would use up the copy reserve, and then nothing is evicted while retired segments
// wait for the stalled batch. It is a prime number, so that all lanes get equal shares.
constexpr uint64_t kApart = 7;
constexpr uint32_t kFillers = 512;  // sets of one round: half a megabyte
constexpr uint64_t kOthers = 32;

// The fate of a key that the stalled batch has found.
enum class Fate : uint8_t { kReplaced, kDeleted, kEvicted };

struct OldKey {
  uint64_t number;
  uint32_t size;
  Fate fate;
};

std::string set_of(uint64_t number, uint64_t version, uint32_t size) {
  return "set " + store::key_name(number) + " 0 0 " + std::to_string(size) + "\r\n" +
         store::make_value(number, version, size) + "\r\n";
}

std::string get_of(uint64_t number) { return "get " + store::key_name(number) + "\r\n"; }

// The version that a get returned; UINT64_MAX - 1: a miss.
constexpr uint64_t kNone = UINT64_MAX - 1;
uint64_t version_in(uint64_t number, const std::string& answer) {
  if (answer == "END\r\n") return kNone;
  const std::string head = "VALUE " + store::key_name(number) + " 0 ";
  const size_t line_end = answer.find("\r\n");
  if (answer.rfind(head, 0) != 0 || line_end == std::string::npos) return UINT64_MAX;
  const size_t size = std::stoul(answer.substr(head.size()));
  if (answer.substr(line_end + 2 + std::min(size, answer.size())) != "\r\nEND\r\n") {
    return UINT64_MAX;
  }
  return store::check_value(number, answer.substr(line_end + 2, size));
}

class StalledBatchTest : public testing::TestWithParam<RigKind> {
 protected:
  void SetUp() override {
    engine::RigConfig config;
    config.store.memory_limit = config.store.memory_reach = kMemoryBytes;
    config.store.reclaim_wait_ms_max = kReclaimWaitMs;
    config.store.seed = 42;
    config.engines = 2;  // the readers of one are the stalled batch's
    config.gpu_blocks = 4;
    std::string why;
    rig_ = engine::make_rig(GetParam(), config, &why);
    if (rig_ == nullptr) GTEST_SKIP() << why;
    admin_ = std::make_unique<engine::StoreAdmin>(rig_->store());
    talker_ = std::make_unique<Talker>(rig_->make_engine(*admin_));
    reader_ = make_stalled_reader(GetParam(), *rig_, kLongValueSize);
  }

  // The reader's memory is given back.
  void TearDown() override {
    if (rig_ != nullptr) rig_->rest();
  }

  uint64_t count(StoreCounter counter) { return rig_->store().stats().get(counter); }

  // Stores one kind after the other, so that segments hold keys of one kind.
  void store_old_keys(bool with_long) {
    for (const Fate fate : {Fate::kEvicted, Fate::kReplaced, Fate::kDeleted}) {
      std::string sets;
      const auto add = [&](uint32_t size) {
        old_.push_back({old_.size(), size, fate});
        sets += set_of(old_.back().number, 0, size);
      };
      for (uint64_t i = 0; i < kKeysOfAKind; ++i) {
        add(kValueSize);
        if (fate != Fate::kReplaced) continue;
        for (uint64_t other = 1; other < kApart; ++other) sets += filler();
      }
      // Replacing retires memory, and eviction waits while memory is on its way: so long values are
      // not replaced.
      if (with_long && fate != Fate::kReplaced) add(kLongValueSize);
      talker_->say(sets);
    }
  }

  // The set of a new key.
  std::string filler() { return set_of(kFirstFiller + fillers_++, 0, kValueSize); }

  std::vector<std::string> old_names() const {
    std::vector<std::string> names;
    for (const OldKey& key : old_) names.push_back(store::key_name(key.number));
    return names;
  }

  // Stores half a megabyte of new keys. Returns how many were stored: there may be no free space.
  uint32_t fill() {
    std::vector<std::string> sets(8);
    for (uint32_t i = 0; i < kFillers; ++i) {
      sets[i % sets.size()] += filler();
    }
    uint32_t stored = 0;
    for (const Answer& answer : talker_->say_all(sets)) {
      for (size_t at = 0; (at = answer.bytes.find("STORED", at)) != std::string::npos; ++at) {
        ++stored;
      }
    }
    return stored;
  }

  // Other keys are stored and read by one connection each. A value that is there must be the stored
  // one.
  void store_and_read_others(uint64_t version) {
    std::vector<std::string> says;
    for (uint64_t i = 0; i < kOthers; ++i) {
      says.push_back(set_of(kFirstOther + i, version, kValueSize) + get_of(kFirstOther + i));
    }
    const std::vector<Answer> answers = talker_->say_all(says);
    for (uint64_t i = 0; i < kOthers; ++i) {
      const std::string& bytes = answers[i].bytes;
      const size_t line_end = bytes.find("\r\n");
      ASSERT_NE(line_end, std::string::npos) << "no answer";
      const std::string stored = bytes.substr(0, line_end);
      const uint64_t read = version_in(kFirstOther + i, bytes.substr(line_end + 2));
      if (stored == "STORED") {
        EXPECT_TRUE(read == version || read == kNone) << read << " instead of " << version;
      } else {
        EXPECT_EQ(stored, "SERVER_ERROR out of memory storing object");
        EXPECT_EQ(read, kNone);
      }
    }
  }

  // Stores twice the memory.
  void fill_all_over() {
    const Clock::time_point begin = Clock::now();
    for (uint64_t stored = 0; stored < kAllOver; stored += fill()) {
      ASSERT_LT(Clock::now() - begin, kFillPatience) << stored << " of " << kAllOver << " stored";
    }
  }

  std::string says_of(Fate fate) const {
    std::string says;
    for (const OldKey& key : old_) {
      if (key.fate != fate) continue;
      says += fate == Fate::kReplaced ? set_of(key.number, 1, key.size)
                                      : "delete " + store::key_name(key.number) + "\r\n";
    }
    return says;
  }

  // Replaces, deletes or evicts the old keys by kind. Continues to fill the store until the time
  // has passed and `fillers` were stored.
  void churn(uint64_t fillers) {
    talker_->say(says_of(Fate::kReplaced));
    const Clock::time_point begin = Clock::now();
    uint64_t stored = 0;
    uint64_t turns = 0;
    bool deleted = false;
    while (Clock::now() - begin < kStalledFor || stored < fillers || !deleted) {
      const Clock::time_point turn = Clock::now();
      ASSERT_LT(turn - begin, kPatience)
          << stored << " of " << fillers << " stored, " << count(StoreCounter::kEvicted)
          << " evicted, " << rig_->store().stats().retired_segments << " retired segments";
      stored += fill();
      store_and_read_others(++turns);
      EXPECT_LT(Clock::now() - turn, kTurnMax) << "requests do not flow";
      // The memory of deleted keys would delay eviction.
      if (deleted || count(StoreCounter::kEvicted) == 0) continue;
      talker_->say(says_of(Fate::kDeleted));
      deleted = true;
    }
    RecordProperty("turns", std::to_string(turns));
    EXPECT_GE(turns, 3u);
  }

  // The key is there. The look-up does not count as an access.
  bool has(const OldKey& key) {
    const std::string name = store::key_name(key.number);
    store::Item header;
    return rig_->store().inspect(bytes_of(name), &header);
  }

  // How many old values are missing in `seen`.
  uint64_t changed(const std::vector<std::string>& seen) const {
    uint64_t count = 0;
    for (size_t i = 0; i < old_.size(); ++i) {
      if (seen[i] != store::make_value(old_[i].number, 0, old_[i].size)) ++count;
    }
    return count;
  }

  static constexpr uint64_t kFirstFiller = 1'000'000;
  static constexpr uint64_t kFirstOther = 500'000;
  static constexpr uint64_t kAllOver = 2 * kMemoryBytes / kValueSize;

  std::unique_ptr<engine::Rig> rig_;
  std::unique_ptr<engine::StoreAdmin> admin_;
  std::unique_ptr<Talker> talker_;
  std::unique_ptr<StalledReader> reader_;  // destroyed before the rig
  std::vector<OldKey> old_;
  uint64_t fillers_ = 0;
};

TEST_P(StalledBatchTest, SeesWhatItFoundAndItsMemoryIsUsedAfterwards) {
  store_old_keys(true);
  while (fillers_ * kValueSize < kMemoryBytes / 2) fill();
  ASSERT_EQ(reader_->hold(old_names(), true), old_.size());
  churn(0);
  uint64_t evicted_old = 0;
  for (const OldKey& key : old_) {
    if (key.fate == Fate::kEvicted && !has(key)) ++evicted_old;
    if (key.fate == Fate::kEvicted) continue;
    const uint64_t version = version_in(key.number, talker_->say(get_of(key.number)));
    const uint64_t left = key.fate == Fate::kReplaced ? 1 : kNone;
    EXPECT_TRUE(version == left || version == kNone) << version << " of key " << key.number;
  }
  EXPECT_GT(evicted_old, 0u);
  // Memory is retired, and is not used again while the stalled batch may look at it.
  const store::StoreStats stalled = rig_->store().stats();
  EXPECT_GT(stalled.retired_segments, 0u);
  EXPECT_EQ(changed(reader_->let_go()), 0u);

  fill_all_over();
  const uint64_t evicted = count(StoreCounter::kEvicted) - stalled.get(StoreCounter::kEvicted);
  EXPECT_GT(evicted, kAllOver / 4);
  for (const OldKey& key : old_) {
    EXPECT_FALSE(key.fate == Fate::kEvicted && has(key)) << "key " << key.number;
  }
}

// The same without an epoch: the memory is used again while the reader looks at it. If this test
// saw no other bytes, the one above would prove nothing.
TEST_P(StalledBatchTest, OutsideAnEpochItSeesOtherBytes) {
  store_old_keys(false);  // the pieces of a reused chain cannot be followed
  while (fillers_ * kValueSize < kMemoryBytes / 2) fill();
  ASSERT_EQ(reader_->hold(old_names(), false), old_.size());
  churn(kAllOver);
  EXPECT_GT(changed(reader_->let_go()), old_.size() / 2);
}

INSTANTIATE_TEST_SUITE_P(Engines, StalledBatchTest,
                         testing::Values(RigKind::kCpu, RigKind::kCudaLaunch,
                                         RigKind::kCudaPersistent, RigKind::kCudaEdge),
                         [](const auto& made) { return engine::rig_name(made.param); });

}  // namespace
}  // namespace warpcache::gpu_tests
