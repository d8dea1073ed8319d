// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/front.h"

#include <gtest/gtest.h>

#include <vector>

#include "workload/random.h"

namespace warpcache::nic {
namespace {

constexpr uint32_t kKeys = 16;
constexpr uint32_t kFrontRowBits = 1;

Geometry tiny(uint32_t tag_bits = 8) {
  Geometry geometry;
  geometry.rows = 1u << kFrontRowBits;
  geometry.ways = 2;
  geometry.tag_bits = tag_bits;
  geometry.replacement = Replacement::kLru;
  geometry.slot_bytes = 64;
  return geometry;
}

uint32_t hash_of(uint32_t key) { return (key & 1) << 31 | (key / 2 + 1); }

// A NIC and its host, with each key's hash made from its number.
struct Machine {
  explicit Machine(ReadAllocate allocate, WritePolicy write, uint32_t tag_bits = 8,
                   uint32_t inflight_max = 8, Admission admission = Admission::kAll)
      : host(kKeys, 0), front(tiny(tag_bits), {allocate, write, admission, inflight_max}, &host) {}

  void set(uint32_t key, uint32_t value, uint32_t bytes = 10) {
    front.set(key, hash_of(key), value, bytes);
  }
  std::optional<uint32_t> get(uint32_t key, Miss* miss) {
    return front.get(key, hash_of(key), miss);
  }
  // A GET whose reply is there at once. 0: not found.
  uint32_t read(uint32_t key) {
    Miss miss;
    if (const auto value = get(key, &miss)) return *value;
    front.finish(miss);
    return miss.reply ? miss.reply->value : 0;
  }
  void erase(uint32_t key) { front.erase(key, hash_of(key)); }

