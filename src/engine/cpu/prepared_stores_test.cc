// SPDX-License-Identifier: Apache-2.0
//
// Groups of requests against the same requests one by one: sets whose items get space together, and
// what else is run in one step.
#include "engine/cpu/prepared_stores.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/testing/effort.h"
#include "engine/cpu/cpu_engine.h"
#include "engine/testing/fake_admin.h"
#include "engine/testing/test_batch.h"
#include "store/testing/store_fixture.h"

namespace warpcache::engine {
namespace {

// An engine with a store of its own.
class Served {
 public:
  explicit Served(uint64_t memory_bytes)
      : store_(store::make_store(store::quiet_config(memory_bytes))),
        engine_(std::make_unique<CpuEngine>(CpuEngineConfig{}, *store_, admin_)) {}

  // One connection says all of `commands`, each of which is one frame, in as few batches as the
  // replies allow.
  std::string say_together(const std::vector<std::string>& commands) {
    std::string replies;
    for (size_t done = 0; done < commands.size();) {
      std::string rest;
      for (size_t i = done; i < commands.size(); ++i) rest += commands[i];
      TestBatch batch;
      batch.add(rest);
      run(batch);
      replies += reply(batch, 0);
      if (batch.entry(0).frames_done == 0) break;
      done += batch.entry(0).frames_done;
    }
    return replies;
  }
  std::string say_each(const std::vector<std::string>& commands) {
    std::string replies;
    for (const std::string& command : commands) replies += say(command);
    return replies;
  }

  std::string say(const std::string& text) {
    TestBatch batch;
    batch.add(text);
    run(batch);
    return reply(batch, 0);
  }
  void run(TestBatch& batch) {
    Batch* const submitted = batch.build();
    engine_->submit(submitted);
    ASSERT_EQ(engine_->poll(), submitted);
  }
  std::string reply(const TestBatch& batch, uint32_t entry) {
    std::string text = batch.reply(entry);
    for (const uint32_t pin : batch.pins()) engine_->release(pin);
    return text;
  }

  FakeAdmin& admin() { return admin_; }
  const store::Store& store() const { return *store_; }
  uint64_t count(request::Counter counter) const { return engine_->counters().read(counter); }
  uint64_t count(store::StoreCounter counter) const { return store_->stats().get(counter); }

