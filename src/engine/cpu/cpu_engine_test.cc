// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/cpu_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/byte_pipe.h"

namespace warpcache::engine {
namespace {

// Answers every administrative command with one line.
class FakeAdmin : public AdminHandler {
 public:
  void run(const protocol::Request& request, const uint8_t*, BatchEntry& entry,
           std::string& reply) override {
    if (request.op == protocol::Op::kAdmin) {
      entry.long_reply = &long_reply;
    } else {
      reply += "ADMIN\r\n";
    }
  }
  void authenticate(const protocol::Request& request, const uint8_t*, BatchEntry& entry,
                    std::string& reply) override {
    entry.authenticated = request.op == protocol::Op::kSet;
    reply += entry.authenticated ? "STORED\r\n" : "CLIENT_ERROR unauthenticated\r\n";
  }
  bool wants_keys() const override { return wants_keys_now; }
  void saw_key(protocol::Op, Bytes key, bool hit) override {
    seen.emplace_back(reinterpret_cast<const char*>(key.data), key.size);
    hits += hit ? 1 : 0;
  }
  void saw_request(const SeenRequest& request) override {
    states.push_back(request.before);
    sizes.push_back(request.value_size_before);
    ttls.push_back(request.ttl);
    AdminHandler::saw_request(request);
  }

  BytePipe long_reply{16, [] {}};  // of `lru_crawler`
  bool wants_keys_now = false;
  std::vector<std::string> seen;
  std::vector<KeyState> states;
  std::vector<uint32_t> sizes;
  std::vector<uint32_t> ttls;
  int hits = 0;
};

// A batch of requests of several connections, given as text.
class TestBatch {
 public:
  // Adds the frames of `text` as one more entry.
  void add(const std::string& text, bool datagram = false) {
    texts_.push_back(text);
    BatchEntry entry;
    entry.datagram = datagram;
    batch_.entries.push_back(entry);
  }

  Batch* build() {
    input_.clear();
    for (const std::string& text : texts_) input_ += text;
    batch_.input = reinterpret_cast<uint8_t*>(input_.data());
    uint32_t offset = 0;
    for (uint32_t i = 0; i < texts_.size(); ++i) {
      frame_entry(i, offset);
      offset += static_cast<uint32_t>(texts_[i].size());
    }
    return &batch_;
  }

  BatchEntry& entry(uint32_t i) { return batch_.entries[i]; }
  bool stream_not_reached() const { return batch_.stream_not_reached; }

  std::string reply(uint32_t i) const {
    const BatchEntry& entry = batch_.entries[i];
    std::string text;
    for (uint32_t s = 0; s < entry.span_count; ++s) {
      const ReplySpan& span = batch_.spans[entry.first_span + s];
      text.append(reinterpret_cast<const char*>(span.data), span.size);
    }
    return text;
  }

  std::vector<uint32_t> pins() const {
    std::vector<uint32_t> pins;
    for (const ReplySpan& span : batch_.spans) {
      if (span.pin != 0 && span.pin != kPinFollows) pins.push_back(span.pin);
    }
    return pins;
  }

 private:
  void frame_entry(uint32_t index, uint32_t offset) {
    protocol::FrameState state = {};
    protocol::FrameLimits limits = {};
    limits.item_size_max = 64 * 1024 * 1024;
    limits.inline_body_max = 64 * 1024 * 1024;
    limits.cas_enabled = true;
    std::vector<protocol::Frame> frames(10000);
    const Bytes text = {batch_.input + offset, texts_[index].size()};
    const protocol::FrameResult result = protocol::frame(
        state, limits, text, offset, index, frames.data(), static_cast<uint32_t>(frames.size()));
    BatchEntry& entry = batch_.entries[index];
    entry.first_frame = static_cast<uint32_t>(batch_.frames.size());
    entry.frame_count = result.count;
    batch_.frames.insert(batch_.frames.end(), frames.begin(), frames.begin() + result.count);
  }

