// SPDX-License-Identifier: Apache-2.0
//
// Every engine with messages (testing/engine_suite.h).
#include "engine/testing/engine_suite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/testing/effort.h"
#include "engine/admin_budget.h"
#include "engine/replies.h"

namespace warpcache::engine {
namespace {

// --- Messages

TEST_P(EngineSuite, CommandsOfAConnectionTakeEffectInOrder) {
  std::string text;
  std::string expected;
  for (int i = 0; i < 200; ++i) {
    const std::string value = std::to_string(i);
    text += set("k", value) + "get k\r\ndelete k\r\nget k\r\n";
    expected += "STORED\r\nVALUE k 0 " + std::to_string(value.size()) + "\r\n" + value +
                "\r\nEND\r\nDELETED\r\nEND\r\n";
  }
  EXPECT_EQ(say(text), expected);
}

TEST_P(EngineSuite, EachConnectionGetsItsOwnReplies) {
  TestBatch batch;
  for (int i = 0; i < 100; ++i) {
    const std::string key = "k" + std::to_string(i);
    batch.add(set(key, key) + "get " + key + "\r\n");
  }
  run(batch);
  for (uint32_t i = 0; i < 100; ++i) {
    const std::string key = "k" + std::to_string(i);
    EXPECT_EQ(batch.reply(i), "STORED\r\nVALUE " + key + " 0 " + std::to_string(key.size()) +
                                  "\r\n" + key + "\r\nEND\r\n");
    EXPECT_EQ(batch.entry(i).frames_done, 2u);
  }
}

// They take long: a stream's third waits for a later batch, with all that follows it.
TEST_P(EngineSuite, AStreamHasAShareOfAdministrativeCommands) {
  TestBatch batch;
  batch.add("get a\r\n" + times(kEntryAdminMax + 2, "verbosity 1\r\nget b\r\n"));
  batch.add("get a\r\n");
  run(batch);
  EXPECT_EQ(batch.entry(0).frames_done, 1 + 2 * kEntryAdminMax);
  EXPECT_EQ(batch.reply(0), "END\r\n" + times(kEntryAdminMax, "ADMIN\r\nEND\r\n"));
  EXPECT_TRUE(batch.entry(0).waits);
  EXPECT_EQ(batch.reply(1), "END\r\n");
  EXPECT_FALSE(batch.entry(1).waits);
  EXPECT_FALSE(batch.stream_not_reached());
}

TEST_P(EngineSuite, ABatchHasABoundOnAdministrativeCommands) {
  constexpr uint32_t kStreams = 2 * kBatchAdminMax;
  TestBatch batch;
  for (uint32_t i = 0; i < kStreams; ++i) batch.add(times(kEntryAdminMax, "verbosity 1\r\n"));
  batch.add("get a\r\n");
  run(batch);
  uint32_t done = 0;
  for (uint32_t i = 0; i < kStreams; ++i) {
    const BatchEntry& entry = batch.entry(i);
    EXPECT_EQ(batch.reply(i), times(entry.frames_done, "ADMIN\r\n"));
    EXPECT_EQ(entry.waits, entry.frames_done < kEntryAdminMax);
    done += entry.frames_done;
  }
  EXPECT_EQ(done, kBatchAdminMax);
  EXPECT_TRUE(batch.stream_not_reached());
  EXPECT_EQ(batch.reply(kStreams), "END\r\n");
}

TEST_P(EngineSuite, ADatagramHasOneAdministrativeCommand) {
  TestBatch batch;
  batch.add("get a\r\nverbosity 1\r\nget b\r\n", true);
  batch.add("get a\r\nverbosity 1\r\nverbosity 1\r\nget b\r\n", true);
  run(batch);
  EXPECT_EQ(batch.reply(0), "END\r\nADMIN\r\nEND\r\n");
  EXPECT_EQ(batch.reply(1), kDatagramBusy);
  EXPECT_EQ(batch.entry(1).frames_done, batch.entry(1).frame_count);
}

TEST_P(EngineSuite, AdministrativeCommandsKeepTheirPlace) {
  EXPECT_EQ(say("set a 0 0 1\r\nx\r\nstats\r\nget a\r\nverbosity 1\r\nget b\r\n"),
            "STORED\r\nADMIN\r\nVALUE a 0 1\r\nx\r\nEND\r\nADMIN\r\nEND\r\n");
}

TEST_P(EngineSuite, NothingRunsBehindQuit) {
  TestBatch batch;
  batch.add("set a 0 0 1\r\nx\r\nquit\r\n");
  run(batch);
  EXPECT_EQ(batch.reply(0), "STORED\r\n");
  EXPECT_TRUE(batch.entry(0).close);
}

TEST_P(EngineSuite, WithoutALoginOnlyTheLoginIsTaken) {
  TestBatch batch;
  batch.add("get a\r\nset a 0 0 3\r\na b\r\nget a\r\n");
  batch.entry(0).authenticated = false;
  run(batch);
  EXPECT_EQ(batch.reply(0), "CLIENT_ERROR unauthenticated\r\nSTORED\r\nEND\r\n");
  EXPECT_TRUE(batch.entry(0).authenticated);
}

TEST_P(EngineSuite, ABase64KeyIsDecodedOnce) {
  std::string text;
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    text += "mg Zm9vYmFy b k\r\n";
    expected += "EN k Zm9vYmFy b\r\n";
  }
  const std::string miss = say("mg Zm9vYmFy b k\r\n");
  std::string all;
  for (int i = 0; i < 100; ++i) all += miss;
  EXPECT_EQ(say(text), all);
}

// The next request waits for the next batch, and its reply comes after the long one.
TEST_P(EngineSuite, ALongReplyEndsTheStreamsShare) {
  TestBatch batch;
  batch.add("get a\r\nlru_crawler metadump all\r\nget b\r\n");
  batch.add("get a\r\n");
  run(batch);
  EXPECT_EQ(batch.entry(0).frames_done, 2u);
  EXPECT_EQ(batch.entry(0).long_reply, &admin_.long_reply);
  EXPECT_EQ(batch.reply(0), "END\r\n");
  EXPECT_EQ(batch.entry(1).long_reply, nullptr);
  EXPECT_EQ(batch.reply(1), "END\r\n");
}

TEST_P(EngineSuite, KeysAreShownOnlyOnRequest) {
  say("set a 0 0 1\r\nx\r\n");
  EXPECT_TRUE(admin_.seen.empty());
  admin_.wants_keys_now = true;
  say("get a b\r\n");
  EXPECT_EQ(admin_.seen, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(admin_.hits, 1);
}

TEST_P(EngineSuite, SeveralBatchesAreUnderWay) {
  const uint32_t count = engine_->batches();
  std::vector<TestBatch> batches(count);
  std::set<Batch*> under_way;
  for (int round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < count; ++i) {
      batches[i] = {};
      const std::string key = "k" + std::to_string(i);
      for (int entry = 0; entry < 20; ++entry) batches[i].add("get " + key + "\r\n");
      batches[i].add(set(key, key) + "get " + key + "\r\n");
      Batch* const built = batches[i].build(inputs_[i]);
      engine_->submit(built);
      under_way.insert(built);
    }
    while (!under_way.empty()) {
      Batch* const done = wait();
      ASSERT_EQ(under_way.erase(done), 1u) << "null, or no batch of these";
    }
    EXPECT_EQ(engine_->poll(), nullptr);
    for (uint32_t i = 0; i < count; ++i) {
      const std::string key = "k" + std::to_string(i);
      EXPECT_EQ(batches[i].reply(20), "STORED\r\n" + value_reply(key, key));
      for (uint32_t entry = 0; entry < 20 && round > 0; ++entry)
        EXPECT_EQ(batches[i].reply(entry), value_reply(key, key));
    }
  }
}

TEST_P(EngineSuite, WhatABatchDoesNotReachRunsInLaterOnes) {
  const std::string value = pattern(1, 10'000);
  constexpr uint32_t kGets = 1000;
  say(set("a", value));
  std::string replies;
  uint32_t done = 0;
  uint32_t batches = 0;
  while (done < kGets) {
    ASSERT_LT(batches++, kGets);
    TestBatch batch;
    batch.add(times(kGets - done, "get a\r\n"));
    batch.add("get a\r\n");
    run(batch);
    EXPECT_EQ(batch.entry(1).frames_done, 1u);
    EXPECT_EQ(batch.reply(1), value_reply("a", value));
    replies += batch.reply(0);
    done += batch.entry(0).frames_done;
    release(batch);
  }
  EXPECT_TRUE(replies == times(kGets, value_reply("a", value)));
  EXPECT_EQ(rig_->store().stats().pinned_segments, 0u);
}

TEST_P(EngineSuite, ADatagramIsAnsweredWholeOrWithAnError) {
  const std::string value = pattern(2, 4096);
  say(set("a", value));
  TestBatch batch;
  batch.add("get" + times(10'000, " a") + "\r\n", true);
  batch.add("get a\r\n");
  run(batch);
  EXPECT_EQ(batch.entry(0).frames_done, 10'000u);
  EXPECT_EQ(batch.reply(0), kDatagramTooLarge);
  // A stream has its reply when there is space again.
  const bool later = batch.entry(1).frames_done == 0;
  EXPECT_EQ(later ? say("get a\r\n") : batch.reply(1), value_reply("a", value));
}

TEST_P(EngineSuite, SetsGoOnWhenTheStoreIsFull) {
  const std::string value = pattern(3, 30'000);
  const uint32_t sets = testing_effort(2700u, 4000u);  // 81 or 120 MB, into 64 MiB
  constexpr uint32_t kAtOnce = 30;
  for (uint32_t i = 0; i < sets; i += kAtOnce) {
    std::string text;
    for (uint32_t j = i; j < i + kAtOnce; ++j) text += set("k" + std::to_string(j), value);
    ASSERT_EQ(say(text), times(kAtOnce, "STORED\r\n"));
    rig_->maintain();
  }
  const std::string last = "k" + std::to_string(sets - 1);
  EXPECT_EQ(say("get " + last + "\r\n"), value_reply(last, value));
  EXPECT_GT(rig_->store().stats().get(store::StoreCounter::kEvicted), 0u);
}

// --- Bodies that are received into reservations

TEST_P(EngineSuite, ReservedBodiesBecomeItems) {
  for (const uint32_t size : {1u, 20'000u, 65'536u, 131'072u, 300'000u, 1'000'000u}) {
    const std::string body = pattern(size, size);
    uint32_t id = 0;
    ASSERT_EQ(engine_->reserve(1, size, &id), Status::kOk);
    EXPECT_NE(id, 0u);
    EXPECT_NE(reserved(), 0u);
    receive(id, body, 0, size);
    EXPECT_EQ(say("get a\r\n"), "END\r\n") << "it shows before it is stored";
    EXPECT_EQ(store_body(id, "a", size), "STORED\r\n");
    EXPECT_TRUE(say("get a\r\n") == value_reply("a", body)) << size;
    EXPECT_EQ(reserved(), 0u);
    say("delete a\r\n");
  }
}

// Clients send at their own pace, and cut anywhere.
TEST_P(EngineSuite, BodiesArriveTogetherInPieces) {
  constexpr uint32_t kBodies = 10;
  constexpr uint32_t kSize = 500'000;
  std::vector<uint32_t> ids(kBodies);
  std::vector<std::string> bodies;
  for (uint32_t i = 0; i < kBodies; ++i) {
    ASSERT_EQ(engine_->reserve(2, kSize, &ids[i]), Status::kOk);
    bodies.push_back(pattern(i, kSize));
  }
  EXPECT_EQ(std::set<uint32_t>(ids.begin(), ids.end()).size(), kBodies);
  uint32_t from = 0;
  for (uint32_t step = 1; from < kSize; step = step * 3 + 1) {
    const uint32_t to = std::min(kSize, from + step);
    for (uint32_t i = 0; i < kBodies; ++i) receive(ids[i], bodies[i], from, to);
    from = to;
  }
  for (uint32_t i = 0; i < kBodies; ++i) {
    const std::string key = "k" + std::to_string(i);
    EXPECT_EQ(store_body(ids[i], key, kSize), "STORED\r\n");
    EXPECT_TRUE(say("get " + key + "\r\n") == value_reply(key, bodies[i]));
  }
  EXPECT_EQ(reserved(), 0u);
}

// All space for bodies is in use, and each of them goes on.
TEST_P(EngineSuite, AsManyBodiesArriveAsThereMayBe) {
  constexpr uint32_t kSize = 100'000;
  std::vector<uint32_t> ids;
  uint32_t id = 0;
  while (engine_->reserve(4, kSize, &id) == Status::kOk) {
    ids.push_back(id);
    ASSERT_LT(ids.size(), 1000u);
  }
  EXPECT_GT(ids.size(), 100u);
  for (const uint32_t end : {30'000u, 70'000u, kSize}) {
    const uint32_t begin = end == 30'000u ? 0 : end == 70'000u ? 30'000u : 70'000u;
    for (uint32_t i = 0; i < ids.size(); ++i) receive(ids[i], pattern(i, kSize), begin, end);
  }
  for (uint32_t i = 0; i < ids.size(); ++i) {
    const std::string key = "k" + std::to_string(100 + i);
    EXPECT_EQ(store_body(ids[i], key, kSize), "STORED\r\n");
    EXPECT_TRUE(say("get " + key + "\r\n") == value_reply(key, pattern(i, kSize))) << key;
  }
  EXPECT_EQ(reserved(), 0u);
}

// As a transport does that fetches a body of known size into all its places.
TEST_P(EngineSuite, ABodyIsWrittenAhead) {
  constexpr uint32_t kSize = 700'000;
  const std::string body = pattern(5, kSize);
  uint32_t id = 0;
  ASSERT_EQ(engine_->reserve(1, kSize, &id), Status::kOk);
  for (uint32_t received = 0; received < kSize;) {
    uint32_t after = 0;
    while (received + after < kSize) {
      const MutableBytes window = engine_->reservation_window(id, received, after);
      if (window.empty()) break;
      std::copy_n(body.data() + received + after, window.size,
                  reinterpret_cast<char*>(window.data));
      after += static_cast<uint32_t>(window.size);
    }
    ASSERT_GT(after, 0u);
    // Only a part of it has come in time.
    received += std::min(after, 100'000u);
  }
  EXPECT_EQ(store_body(id, "a", kSize), "STORED\r\n");
  EXPECT_TRUE(say("get a\r\n") == value_reply("a", body));
}

// As a transport does that reaches a device's memory: by turns straight there and by windows, in
// pieces that begin anywhere.
TEST_P(EngineSuite, ABodyComesStraightToTheDevice) {
  uint32_t straight = 0;
  for (const uint32_t size : {100'000u, 300'000u, 700'000u}) {
    for (const uint32_t step : {size, 65'536u, 50'001u}) {
      const std::string body = pattern(size + step, size);
      uint32_t id = 0;
      ASSERT_EQ(engine_->reserve(1, size, &id), Status::kOk);
      for (uint32_t from = 0; from < size; from += step) {
        const uint32_t count = std::min(step, size - from);
        const MutableBytes window = engine_->device_window(id, from, count);
        // The last of three has to fall back.
        if (window.empty() || from / step % 3 == 2) {
          receive(id, body, from, from + count);
          continue;
        }
        ASSERT_EQ(window.size, count);
        const auto* const bytes = reinterpret_cast<const uint8_t*>(body.data()) + from;
        ASSERT_TRUE(rig_->write_device(window, bytes));
        engine_->device_bytes_came(id, from, count);
        ++straight;
      }
      EXPECT_EQ(store_body(id, "a", size), "STORED\r\n");
      EXPECT_TRUE(say("get a\r\n") == value_reply("a", body)) << size << " by " << step;
      EXPECT_EQ(reserved(), 0u);
    }
  }
  if (GetParam() == RigKind::kCpu) {
    EXPECT_EQ(straight, 0u);
  }
  if (GetParam() == RigKind::kCudaLaunch || GetParam() == RigKind::kCudaPersistent) {
    EXPECT_GT(straight, 0u);
  }
}

// A window that nothing has come to changes nothing, and a body may be dropped after some has.
TEST_P(EngineSuite, AnUnusedWindowOfTheDeviceChangesNothing) {
  constexpr uint32_t kSize = 200'000;
  const std::string body = pattern(8, kSize);
  uint32_t id = 0;
  ASSERT_EQ(engine_->reserve(1, kSize, &id), Status::kOk);
  receive(id, body, 0, 30'000);
  (void)engine_->device_window(id, 30'000, kSize - 30'000);
  receive(id, body, 30'000, 100'000);
  (void)engine_->device_window(id, 100'000, 1);
  receive(id, body, 100'000, kSize);
  EXPECT_EQ(store_body(id, "a", kSize), "STORED\r\n");
  EXPECT_TRUE(say("get a\r\n") == value_reply("a", body));
  ASSERT_EQ(engine_->reserve(1, kSize, &id), Status::kOk);
  receive(id, body, 0, 30'000);
  if (!engine_->device_window(id, 30'000, 50'000).empty()) {
    engine_->device_bytes_came(id, 30'000, 50'000);
  }
  engine_->abandon(id);
  EXPECT_EQ(reserved(), 0u);
}

TEST_P(EngineSuite, ABodyWhoseRequestFailsGivesItsMemoryBack) {
  const std::string body = pattern(6, 200'000);
  say(set("a", "old"));
  for (const char* const command : {"add", "replace", "append"}) {
    uint32_t id = 0;
    ASSERT_EQ(engine_->reserve(1, 200'000, &id), Status::kOk);
    receive(id, body, 0, 200'000);
    const std::string key = command == std::string("replace") ? "b" : "a";
    EXPECT_EQ(store_body(id, key, 200'000, command),
              command == std::string("append") ? "STORED\r\n" : "NOT_STORED\r\n");
    EXPECT_EQ(reserved(), 0u) << command;
  }
  EXPECT_TRUE(say("get a\r\n") == value_reply("a", "old" + body));
}

// Half bodies hold a bounded share of the store. The next one waits, and others can store.
TEST_P(EngineSuite, HalfBodiesTakeABoundedShare) {
  constexpr uint32_t kSize = 300'000;
  const std::string body = pattern(7, kSize);
  for (int round = 0; round < 2; ++round) {
    std::vector<uint32_t> ids;
    uint32_t id = 0;
    Status status = Status::kOk;
    while ((status = engine_->reserve(1, kSize, &id)) == Status::kOk) {
      receive(id, body, 0, kSize / 2);
      ids.push_back(id);
      ASSERT_LT(ids.size() * kSize, uint64_t{32} << 20);
    }
    EXPECT_EQ(status, Status::kDeferred);
    EXPECT_GT(ids.size(), 10u);
    EXPECT_EQ(say(set("b", "x") + "get b\r\n"), "STORED\r\n" + value_reply("b", "x"));
    // When one ends, the next one begins.
    engine_->abandon(ids.back());
    ids.pop_back();
    ASSERT_EQ(engine_->reserve(1, kSize, &id), Status::kOk);
    receive(id, body, 0, kSize);
    EXPECT_EQ(store_body(id, "a", kSize), "STORED\r\n");
    EXPECT_TRUE(say("get a\r\n") == value_reply("a", body));
    for (const uint32_t half : ids) engine_->abandon(half);
    EXPECT_EQ(reserved(), 0u);
  }
}

TEST_P(EngineSuite, ABodyThatNeverFitsIsTooLarge) {
  uint32_t id = 0;
  EXPECT_EQ(engine_->reserve(1, 63 << 20, &id), Status::kTooLarge);
  EXPECT_EQ(reserved(), 0u);
}

TEST_P(EngineSuite, FlushedPrefixIsAMissForEveryCommand) {
  for (uint32_t i = 0; i < 10; ++i) say(set("a:" + std::to_string(i), "1"));
  for (const char* const key : {"b:1", "a", "aa:1"}) say(set(key, "1"));
  const std::string large = pattern(1, 300'000);
  say(set("b:large", large));
  ASSERT_EQ(rig_->store().flush_prefix(bytes_of(std::string("a:"))), Status::kOk);
  EXPECT_EQ(say("get a:1\r\n"), "END\r\n");
  EXPECT_EQ(say("gets a:1 a:2 a:3\r\n"), "END\r\n");
  EXPECT_EQ(say("get a:1 b:1\r\n"), value_reply("b:1", "1"));
  EXPECT_EQ(say("get a\r\n"), value_reply("a", "1"));
  EXPECT_EQ(say("gat 100 aa:1\r\n"), value_reply("aa:1", "1"));
  EXPECT_EQ(say("get b:large\r\n"), value_reply("b:large", large));
  EXPECT_EQ(say("gat 100 a:1\r\n"), "END\r\n");
  EXPECT_EQ(say("mg a:1 v\r\n"), "EN\r\n");
  EXPECT_EQ(say("md a:1\r\n"), "NF\r\n");
  EXPECT_EQ(say("ma a:1\r\n"), "NF\r\n");
  EXPECT_EQ(say("touch a:1 5\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(say("delete a:1\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(say("incr a:2 1\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(say("cas a:3 0 0 1 1\r\nx\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(say("replace a:4 0 0 1\r\nx\r\n"), "NOT_STORED\r\n");
  EXPECT_EQ(say("append a:5 0 0 1\r\nx\r\n"), "NOT_STORED\r\n");
  EXPECT_EQ(say("prepend a:5 0 0 1\r\nx\r\n"), "NOT_STORED\r\n");
  EXPECT_EQ(say("add a:6 0 0 1\r\nx\r\n"), "STORED\r\n");
  EXPECT_EQ(say("mg a:7 N30 v\r\n"), "VA 0 W\r\n\r\n");
  EXPECT_EQ(say("ma a:8 N0 J5 v\r\n"), "VA 1\r\n5\r\n");
  EXPECT_EQ(say(set("a:9", "2")), "STORED\r\n");
  EXPECT_EQ(say("get a:6\r\n"), value_reply("a:6", "x"));
  EXPECT_EQ(say("get a:9\r\n"), value_reply("a:9", "2"));
  uint64_t walked = 0;
  for (uint64_t cursor = 0; cursor != store::StoreOwner::kWalkEnd;) {
    rig_->rest();
    ASSERT_EQ(rig_->store().walk(cursor, [&](const store::WalkedItem&) { ++walked; }), Status::kOk);
  }
  EXPECT_EQ(walked, 8u);  // b:1, a, aa:1, b:large and a:6 to a:9
  store::Item header;
  EXPECT_FALSE(rig_->store().inspect(bytes_of(std::string("a:1")), &header));
}

INSTANTIATE_TEST_SUITE_P(Engines, EngineSuite, kAllEngines, name_of);

}  // namespace
}  // namespace warpcache::engine
