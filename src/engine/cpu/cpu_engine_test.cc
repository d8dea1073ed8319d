// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/cpu_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/testing/fake_admin.h"
#include "engine/testing/test_batch.h"

namespace warpcache::engine {
namespace {

// What every engine does is in engine_suite_test.cc of the folder above.
class CpuEngineTest : public ::testing::Test {
 protected:
  void SetUp() override { start({}); }

  void start(store::StoreConfig config, const CpuEngineConfig& engine_config = {}) {
    engine_.reset();
    config.memory_limit = uint64_t{64} << 20;
    config.threads = 1;
    config.maintenance_thread = false;
    config.manual_clock = true;
    ASSERT_EQ(store::Store::create(config, &store_), Status::kOk);
    engine_ = std::make_unique<CpuEngine>(engine_config, *store_, admin_);
  }

  void run(TestBatch& batch) {
    Batch* submitted = batch.build();
    engine_->submit(submitted);
    ASSERT_EQ(engine_->poll(), submitted);
    ASSERT_EQ(engine_->poll(), nullptr);
  }

  std::string say(const std::string& text) {
    TestBatch batch;
    batch.add(text);
    run(batch);
    const std::string reply = batch.reply(0);
    for (uint32_t pin : batch.pins()) engine_->release(pin);
    return reply;
  }

  static std::string set(const std::string& key, const std::string& value) {
    return "set " + key + " 0 0 " + std::to_string(value.size()) + "\r\n" + value + "\r\n";
  }