 private:
  FakeAdmin admin_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<CpuEngine> engine_;
};

std::string with_body(const std::string& line, const std::string& body) {
  return line + "\r\n" + body + "\r\n";
}

std::string set(const std::string& key, const std::string& value) {
  return with_body("set " + key + " 0 0 " + std::to_string(value.size()), value);
}

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  uint32_t below(uint32_t end) { return static_cast<uint32_t>(engine_() % end); }
  std::string one_of(const std::vector<std::string>& texts) {
    return texts[below(static_cast<uint32_t>(texts.size()))];
  }
  std::string value() {
    const uint32_t sizes[] = {0, 1, 100, 300, kPreparedValueMax, kPreparedValueMax + 1};
    const bool large = below(200) == 0;
    std::string text(large ? 150'000 : sizes[below(6)], static_cast<char>('a' + below(26)));
    return text;
  }

  std::string command() {
    const std::string key = "k" + std::to_string(below(9));
    const std::string body = value();
    const std::string size = std::to_string(body.size());
    switch (below(12)) {
      case 0:
        return "get " + key + "\r\n";
      case 1:
        return "gets " + key + "\r\n";
      case 2:
        return "mg " + key + one_of({" v", " v q", " v c t s", " v R30", "", " v b"}) + "\r\n";
      case 3:
        return one_of({"delete " + key, "mn", "touch " + key + " 3", "incr " + key + " 3",
                       "md " + key + " I", "mg n" + key + " v", "mg n" + key + " v q"}) +
               "\r\n";
      case 4:
        return with_body(one_of({"add ", "append ", "replace "}) + key + " 5 0 " + size, body);
      case 5:
        return with_body("cas " + key + " 5 0 " + size + " 7", body);
      case 6:
        return with_body("ms " + key + " " + size, body);
      case 7:
        return with_body("ms " + key + " " + size + one_of({" c", " q", " k Oab", " T-1", " E9 c"}),
                         body);
      default:
        return with_body("set " + key + " " + one_of({"0 ", "7 "}) +
                             one_of({"0 ", "0 ", "100 ", "-1 ", "2592001 "}) + size +
                             one_of({"", "", " noreply"}),
                         body);
    }
  }

 private:
  std::mt19937 engine_;
};

void expect_same(const Served& together, const Served& each) {
  for (uint32_t i = 0; i < static_cast<uint32_t>(request::Counter::kCount); ++i) {
    const auto counter = static_cast<request::Counter>(i);
    EXPECT_EQ(together.count(counter), each.count(counter)) << i;
  }
  for (const auto counter : {store::StoreCounter::kTotalItems, store::StoreCounter::kItems,
                             store::StoreCounter::kBytes, store::StoreCounter::kReclaimed}) {
    EXPECT_EQ(together.count(counter), each.count(counter));
  }
  store::check_accounts(together.store());
  store::check_accounts(each.store());
}

TEST(PreparedStores, AGroupIsAnsweredAsItsRequestsAlone) {
  Random random(1);
  Served together(uint64_t{512} << 20);
  Served each(uint64_t{512} << 20);
  const int rounds = thread_sanitizer_by_day() ? 40 : 400;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::string> commands(1 + random.below(70));
    for (std::string& command : commands) command = random.command();
    ASSERT_TRUE(together.say_together(commands) == each.say_each(commands)) << round;
  }
  expect_same(together, each);
}

TEST(PreparedStores, SetsOfAKeyTakeEffectInOrder) {
  Served served(uint64_t{64} << 20);
  EXPECT_EQ(served.say(set("k", "one") + "get k\r\n" + set("k", "two") + set("k", "three") +
                       "get k\r\ndelete k\r\n" + set("k", "four") + "get k\r\n"),
            "STORED\r\nVALUE k 0 3\r\none\r\nEND\r\nSTORED\r\nSTORED\r\nVALUE k 0 5\r\nthree\r\n"
            "END\r\nDELETED\r\nSTORED\r\nVALUE k 0 4\r\nfour\r\nEND\r\n");
  store::check_accounts(served.store());
}

// Sets of a group that another request of it makes wait for memory lose their space, and get other.
TEST(PreparedStores, WhereMemoryIsShortNothingIsLost) {
  Random random(2);
  Served served(uint64_t{64} << 20);
  const int rounds = thread_sanitizer_by_day() ? 150 : 600;
  for (int round = 0; round < rounds; ++round) {
    const std::string value(1 + random.below(kPreparedValueMax), 'v');
    std::string text;
    std::string expected;
    for (uint32_t i = 0; i < 40; ++i) {
      const bool large = random.below(20) == 0;
      const std::string key = "k" + std::to_string(random.below(30'000));
      text += set(key, large ? std::string(400'000, 'w') : value);
      expected += "STORED\r\n";
    }
    ASSERT_EQ(served.say(text), expected);
  }
  EXPECT_GT(served.count(store::StoreCounter::kEvicted), 0u);
  store::check_accounts(served.store());
}

// A group ends with its administrative command, which may have to wait for another batch.
TEST(PreparedStores, AdministrativeCommandsAmongSets) {
  Served served(uint64_t{64} << 20);
  std::string text;
  std::string expected;
  for (uint32_t i = 0; i < kEntryAdminMax; ++i) {
    const std::string key = "k" + std::to_string(i);
    text += set(key, key) + set(key, "x") + "verbosity 1\r\nget " + key + "\r\n";
    expected += "STORED\r\nSTORED\r\nADMIN\r\nVALUE " + key + " 0 1\r\nx\r\nEND\r\n";
  }
  EXPECT_EQ(served.say(text), expected);
  store::check_accounts(served.store());
}

// Those of a connection that has not logged in are words, not values.
TEST(PreparedStores, NothingIsPreparedBeforeTheLogin) {
  Served served(uint64_t{64} << 20);
  TestBatch batch;
  batch.add("get a\r\n" + set("login", "secret") + set("k", "value") + "get k\r\n");
  batch.add(set("other", "1"));
  batch.entry(0).authenticated = false;
  served.run(batch);
  EXPECT_EQ(served.reply(batch, 0),
            "CLIENT_ERROR unauthenticated\r\nSTORED\r\nSTORED\r\nVALUE k 0 5\r\nvalue\r\nEND\r\n");
  EXPECT_EQ(batch.reply(1), "STORED\r\n");
  EXPECT_EQ(served.count(store::StoreCounter::kItems), 2u);
  store::check_accounts(served.store());
}

// Who watches keys is shown every set.
TEST(PreparedStores, WatchedSetsAreShown) {
  Served served(uint64_t{64} << 20);
  served.admin().wants_keys_now = true;
  EXPECT_EQ(served.say(set("a", "1") + set("b", "2") + set("a", "3")),
            "STORED\r\nSTORED\r\nSTORED\r\n");
  EXPECT_EQ(served.admin().seen, (std::vector<std::string>{"a", "b", "a"}));
}

}  // namespace
}  // namespace warpcache::engine