  LruHost host;
  Front front;
};

TEST(InflightMisses, AWriteKillsEveryMissOfItsKey) {
  InflightMisses misses(3);
  const uint32_t first = misses.start(5);
  const uint32_t second = misses.start(5);
  const uint32_t other = misses.start(6);
  EXPECT_EQ(misses.start(7), InflightMisses::kNone);
  EXPECT_EQ(misses.kill(5), 2u);
  EXPECT_EQ(misses.kill(5), 0u);
  EXPECT_FALSE(misses.finish(first));
  EXPECT_TRUE(misses.finish(other));
  const uint32_t again = misses.start(5);  // after the write
  EXPECT_NE(again, InflightMisses::kNone);
  EXPECT_FALSE(misses.finish(second));
  EXPECT_TRUE(misses.finish(again));
  EXPECT_EQ(misses.count(), 0u);
}

TEST(Front, WriteBackTellsTheHostWhenAnItemLeaves) {
  Machine machine(ReadAllocate::kNone, WritePolicy::kBack);
  machine.set(0, 100);
  machine.set(2, 102);
  EXPECT_EQ(machine.host.counters().sets, 0u);
  machine.set(4, 104);  // the row of even keys has two ways
  EXPECT_EQ(machine.host.counters().sets, 1u);
  EXPECT_EQ(machine.front.counters().writebacks, 1u);
  EXPECT_EQ(machine.read(0), 100u);  // from the host
  EXPECT_EQ(machine.read(2), 102u);
  EXPECT_EQ(machine.front.counters().hits, 1u);
}

TEST(Front, ForwardTellsTheHostAtOnceAndNeverAgain) {
  Machine machine(ReadAllocate::kNone, WritePolicy::kForward);
  for (uint32_t key = 0; key < 8; ++key) machine.set(key, 100 + key);
  EXPECT_EQ(machine.host.counters().sets, 8u);
  EXPECT_EQ(machine.front.counters().writebacks, 0u);
  for (uint32_t key = 0; key < 8; ++key) EXPECT_EQ(machine.read(key), 100 + key);
}

TEST(Front, InvalidateDropsWhatIsSetAndUpdateReplacesIt) {
  for (const auto write : {WritePolicy::kInvalidate, WritePolicy::kUpdate}) {
    Machine machine(ReadAllocate::kSafe, write);
    machine.set(0, 1);
    EXPECT_EQ(machine.front.cache().items(), 0u);
    EXPECT_EQ(machine.read(0), 1u);
    EXPECT_EQ(machine.front.cache().items(), 1u);
    machine.set(0, 2);
    machine.set(2, 3);
    EXPECT_EQ(machine.front.cache().items(), write == WritePolicy::kUpdate ? 1u : 0u);
    EXPECT_EQ(machine.read(0), 2u);
    EXPECT_EQ(machine.front.counters().hits, write == WritePolicy::kUpdate ? 1u : 0u);
    machine.set(0, 4, 65);  // too large
    EXPECT_EQ(machine.front.cache().items(), 0u);
    EXPECT_EQ(machine.read(0), 4u);
    EXPECT_EQ(machine.host.counters().sets, 4u);
  }
}

TEST(Front, WhatIsAskedForOnceEvictsNothing) {
  Machine machine(ReadAllocate::kSafe, WritePolicy::kInvalidate, 8, 8, Admission::kFrequent);
  for (uint32_t key = 0; key < 8; key += 2) machine.set(key, 100 + key);
  (void)machine.read(0);
  (void)machine.read(2);  // the row of even keys has two ways
  (void)machine.read(4);
  EXPECT_EQ(machine.front.counters().rare, 1u);
  EXPECT_EQ(machine.front.counters().fills, 2u);
  (void)machine.read(4);
  EXPECT_EQ(machine.front.counters().fills, 3u);
  (void)machine.read(4);
  EXPECT_EQ(machine.front.counters().hits, 1u);
}

TEST(Front, ReadAllocateCachesWhatTheHostFound) {
  for (const auto allocate : {ReadAllocate::kNone, ReadAllocate::kUnsafe, ReadAllocate::kSafe}) {
    Machine machine(allocate, WritePolicy::kForward);
    for (uint32_t key = 0; key < 6; key += 2) machine.set(key, 100 + key);  // 0 has to go
    EXPECT_EQ(machine.read(0), 100u);
    EXPECT_EQ(machine.read(0), 100u);
    EXPECT_EQ(machine.read(9), 0u);
    EXPECT_EQ(machine.front.counters().hits, allocate == ReadAllocate::kNone ? 0u : 1u);
    EXPECT_EQ(machine.front.counters().fills, allocate == ReadAllocate::kNone ? 0u : 1u);
  }
}

TEST(Front, DeleteReachesBothAndWrittenBackDataOfOthersStays) {
  for (const auto write : {WritePolicy::kBack, WritePolicy::kForward}) {
    Machine machine(ReadAllocate::kSafe, write, 0);  // no tags: 0 and 2 have the same entry
    machine.set(0, 100);
    machine.erase(2);
    EXPECT_EQ(machine.read(0), 100u);
    machine.erase(0);
    EXPECT_EQ(machine.read(0), 0u);
  }
}

TEST(Front, WhatIsTooLargeGoesToTheHostAndLeavesNoOlderCopy) {
  for (const auto write : {WritePolicy::kBack, WritePolicy::kForward}) {
    Machine machine(ReadAllocate::kSafe, write);
    machine.set(0, 100);
    machine.set(0, 101, 65);
    EXPECT_EQ(machine.read(0), 101u);
    EXPECT_EQ(machine.front.counters().oversize_sets, 1u);
    EXPECT_EQ(machine.front.counters().oversize_fills, 1u);
    EXPECT_EQ(machine.front.cache().items(), 0u);
  }
}

// Section 4.2: a SET passes between a miss and its reply, which carries what was there before.
void set_while_a_miss_is_under_way(ReadAllocate allocate, uint32_t expected) {
  for (const auto write : {WritePolicy::kBack, WritePolicy::kForward}) {
    Machine machine(allocate, write);
    machine.host.set({0, 1, 10, false});
    Miss miss;
    ASSERT_FALSE(machine.get(0, &miss));
    machine.set(0, 2);
    machine.front.finish(miss);
    EXPECT_EQ(machine.read(0), expected);
  }
}

TEST(ReadAllocate, UnsafeBringsTheOldValueBack) {
  set_while_a_miss_is_under_way(ReadAllocate::kUnsafe, 1);
}

TEST(ReadAllocate, SafeKeepsTheNewValue) {
  set_while_a_miss_is_under_way(ReadAllocate::kSafe, 2);
  set_while_a_miss_is_under_way(ReadAllocate::kNone, 2);
}

TEST(ReadAllocate, ADeletedKeyDoesNotComeBack) {
  Machine machine(ReadAllocate::kSafe, WritePolicy::kForward);
  machine.host.set({0, 1, 10, false});
  Miss miss;
  ASSERT_FALSE(machine.get(0, &miss));
  machine.erase(0);
  machine.front.finish(miss);
  EXPECT_EQ(machine.read(0), 0u);
  EXPECT_EQ(machine.front.counters().killed, 1u);
}

TEST(ReadAllocate, MissesBeyondTheTableAreNotCached) {
  Machine machine(ReadAllocate::kSafe, WritePolicy::kForward, 8, 1);
  machine.host.set({0, 1, 10, false});
  machine.host.set({1, 2, 10, false});
  Miss first;
  Miss second;
  ASSERT_FALSE(machine.get(0, &first));
  ASSERT_FALSE(machine.get(1, &second));
  machine.front.finish(second);
  machine.front.finish(first);
  EXPECT_EQ(machine.front.counters().untracked, 1u);
  EXPECT_EQ(machine.front.counters().fills, 1u);
}

// Misses whose replies come back late and in any order, among writes to the same few keys. Counts
// the GETs that were answered with anything else than the key's last SET: a hit when it was
// answered, a miss when the host was asked. At the end every key is read once more.
class Interleaving {
 public:
  Interleaving(ReadAllocate allocate, WritePolicy write, uint32_t tag_bits, uint64_t seed)
      : machine_(allocate, write, tag_bits), random_(seed), last_(kKeys, 0) {}