  FakeAdmin admin_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<CpuEngine> engine_;
};

TEST_F(CpuEngineTest, LargeValuesAreSentFromWhereTheyLie) {
  const std::string value(kInlineValueMax + 1, 'v');
  const std::string chained(200 * 1000, 'w');
  say(set("a", value) + set("b", chained));
  TestBatch batch;
  batch.add("get a b\r\n");
  run(batch);
  EXPECT_EQ(batch.reply(0), "VALUE a 0 " + std::to_string(value.size()) + "\r\n" + value +
                                "\r\nVALUE b 0 200000\r\n" + chained + "\r\nEND\r\n");
  ASSERT_EQ(batch.pins().size(), 2u);
  say("delete a\r\ndelete b\r\n");
  EXPECT_NE(store_->stats().pinned_segments, 0u);
  for (uint32_t pin : batch.pins()) engine_->release(pin);
  EXPECT_EQ(store_->stats().pinned_segments, 0u);
}

// A plain mg is run and answered in one step; with u it takes the way of all commands.
TEST_F(CpuEngineTest, PlainMetaGetsAreAnsweredAsAllOthers) {
  say(set("plain", "five!") + "set timed 7 50 2\r\nab\r\nms YmluYXJ5 b F3 3\r\nabc\r\n");
  say(set("long", std::string(kCopiedValueMax + 1, 'v')) + set("stale", "x") + set("empty", ""));
  say("md stale I T30\r\nmg stale v\r\n");  // its token is with this client
  const std::vector<std::string> keys = {"plain", "timed", "binary", "long",
                                         "stale", "empty", "missing"};
  const std::vector<std::string> words = {"v", "q", "f", "t",  "c",     "k", "s",
                                          "h", "l", "O", "O1", "Oabcd", "x", "f1"};
  const auto expect_same = [&](const std::string& key, const std::string& flags) {
    const std::string other = say("mg " + key + " u" + flags + "\r\nmn\r\n");
    EXPECT_EQ(say("mg " + key + flags + "\r\nmn\r\n"), other) << key << flags;
  };
  for (const std::string& key : keys) {
    say("mg " + key + " v\r\n");  // for h
    expect_same(key, "");
    for (const std::string& a : words) {
      expect_same(key, " " + a);
      for (const std::string& b : words) expect_same(key, " " + a + " " + b);
    }
    expect_same(key, " s v t f c k h l O123456789");
  }
}

TEST_F(CpuEngineTest, APlainMetaGetShowsTheAccessBeforeIt) {
  say(set("k", "v"));
  EXPECT_EQ(say("mg k h\r\nmg k h v\r\n"), "HD h0\r\nVA 1 h1\r\nv\r\n");
}

std::string large_value() { return std::string(1000 * 1000, 'v'); }

TEST_F(CpuEngineTest, ValuesThatFitTheReplyAreCopiedWhereMuchIsPinned) {
  constexpr int kValues = 1500;
  const std::string value(10'000, 'v');
  for (int i = 0; i < kValues; ++i) say(set("k" + std::to_string(i), value));
  std::vector<uint32_t> pins;
  for (int i = 0; i < kValues; ++i) {
    const std::string key = "k" + std::to_string(i);
    TestBatch batch;
    batch.add("get " + key + "\r\n");
    run(batch);
    ASSERT_EQ(batch.reply(0), "VALUE " + key + " 0 10000\r\n" + value + "\r\nEND\r\n");
    for (uint32_t pin : batch.pins()) pins.push_back(pin);
  }
  EXPECT_GT(pins.size(), 500u);  // the bound is an eighth of 64 MB
  EXPECT_LT(pins.size(), 1000u);
  say(set("large", large_value()));
  EXPECT_NE(say("get large\r\n"), "END\r\n");
  for (uint32_t pin : pins) engine_->release(pin);
  EXPECT_EQ(store_->stats().pinned_segments, 0u);
}

// A command with a decoded base64 key cannot wait, since it would be decoded again.
TEST_F(CpuEngineTest, NoDecodedKeyWaits) {
  TestBatch batch;
  std::string text;
  for (uint32_t i = 0; i < kEntryAdminMax + 2; ++i) text += "me YWJj b\r\n";
  batch.add(text);
  run(batch);
  EXPECT_EQ(batch.entry(0).frames_done, kEntryAdminMax + 2);
}

// Thirty values of a megabyte or more; with 64 MB about half of them can be pinned at the same
// time.
constexpr int kLargeValues = 30;

// Too long to be copied when no pin is available.
std::string longest_value() { return std::string(1200 * 1000, 'w'); }

CpuEngineConfig config_for_longest() {
  CpuEngineConfig config;
  config.item_size_max = 2 << 20;
  return config;
}

std::string large_get(int first = 0) {
  std::string gets = "get";
  for (int i = first; i < kLargeValues; ++i) gets += " k" + std::to_string(i);
  return gets + "\r\n";
}

// The first of the values that a client that asks for all does surely not pin.
constexpr int kUnpinned = 20;

// Pins of a client that does not read do not make the values of others miss.
TEST_F(CpuEngineTest, LargeValuesAreCopiedWhereNoPinIsToBeHad) {
  CpuEngineConfig config;
  config.pin_wait_ms_max = 0;
  start({}, config);
  for (int i = 0; i < kLargeValues; ++i) say(set("k" + std::to_string(i), large_value()));
  say(set("touched", large_value()));
  TestBatch stalled;
  stalled.add(large_get());
  run(stalled);
  ASSERT_GT(stalled.pins().size(), 10u);
  ASSERT_LE(stalled.pins().size(), static_cast<size_t>(kUnpinned));
  const std::string body = " 0 1000000\r\n" + large_value() + "\r\nEND\r\n";
  for (int i = kUnpinned; i < kLargeValues; ++i) {
    const std::string key = "k" + std::to_string(i);
    TestBatch batch;
    batch.add("get " + key + "\r\n");
    run(batch);
    ASSERT_EQ(batch.reply(0), "VALUE " + key + body);
    ASSERT_TRUE(batch.pins().empty());
  }
  EXPECT_EQ(say("gat 10 touched\r\n"), "VALUE touched" + body);
  EXPECT_EQ(say("mg touched t\r\n"), "HD t10\r\n");
  EXPECT_EQ(say("mg dG91Y2hlZA== b v\r\n"), "VA 1000000\r\n" + large_value() + "\r\n");
  EXPECT_EQ(engine_->counters().read(request::Counter::kLargeMissed), 0u);
  for (uint32_t pin : stalled.pins()) engine_->release(pin);
  EXPECT_EQ(store_->stats().pinned_segments, 0u);
}

// One batch copies a bounded number of bytes; the rest comes in later batches, after other streams.
TEST_F(CpuEngineTest, CopiesForWantOfPinsAreBoundedInABatch) {
  for (int i = 0; i < kLargeValues; ++i) say(set("k" + std::to_string(i), large_value()));
  TestBatch stalled;
  stalled.add(large_get());
  run(stalled);
  ASSERT_LE(stalled.pins().size(), static_cast<size_t>(kUnpinned));
  TestBatch first;
  first.add(large_get(kUnpinned));
  first.add(large_get(kUnpinned));
  run(first);
  EXPECT_EQ(first.entry(0).frames_done, kBatchHeapBytesMax / 1000000 + 1);
  EXPECT_EQ(first.entry(1).frames_done, 0u);
  EXPECT_TRUE(first.stream_not_reached());
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < 2; ++i) bytes += first.reply(i).size();
  EXPECT_LT(bytes, uint64_t{kBatchHeapBytesMax} + kHeapValueMax + kReplyFrameMax);
  TestBatch second;
  second.add(large_get(kUnpinned));
  run(second);
  EXPECT_EQ(second.entry(0).frames_done, first.entry(0).frames_done);
  for (uint32_t pin : stalled.pins()) engine_->release(pin);
}

TEST_F(CpuEngineTest, LongestValuesWaitUntilOthersHaveBeenSent) {
  start({}, config_for_longest());
  for (int i = 0; i < kLargeValues; ++i) say(set("k" + std::to_string(i), longest_value()));
  TestBatch first;
  first.add(large_get());
  run(first);
  const uint32_t done = first.entry(0).frames_done;
  EXPECT_GT(done, 10u);
  EXPECT_LT(done, 20u);
  EXPECT_EQ(first.pins().size(), done);
  TestBatch second;
  second.add("get k29\r\n");
  second.add("get small\r\n");
  run(second);
  EXPECT_EQ(second.entry(0).frames_done, 0u);
  EXPECT_EQ(second.reply(0), "");
  EXPECT_EQ(second.reply(1), "END\r\n");
  for (uint32_t pin : first.pins()) engine_->release(pin);
  EXPECT_EQ(say("get k29\r\n"), "VALUE k29 0 1200000\r\n" + longest_value() + "\r\nEND\r\n");
  EXPECT_EQ(engine_->counters().read(request::Counter::kGetHits), done + 1);
}

TEST_F(CpuEngineTest, LongestValuesAreMissedWhereWaitingDoesNotHelp) {
  CpuEngineConfig config = config_for_longest();
  config.pin_wait_ms_max = 0;
  start({}, config);
  for (int i = 0; i < kLargeValues; ++i) say(set("k" + std::to_string(i), longest_value()));
  TestBatch batch;
  batch.add(large_get());
  run(batch);
  EXPECT_GT(batch.pins().size(), 10u);
  EXPECT_LT(batch.pins().size(), 20u);
  EXPECT_EQ(batch.entry(0).frames_done, static_cast<uint32_t>(kLargeValues));
  EXPECT_TRUE(batch.reply(0).ends_with("\r\nEND\r\n"));
  EXPECT_EQ(batch.reply(0).find("ERROR"), std::string::npos);
  for (uint32_t pin : batch.pins()) engine_->release(pin);
}

// A client that gets a miss does not expect its request to have changed the item.
TEST_F(CpuEngineTest, AReadThatCannotSendItsValueChangesNothing) {
  CpuEngineConfig config = config_for_longest();
  config.pin_wait_ms_max = 0;
  start({}, config);
  for (int i = 0; i < kLargeValues; ++i) say(set("k" + std::to_string(i), longest_value()));
  say(set("touched", longest_value()) + set("stale", longest_value()) + "md stale I\r\n");
  TestBatch readers;
  readers.add(large_get());
  run(readers);
  EXPECT_EQ(say("gat 10 touched\r\n"), "END\r\n");
  EXPECT_EQ(say("mg touched v T10\r\n"), "EN\r\n");
  EXPECT_EQ(say("mg touched t\r\n"), "HD t-1\r\n");
  EXPECT_EQ(say("mg stale v\r\n"), "EN\r\n");
  for (uint32_t pin : readers.pins()) engine_->release(pin);
  EXPECT_EQ(say("mg stale\r\n"), "HD X W\r\n");
  EXPECT_EQ(say("mg touched s T10\r\n"), "HD s1200000\r\n");
  EXPECT_EQ(say("mg touched t\r\n"), "HD t10\r\n");
  EXPECT_EQ(say("gat 20 touched\r\n"),
            "VALUE touched 0 1200000\r\n" + longest_value() + "\r\nEND\r\n");
  EXPECT_EQ(say("mg touched t\r\n"), "HD t20\r\n");
  EXPECT_EQ(store_->stats().pinned_segments, 0u);
}

TEST_F(CpuEngineTest, AStreamThatHadItsShareWaitsForAnotherTurn) {
  const std::string value(10000, 'v');
  say(set("a", value));
  TestBatch batch;
  std::string gets;
  for (int i = 0; i < 200; ++i) gets += "get a\r\n";
  batch.add(gets);
  batch.add("get a\r\n");
  run(batch);
  const uint32_t done = batch.entry(0).frames_done;
  EXPECT_GT(done, 0u);
  EXPECT_LT(done, 200u);
  const std::string one = "VALUE a 0 10000\r\n" + value + "\r\nEND\r\n";
  EXPECT_EQ(batch.reply(0).size(), done * one.size());
  EXPECT_EQ(batch.entry(1).frames_done, 1u);
  EXPECT_EQ(batch.reply(1), one);
}

// A few bytes make the server copy a long value: these count, too.
TEST_F(CpuEngineTest, AStreamThatChangesLongValuesWaitsForAnotherTurn) {
  const uint32_t size = 900'000;
  say(set("long", std::string(size, 'v')));
  std::string appends;
  for (int i = 0; i < 40; ++i) appends += "append long 0 0 1\r\na\r\nprepend long 0 0 1\r\nb\r\n";
  TestBatch batch;
  batch.add(appends);
  batch.add("get a\r\n");
  run(batch);
  EXPECT_EQ(batch.entry(0).frames_done, 1u);
  EXPECT_EQ(batch.reply(0), "STORED\r\n");
  EXPECT_EQ(batch.reply(1), "END\r\n");
  EXPECT_FALSE(batch.stream_not_reached());
  say("delete long\r\n");
  say(set("number", "1" + std::string(15'000, ' ')));
  std::string incrs;
  for (int i = 0; i < 100; ++i) incrs += "incr number 1\r\n";
  TestBatch numbers;
  numbers.add(incrs);
  run(numbers);
  EXPECT_GE(numbers.entry(0).frames_done, 16u);
  EXPECT_LE(numbers.entry(0).frames_done, 20u);
  // Those that copy nothing do not count.
  EXPECT_EQ(say(appends).size(), 80 * sizeof("NOT_STORED\r\n") - 80);
}

TEST_F(CpuEngineTest, CopiesOfLongValuesAreBoundedInABatch) {
  constexpr uint32_t kStreams = 20;
  say(set("long", std::string(900'000, 'v')));
  TestBatch batch;
  for (uint32_t i = 0; i < kStreams; ++i) batch.add("append long 0 0 1\r\na\r\n");
  batch.add("get a\r\n");
  run(batch);
  for (uint32_t i = 0; i < kStreams; ++i) EXPECT_EQ(batch.entry(i).frames_done, i < 5 ? 1u : 0u);
  EXPECT_TRUE(batch.stream_not_reached());
  EXPECT_EQ(batch.reply(kStreams), "END\r\n");
}

// Once it is decoded, a base64 key cannot wait. So what follows a batch in which much was copied is
// bounded.
TEST_F(CpuEngineTest, CopiesByBase64KeysAreBoundedToo) {
  constexpr uint32_t kStreams = 20;
  const std::string change = "ms bG9uZw== 1 b MA\r\na\r\n";
  say(set("long", std::string(900'000, 'v')));
  TestBatch first;
  for (uint32_t i = 0; i < kStreams; ++i) first.add(change);
  run(first);
  TestBatch batch;
  for (uint32_t i = 0; i < kStreams; ++i) batch.add(change + change);
  batch.add("get a\r\n");
  run(batch);
  for (uint32_t i = 0; i < kStreams; ++i) EXPECT_EQ(batch.entry(i).frames_done, i < 5 ? 1u : 0u);
  EXPECT_TRUE(batch.stream_not_reached());
  EXPECT_EQ(batch.reply(0), "HD\r\n");
  EXPECT_EQ(batch.reply(kStreams), "END\r\n");
  std::string appends;
  for (int i = 0; i < 31; ++i) appends += "append long 0 0 1\r\na\r\n";
  TestBatch mixed;
  mixed.add(appends + change);
  mixed.add("get a\r\n");
  run(mixed);
  EXPECT_EQ(mixed.entry(0).frames_done, 1u);
  EXPECT_EQ(mixed.reply(1), "END\r\n");
}

TEST_F(CpuEngineTest, DatagramsMayCopyABoundedAmount) {
  say(set("long", std::string(900'000, 'v')));
  TestBatch batch;
  std::string appends;
  for (int i = 0; i < 20; ++i) appends += "append long 0 0 1\r\na\r\n";
  batch.add("append long 0 0 1\r\na\r\n", true);
  batch.add(appends + "get a\r\n", true);
  batch.add("append long 0 0 1\r\na\r\n", true);
  batch.add("get a\r\n", true);
  batch.add("append long 0 0 1\r\na\r\n");
  run(batch);
  EXPECT_EQ(batch.reply(0), "STORED\r\n");
  EXPECT_EQ(batch.reply(1), kDatagramCopies);
  EXPECT_EQ(batch.entry(1).frames_done, 21u);
  EXPECT_EQ(batch.reply(2), kDatagramCopies);
  EXPECT_EQ(batch.reply(3), "END\r\n");
  EXPECT_EQ(batch.reply(4), "STORED\r\n");  // streams have a share of their own
  EXPECT_EQ(say("mg long s\r\n"), "HD s900006\r\n");
}

TEST_F(CpuEngineTest, ADatagramIsAnsweredWholeOrWithAnError) {
  const std::string value(kCopiedValueMax, 'v');
  say(set("a", value));
  TestBatch batch;
  std::string gets = "get";
  for (int i = 0; i < 1000; ++i) gets += " a";
  batch.add(gets + "\r\n", true);
  batch.add("get a\r\n");
  run(batch);
  EXPECT_EQ(batch.entry(0).frames_done, 1000u);
  EXPECT_EQ(batch.reply(0), "SERVER_ERROR out of memory writing get response\r\n");
  EXPECT_EQ(batch.reply(1), "VALUE a 0 4096\r\n" + value + "\r\nEND\r\n");
}

TEST_F(CpuEngineTest, ARequestIsShownWithWhatItFound) {
  admin_.wants_keys_now = true;
  say("get a\r\nset a 0 100 3\r\nxyz\r\nappend a 0 0 1\r\n!\r\nset a 0 -1 1\r\nx\r\nget a\r\n");
  using enum KeyState;
  EXPECT_EQ(admin_.states,
            (std::vector<KeyState>{kNotFound, kNotFound, kFound, kFound, kTimedOut}));
  EXPECT_EQ(admin_.sizes, (std::vector<uint32_t>{0, 0, 3, 4, 0}));
  EXPECT_EQ(admin_.ttls[1], 100u);
  EXPECT_EQ(admin_.ttls[2], 100u);  // what is appended to keeps its time
}

// Fails the next `left` allocations.
struct FailingAllocations : store::Faults {
  int left = 0;
  bool fails_allocation() override {
    if (left == 0) return false;
    --left;
    return true;
  }
};

TEST_F(CpuEngineTest, ADeferredRequestRunsAgainInItsPlace) {
  FailingAllocations failing;
  store::StoreConfig config;
  config.faults = &failing;
  start(config);
  failing.left = 3;
  EXPECT_EQ(say("get a\r\nset a 0 0 1\r\nx\r\nget a\r\nset b 0 0 1\r\ny\r\nget a b\r\n"),
            "END\r\nSTORED\r\nVALUE a 0 1\r\nx\r\nEND\r\nSTORED\r\n"
            "VALUE a 0 1\r\nx\r\nVALUE b 0 1\r\ny\r\nEND\r\n");
  EXPECT_EQ(failing.left, 0);
}

TEST_F(CpuEngineTest, WhereNothingCanBeReclaimedTheAnswerIsAnError) {
  FailingAllocations failing;
  store::StoreConfig config;
  config.faults = &failing;
  start(config);
  say("set a 0 0 1\r\nx\r\n");
  failing.left = 1000000;
  EXPECT_EQ(say("set a 0 0 1\r\ny\r\n"), "SERVER_ERROR out of memory storing object\r\n");
  failing.left = 0;
  EXPECT_EQ(say("get a\r\n"), "END\r\n");
}

// What a client may hold by values that it does not take (BatchEntry::value_memory_max). A value of
// kShared bytes is longer than a segment.
constexpr uint32_t kShared = 100'000;
constexpr uint64_t kHeldByOne = store::item_footprint(1, kShared);

class CpuEngineShareTest : public CpuEngineTest {
 protected:
  void SetUp() override {
    CpuEngineTest::SetUp();
    for (const char* key : {"a", "b", "c", "d"}) say(set(key, std::string(kShared, *key)));
  }

  void run_with(TestBatch& batch, const std::string& text, uint64_t value_memory_max) {
    batch.add(text);
    batch.entry(0).value_memory_max = value_memory_max;
    run(batch);
    for (uint32_t pin : batch.pins()) engine_->release(pin);
  }

  static std::string values(const std::string& keys) {
    std::string text;
    for (const char key : keys) {
      text += std::string("VALUE ") + key + " 0 " + std::to_string(kShared) + "\r\n" +
              std::string(kShared, key) + "\r\n";
    }
    return text;
  }
  static constexpr char kRefused[] = "SERVER_ERROR value exceeds the memory of one client\r\n";
};

TEST_F(CpuEngineShareTest, ValuesWaitForThoseBeforeThem) {
  TestBatch exact;
  run_with(exact, "get a b c\r\nget d\r\n", 3 * kHeldByOne);
  EXPECT_EQ(exact.reply(0), values("abc") + "END\r\n");
  EXPECT_EQ(exact.entry(0).frames_done, 3u);
  EXPECT_TRUE(exact.entry(0).values_wait);
  EXPECT_EQ(exact.pins().size(), 3u);
  EXPECT_EQ(exact.entry(0).values_refused, 0u);
  TestBatch less;
  run_with(less, "get a b c\r\n", 3 * kHeldByOne - 1);
  EXPECT_EQ(less.reply(0), values("ab"));
  EXPECT_TRUE(less.entry(0).values_wait);
  TestBatch none_waits;
  run_with(none_waits, "get a b\r\nget x\r\n", 2 * kHeldByOne);
  EXPECT_EQ(none_waits.reply(0), values("ab") + "END\r\nEND\r\n");
  EXPECT_FALSE(none_waits.entry(0).values_wait);
}

TEST_F(CpuEngineShareTest, OthersInTheBatchAreNotConcerned) {
  TestBatch batch;
  batch.add("get a b c\r\n");
  batch.add("get a b c\r\n");
  batch.entry(0).value_memory_max = kHeldByOne;
  run(batch);
  for (uint32_t pin : batch.pins()) engine_->release(pin);
  EXPECT_EQ(batch.reply(0), values("a"));
  EXPECT_EQ(batch.reply(1), values("abc") + "END\r\n");
  EXPECT_FALSE(batch.entry(1).values_wait);
}

// Only those could be read never.
TEST_F(CpuEngineShareTest, AValueAboveTheLimitIsRefused) {
  TestBatch exact;
  run_with(exact, "get a\r\nget b\r\n", kShared);
  EXPECT_EQ(exact.reply(0), values("a") + "END\r\n");
  TestBatch above;
  run_with(above, "get a\r\nmg a v\r\ngat 0 a\r\nget x\r\n", kShared - 1);
  EXPECT_EQ(above.reply(0), std::string(kRefused) + kRefused + kRefused + "END\r\n");
  EXPECT_EQ(above.entry(0).values_refused, 3u);
  EXPECT_TRUE(above.pins().empty());
  say("set s 0 0 1\r\ns\r\n");
  TestBatch between;  // an error there would not be understood
  run_with(between, "get a s\r\nget s a\r\nmg a s\r\n", kShared - 1);
  EXPECT_EQ(between.reply(0), "VALUE s 0 1\r\ns\r\nEND\r\nVALUE s 0 1\r\ns\r\n" +
                                  std::string(kRefused) + "HD s100000\r\n");
  EXPECT_EQ(between.entry(0).values_refused, 2u);
}

// A decoded key cannot wait; its value is copied, and a copy counts as unsent output.
TEST_F(CpuEngineShareTest, ValuesThatCannotWaitAreCopied) {
  const std::string value = "VA 100000\r\n" + std::string(kShared, 'a') + "\r\n";
  std::string asked;
  for (int i = 0; i < 8; ++i) asked += "mg YQ== b v\r\n";
  TestBatch batch;
  run_with(batch, asked, kHeldByOne);
  EXPECT_EQ(batch.pins().size(), 1u);
  EXPECT_EQ(batch.entry(0).frames_done, 3u);  // a stream's slice of 256 KB
  EXPECT_EQ(batch.reply(0), value + value + value);
}

TEST_F(CpuEngineShareTest, ValuesThatFitTheReplyAreCopied) {
  const std::string small(kInlineValueMax - 1000, 's');
  say(set("s", small));
  const std::string value = "VALUE s 0 " + std::to_string(small.size()) + "\r\n" + small + "\r\n";
  TestBatch batch;
  run_with(batch, "get s s s\r\n", 64 * 1024);
  EXPECT_EQ(batch.reply(0), value + value + value + "END\r\n");
  EXPECT_EQ(batch.pins().size(), 1u);
}

// A set before it in the same group has made the value large. It may be too long for a copy.
TEST_F(CpuEngineShareTest, AValueThatHasBecomeLargeWaits) {
  for (const uint32_t size : {60'000u, 200'000u}) {
    const std::string value(size, 'v');
    TestBatch batch;
    run_with(batch, "get a\r\n" + set("new", value) + "get new\r\nget x\r\n", kHeldByOne);
    EXPECT_EQ(batch.reply(0), values("a") + "END\r\nSTORED\r\n") << size;
    EXPECT_EQ(batch.entry(0).frames_done, 2u) << size;
    EXPECT_TRUE(batch.entry(0).values_wait) << size;
    EXPECT_EQ(batch.entry(0).values_refused, 0u) << size;
    EXPECT_EQ(batch.pins().size(), 1u) << size;
    TestBatch next;
    run_with(next, "get new\r\nget x\r\n", 2u * size);
    EXPECT_EQ(next.reply(0),
              "VALUE new 0 " + std::to_string(size) + "\r\n" + value + "\r\nEND\r\nEND\r\n");
  }
}

}  // namespace
}  // namespace warpcache::engine