  std::vector<std::string> texts_;
  std::string input_;
  Batch batch_;
};

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

TEST_F(CpuEngineTest, CommandsOfAConnectionTakeEffectInOrder) {
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

TEST_F(CpuEngineTest, EachConnectionGetsItsOwnReplies) {
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

std::string times(uint32_t count, const std::string& text) {
  std::string all;
  for (uint32_t i = 0; i < count; ++i) all += text;
  return all;
}

// They take long: a stream's third waits for a later batch, with all that follows it.
TEST_F(CpuEngineTest, AStreamHasAShareOfAdministrativeCommands) {
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

TEST_F(CpuEngineTest, ABatchHasABoundOnAdministrativeCommands) {
  constexpr uint32_t kStreams = kBatchAdminMax / kEntryAdminMax;
  TestBatch batch;
  for (uint32_t i = 0; i < kStreams + 2; ++i) batch.add(times(kEntryAdminMax, "verbosity 1\r\n"));
  batch.add("get a\r\n");
  run(batch);
  for (uint32_t i = 0; i < kStreams; ++i) EXPECT_EQ(batch.entry(i).frames_done, kEntryAdminMax);
  for (uint32_t i = kStreams; i < kStreams + 2; ++i) {
    EXPECT_EQ(batch.entry(i).frames_done, 0u);
    EXPECT_TRUE(batch.entry(i).waits);
  }
  EXPECT_TRUE(batch.stream_not_reached());
  EXPECT_EQ(batch.reply(kStreams + 2), "END\r\n");
}

// A command with a decoded base64 key cannot wait, since it would be decoded again.
TEST_F(CpuEngineTest, NoDecodedKeyWaits) {
  TestBatch batch;
  batch.add(times(kEntryAdminMax + 2, "me YWJj b\r\n"));
  run(batch);
  EXPECT_EQ(batch.entry(0).frames_done, kEntryAdminMax + 2);
}

TEST_F(CpuEngineTest, ADatagramHasOneAdministrativeCommand) {
  TestBatch batch;
  batch.add("get a\r\nverbosity 1\r\nget b\r\n", true);
  batch.add("get a\r\nverbosity 1\r\nverbosity 1\r\nget b\r\n", true);
  run(batch);
  EXPECT_EQ(batch.reply(0), "END\r\nADMIN\r\nEND\r\n");
  EXPECT_EQ(batch.reply(1), kDatagramBusy);
  EXPECT_EQ(batch.entry(1).frames_done, batch.entry(1).frame_count);
}

// The next request waits for the next batch, and its reply comes after the long one.
TEST_F(CpuEngineTest, ALongReplyEndsTheStreamsShare) {
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

TEST_F(CpuEngineTest, AdministrativeCommandsKeepTheirPlace) {
  EXPECT_EQ(say("set a 0 0 1\r\nx\r\nstats\r\nget a\r\nverbosity 1\r\nget b\r\n"),
            "STORED\r\nADMIN\r\nVALUE a 0 1\r\nx\r\nEND\r\nADMIN\r\nEND\r\n");
}

TEST_F(CpuEngineTest, NothingRunsBehindQuit) {
  TestBatch batch;
  batch.add("set a 0 0 1\r\nx\r\nquit\r\n");
  run(batch);
  EXPECT_EQ(batch.reply(0), "STORED\r\n");
  EXPECT_TRUE(batch.entry(0).close);
}

TEST_F(CpuEngineTest, WithoutALoginOnlyTheLoginIsTaken) {
  TestBatch batch;
  batch.add("get a\r\nset a 0 0 3\r\na b\r\nget a\r\n");
  batch.entry(0).authenticated = false;
  run(batch);
  EXPECT_EQ(batch.reply(0), "CLIENT_ERROR unauthenticated\r\nSTORED\r\nEND\r\n");
  EXPECT_TRUE(batch.entry(0).authenticated);
}

TEST_F(CpuEngineTest, KeysAreShownOnlyOnRequest) {
  say("set a 0 0 1\r\nx\r\n");
  EXPECT_TRUE(admin_.seen.empty());
  admin_.wants_keys_now = true;
  say("get a b\r\n");
  EXPECT_EQ(admin_.seen, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(admin_.hits, 1);
}

TEST_F(CpuEngineTest, ARequestIsShownWithWhatItFound) {
  admin_.wants_keys_now = true;
  say("get a\r\nset a 0 100 3\r\nxyz\r\nappend a 0 0 1\r\n!\r\nset a 0 -1 1\r\nx\r\nget a\r\n");
  using enum KeyState;
  EXPECT_EQ(admin_.states, (std::vector<KeyState>{kNotFound, kNotFound, kFound, kFound, kExpired}));
  EXPECT_EQ(admin_.sizes, (std::vector<uint32_t>{0, 0, 3, 4, 0}));
  EXPECT_EQ(admin_.ttls[1], 100u);
  EXPECT_EQ(admin_.ttls[2], 100u);  // what is appended to keeps its time
}

TEST_F(CpuEngineTest, ABase64KeyIsDecodedOnce) {
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

// Fails the next `left` allocations.
struct FailingAllocations {
  int left = 0;
  static bool fail(void* context) {
    auto* self = static_cast<FailingAllocations*>(context);
    if (self->left == 0) return false;
    --self->left;
    return true;
  }
};

TEST_F(CpuEngineTest, ADeferredRequestRunsAgainInItsPlace) {
  FailingAllocations failing;
  store::StoreConfig config;
  config.hooks.context = &failing;
  config.hooks.fail_allocation = FailingAllocations::fail;
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
  config.hooks.context = &failing;
  config.hooks.fail_allocation = FailingAllocations::fail;
  start(config);
  say("set a 0 0 1\r\nx\r\n");
  failing.left = 1000000;
  EXPECT_EQ(say("set a 0 0 1\r\ny\r\n"), "SERVER_ERROR out of memory storing object\r\n");
  failing.left = 0;
  EXPECT_EQ(say("get a\r\n"), "END\r\n");
}

TEST_F(CpuEngineTest, ReservedBodiesBecomeItems) {
  for (uint32_t size : {20000u, 300000u}) {
    const std::string body(size, static_cast<char>('a' + size % 7));
    uint32_t id = 0;
    ASSERT_EQ(engine_->reserve(1, size, &id), Status::kOk);
    for (uint32_t at = 0; at < size;) {
      const MutableBytes window = engine_->reservation_window(id, at, 0);
      ASSERT_FALSE(window.empty());
      std::copy_n(body.data() + at, window.size, reinterpret_cast<char*>(window.data));
      at += static_cast<uint32_t>(window.size);
    }
    TestBatch batch;
    batch.add("set a 0 0 1\r\nx\r\nget a\r\n");
    Batch* built = batch.build();
    built->frames[0].body_size = size;
    batch.entry(0).reservation = id;
    engine_->submit(built);
    engine_->poll();
    EXPECT_EQ(batch.reply(0),
              "STORED\r\nVALUE a 0 " + std::to_string(size) + "\r\n" + body + "\r\nEND\r\n");
    for (uint32_t pin : batch.pins()) engine_->release(pin);
    EXPECT_EQ(store_->stats().reserved_segments, 0u);
  }
}

}  // namespace
}  // namespace warpcache::engine
