// SPDX-License-Identifier: Apache-2.0
//
// Rules of the design that fail only when two threads use one key at the same time: a client must
// see a state that the key was in.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "store/testing/store_fixture.h"
#include "stress/speaker.h"
#include "stress/value.h"

namespace warpcache::stress {
namespace {

using std::chrono::steady_clock;
using store::kMiB;
using store::make_store;

store::StoreConfig config_of(uint64_t memory) {
  store::StoreConfig config;
  config.memory_limit = memory;
  config.memory_reach = memory;
  config.manual_clock = true;
  config.seed = 42;
  return config;
}

// Runs `work` in a thread, again and again, until stopped.
class Background {
 public:
  template <typename Work>
  explicit Background(Work work)
      : thread_([this, work]() mutable {
          while (!stopping_) work();
        }) {}
  ~Background() {
    stopping_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

template <typename Work>
void repeat_for(std::chrono::milliseconds time, Work work) {
  const auto end = steady_clock::now() + time;
  while (steady_clock::now() < end && !::testing::Test::HasFailure()) work();
}

constexpr auto kRaceTime = std::chrono::milliseconds(700);

// Rule 9. A command that needs a stored item has found it before the flush, so its result is
// flushed too.
TEST(Flush, WhatIsMadeOfAFlushedItemIsFlushed) {
  const auto store = make_store(config_of(64 * kMiB));
  Speaker flusher(*store);
  Speaker counter(*store);
  const Background counting([&counter] { counter.say("incr n 1\r\nappend a 0 0 1\r\nx\r\n"); });
  repeat_for(kRaceTime, [&] {
    flusher.say("set n 0 0 1\r\n1\r\nset a 0 0 1\r\ny\r\n");
    EXPECT_EQ(flusher.say("flush_all\r\nget n\r\nget a\r\n"), "OK\r\nEND\r\nEND\r\n");
  });
}

// The same with the flush in the middle of the command.
TEST(Flush, BetweenLookingAndPublishingItTakesBoth) {
  const auto store = make_store(config_of(64 * kMiB));
  store::Worker worker(store.get());
  const std::string key = "k";
  const uint64_t hash = worker.ref().hash(bytes_of(key));
  ASSERT_EQ(worker.set(key, "old"), Status::kOk);
  worker.enter();
  store::Allocation allocation;
  ASSERT_EQ(worker.ref().allocate(worker.thread(), 1, 3, 0, allocation), Status::kOk);
  std::memcpy(allocation.item->key_data(), key.data(), key.size());
  {
    store::LockedPair pair(worker.ref(), hash);
    const store::Found found = pair.find(bytes_of(key));
    ASSERT_TRUE(found);
    EXPECT_TRUE(pair.alive(*found.item, store->clock().now));
    store->flush_all();
    EXPECT_TRUE(pair.alive(*found.item, store->clock().now));
    pair.publish(worker.thread(), allocation, found);
  }
  worker.leave();
  EXPECT_FALSE(worker.get(key));
  EXPECT_EQ(worker.set(key, "new"), Status::kOk);
  EXPECT_TRUE(worker.get(key));
}

// Rule 9. A flush does not depend on CAS ids.
TEST(Flush, TakesItemsWhateverTheirCasId) {
  const auto store = make_store(config_of(64 * kMiB));
  Speaker speaker(*store);
  EXPECT_EQ(speaker.say("ms a 1 E18446744073709551615\r\nx\r\nms b 1 E1\r\ny\r\n"), "HD\r\nHD\r\n");
  EXPECT_EQ(speaker.say("flush_all\r\nget a\r\nget b\r\n"), "OK\r\nEND\r\nEND\r\n");
  EXPECT_EQ(speaker.say("ms a 1 E1\r\nz\r\nmg a v c\r\n"), "HD\r\nVA 1 c1\r\nz\r\n");
}

// Rule 5. A reader of a stale item wins the token, or sees that it was won; there is no third
// state.
TEST(Recache, AStaleItemIsWonOrHasBeen) {
  const auto store = make_store(config_of(64 * kMiB));
  Speaker writer(*store);
  Speaker reader(*store);
  std::atomic<uint64_t> last_cas = 0;
  const Background writing([&writer, &last_cas] {
    const std::string reply = writer.say("ms k 1 c\r\nx\r\n");
    last_cas = std::stoull(reply.substr(4));
    writer.say("md k I\r\n");
  });
  while (last_cas == 0) std::this_thread::yield();
  uint64_t fresh_cas = 0;  // the last one seen of an item that was not stale
  repeat_for(kRaceTime, [&] {
    const std::string reply = reader.say("mg k c\r\n");
    ASSERT_TRUE(reply.starts_with("HD c")) << reply;
    const uint64_t cas = std::stoull(reply.substr(4));
    const bool stale = reply.find(" X") != std::string::npos;
    const bool won = reply.find(" W") != std::string::npos;
    const bool sent = reply.find(" Z") != std::string::npos;
    EXPECT_EQ(stale, won || sent) << reply;
    EXPECT_FALSE(won && sent) << reply;
    // The invalidation gave it another id.
    EXPECT_FALSE(stale && cas == fresh_cas) << reply;
    if (!stale) fresh_cas = cas;
  });
}

// Rule 5. A plain read waits for no lock; a read that changes its item does.
TEST(Recache, WhatChangesAnItemWaitsForTheLock) {
  const struct {
    const char* command;
    bool waits;
  } cases[] = {{"get k\r\n", false},
               {"mg fresh v c t\r\n", false},
               {"gets k\r\n", false},
               {"mg k v\r\n", true},    // stale: one reader wins the
                                        // token
               {"mg won t\r\n", true},  // the winner may be changing its time
               {"gat 100 k\r\n", true},
               {"mg fresh T100\r\n", true},
               {"touch k 100\r\n", true},
               {"md fresh I\r\n", true},
               {"mg fresh R1000\r\n", true},
               {"incr k 1\r\n", true},
               {"set k 0 0 1\r\nx\r\n", true}};
  for (const auto& one : cases) {
    const auto store = make_store(config_of(64 * kMiB));
    store::Worker holder(store.get());
    Speaker speaker(*store);
    speaker.say("ms k 1\r\n1\r\nmd k I\r\nset fresh 0 100 1\r\n1\r\n");
    speaker.say("ms won 1\r\n1\r\nmd won I\r\nmg won\r\n");
    std::atomic<bool> answered = false;
    std::thread client;
    bool answered_while_locked = false;
    {
      std::string key = "k";
      for (const char* other : {"fresh", "won"}) {
        if (std::string(one.command).find(other) != std::string::npos) key = other;
      }
      const store::LockedPair pair(holder.ref(), holder.ref().hash(bytes_of(key)));
      client = std::thread([&] {
        speaker.say(one.command);
        answered = true;
      });
      const auto end = steady_clock::now() + std::chrono::milliseconds(one.waits ? 30 : 60'000);
      while (!answered && steady_clock::now() < end) std::this_thread::yield();
      answered_while_locked = answered;
    }
    client.join();
    EXPECT_EQ(answered_while_locked, !one.waits) << one.command;
  }
}

// Threads that send their commands at the same time, again and again.
class Race {
 public:
  Race(store::Store& store, const std::vector<std::string>& commands) : replies_(commands.size()) {
    for (size_t i = 0; i < commands.size(); ++i) {
      threads_.emplace_back([this, &store, i, said = commands[i]] { run(store, i, said); });
    }
  }
  ~Race() {
    done_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  // The replies of all threads to one round.
  const std::vector<std::string>& round() {
    ready_ = 0;
    through_ = 0;
    ++round_;
    while (through_ < threads_.size()) std::this_thread::yield();
    return replies_;
  }

 private:
  void run(store::Store& store, size_t number, const std::string& commands) {
    Speaker speaker(store);
    for (uint64_t seen = 0; !done_;) {
      if (round_ == seen) {
        std::this_thread::yield();
        continue;
      }
      seen = round_;
      // All threads start together, except one that the system does not run.
      ++ready_;
      for (int i = 0; i < 20'000 && ready_ < replies_.size(); ++i) {
      }
      replies_[number] = speaker.say(commands);
      ++through_;
    }
  }

  std::vector<std::string> replies_;
  std::atomic<uint64_t> round_ = 0;
  std::atomic<size_t> ready_ = 0;
  std::atomic<size_t> through_ = 0;
  std::atomic<bool> done_ = false;
  std::vector<std::thread> threads_;
};

// Keys of a round: all threads use them in the same order, so that they meet.
constexpr size_t kRaceKeys = 400;

std::string for_each_key(const std::string& before, const std::string& behind) {
  std::string commands;
  for (size_t i = 0; i < kRaceKeys; ++i) commands += before + "k" + std::to_string(i) + behind;
  return commands;
}

// Rule 5. Two clients never both win.
TEST(Recache, OneClientWins) {
  const auto store = make_store(config_of(64 * kMiB));
  Speaker writer(*store);
  const std::string gets = for_each_key("mg ", "\r\n");
  Race race(*store, {gets, gets, gets});
  repeat_for(kRaceTime, [&] {
    writer.say(for_each_key("ms ", " 1\r\nx\r\n") + for_each_key("md ", " I\r\n"));
    size_t wins = 0;
    for (const std::string& reply : race.round()) {
      wins += static_cast<size_t>(std::count(reply.begin(), reply.end(), 'W'));
    }
    EXPECT_EQ(wins, kRaceKeys);
  });
}

// Rule 5. A winner that sets a new time to live changes token and time at once: no reader sees the
// token gone with the old time.
TEST(Recache, SignsAndTimeLeftAreOfOneMoment) {
  const auto store = make_store(config_of(64 * kMiB));
  Speaker writer(*store);
  const std::string touches = for_each_key("mg ", " T1000 t\r\n");
  const std::string gets = for_each_key("mg ", " t\r\n");
  Race race(*store, {touches, gets});
  repeat_for(kRaceTime, [&] {
    writer.say(for_each_key("ms ", " 1 T10\r\nx\r\n") + for_each_key("md ", " I\r\n"));
    const std::vector<std::string>& replies = race.round();
    EXPECT_EQ(replies[1].find("HD t10 X Z"), std::string::npos);
    EXPECT_EQ(replies[1].find("HD t1000 W X"), std::string::npos);
  });
}

// Rule 8. CAS ids of all threads compare as older and newer.
TEST(Cas, AnOlderIdIsKnownAsOlderWhoeverGaveIt) {
  const auto store = make_store(config_of(64 * kMiB));
  Speaker speakers[3] = {Speaker(*store), Speaker(*store), Speaker(*store)};
  uint64_t before = 0;
  for (int i = 0; i < 300; ++i) {
    // The threads alternate so that the ids of each fall below those of the others.
    Speaker& speaker = speakers[i % 7 % 3];
    const std::string reply = speaker.say("ms k 1 c\r\nx\r\n");
    ASSERT_TRUE(reply.starts_with("HD c")) << reply;
    const uint64_t cas = std::stoull(reply.substr(4));
    ASSERT_GT(cas, before);
    if (before != 0) {
      ASSERT_EQ(speaker.say("ms k 1 I C" + std::to_string(before) + "\r\ny\r\nmg k v\r\n"),
                "HD\r\nVA 1 X W\r\ny\r\n");
      ASSERT_EQ(speaker.say("ms k 1 I C" + std::to_string(cas + (1u << 30)) + "\r\ny\r\n"),
                "EX\r\n");
    }
    before = cas;
  }
}

// Rule 8. A CAS id is never given to the same key again.
TEST(Cas, AnIdIsNotGivenTwice) {
  const auto store = make_store(config_of(64 * kMiB));
  Speaker speakers[3] = {Speaker(*store), Speaker(*store), Speaker(*store)};
  std::set<std::string> seen;
  for (int i = 0; i < 300; ++i) {
    for (int turn : {0, i % 3, 1 + i % 2}) {
      const std::string reply = speakers[turn].say("ms k 1 c\r\nx\r\n");
      ASSERT_TRUE(reply.starts_with("HD c")) << reply;
      ASSERT_TRUE(seen.insert(reply).second) << reply;
    }
    ASSERT_EQ(speakers[2].say("md k\r\n"), "HD\r\n");
  }
}

// Rule 3. A command without reply space has had no effect; it runs once.
TEST(Reply, ACommandWithoutReplySpaceRunsOnce) {
  const auto store = make_store(config_of(64 * kMiB));
  Speaker speaker(*store);
  speaker.say(set_command("v", std::string(16 * 1024, 'v')) + "set n 0 0 1\r\n0\r\n");
  std::string commands;
  constexpr int kRounds = 500;
  for (int i = 0; i < kRounds; ++i) commands += "get v\r\nincr n 1\r\n";
  const std::string replies = speaker.say(commands);
  EXPECT_GT(speaker.batches(), 10u);
  EXPECT_TRUE(replies.ends_with("END\r\n" + std::to_string(kRounds) + "\r\n"));
  EXPECT_EQ(speaker.say("get n\r\n"), "VALUE n 0 3\r\n500\r\nEND\r\n");
}

// The same where many connections together ask for more than one batch has space for. (Longer
// values are pinned and take no reply space.)
TEST(Reply, SpaceIsSharedByAllConnectionsOfABatch) {
  const auto store = make_store(config_of(64 * kMiB));
  Speaker speaker(*store);
  const std::string value(engine::kCopiedValueMax, 'v');
  speaker.say(set_command("v", value) + "set n 0 0 1\r\n0\r\n");
  const std::string hit =
      "VALUE v 0 " + std::to_string(value.size()) + "\r\n" + value + "\r\nEND\r\n";
  constexpr size_t kConnections = 40;
  constexpr size_t kGets = 48;
  std::string commands = "incr n 1\r\n";
  for (size_t i = 0; i < kGets; ++i) commands += "get v\r\n";
  const std::vector<std::string> replies =
      speaker.say_each(std::vector<std::string>(kConnections, commands));
  EXPECT_GT(speaker.batches(), 3u);
  std::set<std::string> numbers;
  for (const std::string& reply : replies) {
    const size_t end = reply.find("\r\n");
    numbers.insert(reply.substr(0, end));
    EXPECT_EQ(reply.size(), end + 2 + kGets * hit.size());
    EXPECT_TRUE(reply.ends_with(hit));
  }
  EXPECT_EQ(numbers.size(), kConnections);
  EXPECT_EQ(speaker.say("get n\r\n"), "VALUE n 0 2\r\n40\r\nEND\r\n");
}

// Rule 16. A multiget of large values is answered in several batches.
TEST(Reply, AMultigetOfLargeValuesTakesManyBatches) {
  const auto store = make_store(config_of(256 * kMiB));
  Speaker speaker(*store);
  constexpr uint64_t kSize = 1'000'000;
  std::string get = "get";
  for (int i = 0; i < 10; ++i) {
    speaker.say(
        set_command("k" + std::to_string(i), stress::make_value(static_cast<uint64_t>(i), kSize)));
  }
  for (int i = 0; i < 150; ++i) get += " k" + std::to_string(i % 10);
  const std::string replies = speaker.say(get + "\r\n");
  EXPECT_GT(replies.size(), 150 * kSize);
  EXPECT_TRUE(replies.ends_with("\r\nEND\r\n"));
  constexpr uint64_t kSlice = 256 * 1024;
  constexpr uint64_t kGroup = 32;  // requests that the engine overlaps
  EXPECT_LE(speaker.reply_bytes_max(), kSlice + kGroup * (kSize + 100));
}

// Rule 4. Adds, replaces and compare-and-swaps that must fail write nothing.
TEST(Write, FailuresDoNotChurnTheLog) {
  store::StoreConfig config = config_of(8 * kMiB);
  struct Counting : store::Faults {
    std::atomic<uint64_t> allocations = 0;
    bool fails_allocation() override {
      ++allocations;
      return false;
    }
  } seen;
  config.faults = &seen;
  const auto store = make_store(config);
  Speaker speaker(*store);
  const std::string value(1000, 'v');
  for (int i = 0; i < 1000; ++i) speaker.say(set_command("k" + std::to_string(i), value));
  const store::StoreStats before = store->stats();
  seen.allocations = 0;
  for (int i = 0; i < 30'000; ++i) {
    const std::string key = "k" + std::to_string(i % 1000);
    const std::string body = " 0 0 1000\r\n" + value + "\r\n";
    ASSERT_EQ(speaker.say("add " + key + body), "NOT_STORED\r\n");
    ASSERT_EQ(speaker.say("replace x" + key + body), "NOT_STORED\r\n");
    ASSERT_EQ(speaker.say("cas " + key + " 0 0 1000 1\r\n" + value + "\r\n"), "EXISTS\r\n");
  }
  const store::StoreStats after = store->stats();
  EXPECT_EQ(seen.allocations, 0u);
  EXPECT_EQ(after.used_bytes, before.used_bytes);
  EXPECT_EQ(after.get(store::StoreCounter::kEvicted), 0u);
  EXPECT_EQ(after.get(store::StoreCounter::kMovedItems), 0u);
  EXPECT_EQ(after.get(store::StoreCounter::kTotalItems), 1000u);
}

// Rule 3. A batch of sets larger than the free memory does not wait for itself.
TEST(Write, ABatchLargerThanTheMemory) {
  store::StoreConfig config = config_of(4 * kMiB);
  config.maintenance_thread = false;
  config.reclaim_wait_ms_max = 300;
  const auto store = make_store(config);
  Speaker speaker(*store);
  std::string commands;
  std::string expected;
  for (uint64_t i = 0; i < 20'000; ++i) {
    commands += set_command("k" + std::to_string(i), stress::make_value(i, 1000));
    expected += "STORED\r\n";
  }
  const auto start = steady_clock::now();
  EXPECT_EQ(speaker.say(commands), expected);
  // One wait for each set, or for each segment, takes minutes; none takes a second.
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(50));
}

}  // namespace
}  // namespace warpcache::stress