  uint64_t stale_after(uint32_t steps) {
    for (uint32_t step = 1; step <= steps; ++step) act(step);
    while (!pending_.empty()) finish_one();
    for (uint32_t key = 0; key < kKeys; ++key) check(key, machine_.read(key));
    return stale_;
  }

  const FrontCounters& counters() const { return machine_.front.counters(); }

 private:
  static constexpr size_t kPendingMax = 12;  // more than the NIC can follow

  void act(uint32_t step) {
    const auto key = static_cast<uint32_t>(random_.next() % kKeys);
    switch (random_.next() % 8) {
      case 0:
      case 1:
        last_[key] = step;
        return machine_.set(key, step, 1 + static_cast<uint32_t>(random_.next() % 70));
      case 2:
        last_[key] = 0;
        return machine_.erase(key);
      case 3:
      case 4:
        return finish_one();
      default:
        return get(key);
    }
  }

  void get(uint32_t key) {
    if (pending_.size() == kPendingMax) finish_one();
    Miss miss;
    if (const auto value = machine_.get(key, &miss)) return check(key, *value);
    check(key, miss.reply ? miss.reply->value : 0);
    pending_.push_back(miss);
  }

  void finish_one() {
    if (pending_.empty()) return;
    std::swap(pending_[random_.next() % pending_.size()], pending_.back());
    machine_.front.finish(pending_.back());
    pending_.pop_back();
  }

  void check(uint32_t key, uint32_t value) {
    if (value != last_[key]) ++stale_;
  }

  Machine machine_;
  bench::Random random_;
  std::vector<Miss> pending_;
  std::vector<uint32_t> last_;
  uint64_t stale_ = 0;
};

constexpr uint32_t kSteps = 4000;
constexpr uint64_t kSeeds = 20;

TEST(ReadAllocateProperty, SafeNeverAnswersWithAnOldValue) {
  uint64_t killed = 0;
  uint64_t untracked = 0;
  for (const auto write : {WritePolicy::kBack, WritePolicy::kForward, WritePolicy::kInvalidate,
                           WritePolicy::kUpdate}) {
    for (const uint32_t tag_bits : {0u, 2u, 8u}) {
      for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        Interleaving run(ReadAllocate::kSafe, write, tag_bits, seed);
        ASSERT_EQ(run.stale_after(kSteps), 0u) << name(write) << " " << tag_bits << " " << seed;
        EXPECT_GT(run.counters().fills, 0u);
        killed += run.counters().killed;
        untracked += run.counters().untracked;
      }
    }
  }
  EXPECT_GT(killed, 0u);  // or the test has not seen what it is for
  EXPECT_GT(untracked, 0u);
}

TEST(ReadAllocateProperty, WithoutAllocationNothingIsOldEither) {
  for (const auto write : {WritePolicy::kBack, WritePolicy::kForward}) {
    Interleaving run(ReadAllocate::kNone, write, 2, 1);
    EXPECT_EQ(run.stale_after(kSteps), 0u);
  }
}

TEST(ReadAllocateProperty, UnsafeDoesAnswerWithOldValues) {
  for (const auto write : {WritePolicy::kBack, WritePolicy::kForward}) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Interleaving run(ReadAllocate::kUnsafe, write, 8, seed);
      EXPECT_GT(run.stale_after(kSteps), 0u) << name(write) << " " << seed;
    }
  }
}

}  // namespace
}  // namespace warpcache::nic
