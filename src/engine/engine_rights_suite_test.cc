// SPDX-License-Identifier: Apache-2.0
//
// Every engine with requests of users who may not do everything (testing/engine_suite.h).
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/rights.h"
#include "engine/testing/engine_suite.h"

namespace warpcache::engine {
namespace {

constexpr char kDenied[] = "CLIENT_ERROR access denied\r\n";

// Everything on keys that begin with "own".
class OwnKeys final : public Rights {
 public:
  bool allows(const protocol::Request&, Bytes key) const override { return allows_flush(key); }
  bool allows_flush(Bytes prefix) const override {
    return std::string(reinterpret_cast<const char*>(prefix.data), prefix.size).starts_with("own");
  }
  bool allows_administration() const override { return false; }
};

class RightsSuite : public EngineSuite {
 protected:
  void SetUp() override {
    EngineSuite::SetUp();
    admin_.rights = std::make_shared<OwnKeys>();
  }

  // The replies to a user who may not do everything.
  std::string say_as_user(const std::string& text) {
    std::string replies;
    TestBatch batch;
    batch.add(text);
    batch.entry(0).user = 1;
    run(batch);
    EXPECT_EQ(batch.entry(0).frames_done, batch.entry(0).frame_count);
    replies = batch.reply(0);
    release(batch);
    return replies;
  }
};

TEST_P(RightsSuite, WhatIsRefusedKeepsItsPlace) {
  say(set("other", "x"));
  EXPECT_EQ(say_as_user(set("other", "y") + set("own", "1") + "delete other\r\nget own\r\n" +
                        "incr other 1\r\nincr own 1\r\ntouch other 5\r\n"),
            kDenied + std::string("STORED\r\n") + kDenied + value_reply("own", "1") + kDenied +
                "2\r\n" + kDenied);
  EXPECT_EQ(admin_.refused, 4u);
  EXPECT_EQ(say("get other\r\n"), value_reply("other", "x"));
}

TEST_P(RightsSuite, WhatMayNotBeReadIsAMiss) {
  say(set("other", "x") + set("own", "1"));
  EXPECT_EQ(say_as_user("get other own other\r\nget own other\r\nget other\r\nmg other v\r\n"
                        "mg own v\r\n"),
            value_reply("own", "1") + value_reply("own", "1") + "END\r\nEN\r\nVA 1\r\n1\r\n");
}

TEST_P(RightsSuite, AllIsRefused) {
  EXPECT_EQ(say_as_user(times(300, "delete other\r\n")), times(300, kDenied));
  EXPECT_EQ(say_as_user("delete other noreply\r\n"), "");
  EXPECT_EQ(admin_.refused, 301u);
}

// The key is decoded in place where it runs, and only once.
TEST_P(RightsSuite, ABase64KeyIsReadFirst) {
  const std::string own = "b3du";        // "own"
  const std::string other = "b3RoZXI=";  // "other"
  say(set("other", "x") + set("own", "1"));
  EXPECT_EQ(say_as_user(times(100, "mg " + own + " b v k\r\nmg " + other + " b v k\r\nms " + other +
                                       " 1 b\r\ny\r\n")),
            times(100, "VA 1 kown\r\n1\r\nEN k" + other + " b\r\n" + kDenied));
  EXPECT_EQ(say("get other\r\n"), value_reply("other", "x"));
}

TEST_P(RightsSuite, AdministrationIsRefusedWithoutItsBounds) {
  EXPECT_EQ(say_as_user(times(50, "verbosity 1\r\nget own\r\n")),
            times(50, kDenied + std::string("END\r\n")));
  EXPECT_EQ(say_as_user("version\r\nmn\r\n").substr(0, 8), "VERSION ");
  EXPECT_EQ(say_as_user("flush_prefix a\r\n"), "ADMIN\r\n");  // the AdminHandler judges it
}

TEST_P(RightsSuite, TheyHoldFromTheLoginOn) {
  admin_.login_user = 1;
  TestBatch batch;
  batch.add("get own\r\n" + set("login", "a b") + set("other", "y") + set("own", "1"));
  batch.add(set("other", "x"));
  batch.entry(0).authenticated = false;
  run(batch);
  EXPECT_EQ(batch.reply(0),
            "CLIENT_ERROR unauthenticated\r\nSTORED\r\n" + std::string(kDenied) + "STORED\r\n");
  EXPECT_EQ(batch.entry(0).user, 1u);
  EXPECT_EQ(batch.reply(1), "STORED\r\n");
  EXPECT_EQ(say("get other\r\n"), value_reply("other", "x"));
}

// Refused requests between those for which the reply space does not suffice.
TEST_P(RightsSuite, WhatABatchDoesNotReachIsAskedAgain) {
  const std::string value = pattern(1, 10'000);
  constexpr uint32_t kPairs = 300;
  say(set("own", value));
  const std::string pair = "get own\r\ndelete other\r\n";
  std::string replies;
  uint32_t done = 0;
  uint32_t batches = 0;
  while (done < 2 * kPairs) {
    ASSERT_LT(batches++, 2 * kPairs);
    TestBatch batch;
    const std::string rest = done % 2 == 0 ? "" : "delete other\r\n";
    batch.add(rest + times(kPairs - (done + 1) / 2, pair));
    batch.entry(0).user = 1;
    run(batch);
    replies += batch.reply(0);
    done += batch.entry(0).frames_done;
    release(batch);
  }
  EXPECT_TRUE(replies == times(kPairs, value_reply("own", value) + kDenied));
  EXPECT_EQ(admin_.refused, kPairs);
}

TEST_P(RightsSuite, ARefusedBodyGivesItsMemoryBack) {
  const std::string body = pattern(2, 200'000);
  for (const char* const key : {"other", "own"}) {
    uint32_t id = 0;
    ASSERT_EQ(engine_->reserve(3, 200'000, &id), Status::kOk);
    receive(id, body, 0, 200'000);
    TestBatch batch;
    batch.add("set " + std::string(key) + " 0 0 1\r\nx\r\nget own\r\n");
    Batch* const built = batch.build(inputs_[0]);
    built->frames[0].body_size = 200'000;
    batch.entry(0).reservation = id;
    batch.entry(0).user = 1;
    engine_->submit(built);
    ASSERT_EQ(wait(), built);
    const std::string expected = key == std::string("own") ? "STORED\r\n" + value_reply("own", body)
                                                           : kDenied + std::string("END\r\n");
    EXPECT_TRUE(batch.reply(0) == expected) << key;
    release(batch);
    EXPECT_EQ(reserved(), 0u) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, RightsSuite, kAllEngines, name_of);

}  // namespace
}  // namespace warpcache::engine
