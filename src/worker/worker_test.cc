// SPDX-License-Identifier: Apache-2.0
#include "worker/worker.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/datagram.h"
#include "io/client_source.h"
#include "worker/testing/fake_engine.h"
#include "worker/testing/fake_transport.h"

namespace warpcache::worker {
namespace {

constexpr int kIterationsMax = 2'000'000;

std::string set(const std::string& key, const std::string& value) {
  return "set " + key + " 0 0 " + std::to_string(value.size()) + "\r\n" + value + "\r\n";
}

std::string value(const std::string& key, const std::string& bytes) {
  return "VALUE " + key + " 0 " + std::to_string(bytes.size()) + "\r\n" + bytes + "\r\n";
}

class WorkerTest : public testing::Test {
 protected:
  explicit WorkerTest(uint32_t batches = 1) : engine_(batches) {}

  void start(const WorkerConfig& config = {}) {
    worker_.emplace(config, transport_, engine_);
    stream_ = &transport_.open();
  }

  void run_until_idle() {
    for (int i = 0; i < kIterationsMax && !transport_.idle(); ++i)
      ASSERT_TRUE(worker_->run_once(0));
    ASSERT_TRUE(transport_.idle());
  }

  std::string ask(const std::string& text) {
    stream_->input += text;
    run_until_idle();
    return std::move(stream_->output);
  }

  void TearDown() override {
    if (stream_ != nullptr && !stream_->closed) transport_.close(*stream_);
    EXPECT_EQ(engine_.reservation_count(), 0u);
    EXPECT_EQ(engine_.pin_count(), 0u);
  }

  FakeEngine engine_;
  FakeTransport transport_;
  std::optional<Worker> worker_;
  FakeTransport::Stream* stream_ = nullptr;
};

TEST_F(WorkerTest, APipelineIsOneBatch) {
  start();
  EXPECT_EQ(ask(set("a", "1") + "get a\r\nget a b\r\n"),
            "STORED\r\n" + value("a", "1") + "END\r\n" + value("a", "1") + "END\r\n");
  EXPECT_EQ(engine_.batch_count, 1u);
}

// Several batches are under way, and the later one is ready first.
class WorkerWithBatches : public WorkerTest {
 protected:
  WorkerWithBatches() : WorkerTest(3) {}
};

TEST_F(WorkerWithBatches, KeepTheOrderOfAStream) {
  constexpr int kStreams = 12;
  constexpr int kRounds = 200;
  start();
  std::mt19937 random(7);
  transport_.cut = [&random](size_t available) { return 1 + random() % available; };
  transport_.streams_per_burst = 5;
  transport_.datagrams_per_burst = 2;
  engine_.frames_per_batch_max = 40;
  std::vector<FakeTransport::Stream*> streams = {stream_};
  while (streams.size() < kStreams) streams.push_back(&transport_.open());
  std::vector<std::string> want(kStreams);
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < kStreams; ++i) {
      const std::string key = "k" + std::to_string(i);
      const std::string text = std::to_string(round);
      streams[i]->input += set(key, text) + "get " + key + "\r\n";
      want[i] += "STORED\r\n" + value(key, text) + "END\r\n";
    }
    if (round % 10 == 0) transport_.add_datagram("get none\r\n");
    ASSERT_TRUE(worker_->run_once(0));
  }
  run_until_idle();
  for (size_t i = 0; i < kStreams; ++i) EXPECT_EQ(streams[i]->output, want[i]) << "stream " << i;
  EXPECT_EQ(transport_.datagram_replies().size(), size_t{kRounds / 10});
  EXPECT_GT(engine_.batches_most, 1u);
  for (size_t i = 1; i < kStreams; ++i) transport_.close(*streams[i]);
}

// Datagrams without reply space run again while batches of streams are under way.
TEST_F(WorkerWithBatches, RunDatagramsAgainMeanwhile) {
  constexpr int kRounds = 100;
  start();
  FakeTransport::Stream& other = transport_.open();
  transport_.streams_per_burst = 1;
  transport_.datagrams_per_burst = 3;
  engine_.frames_per_batch_max = 2;
  std::string want;
  std::string of_other;
  for (int round = 0; round < kRounds; ++round) {
    const std::string text = std::to_string(round);
    stream_->input += set("a", text) + "get a\r\n";
    other.input += set("b", text) + "get b\r\n";
    want += "STORED\r\n" + value("a", text) + "END\r\n";
    of_other += "STORED\r\n" + value("b", text) + "END\r\n";
    for (int i = 0; i < 3; ++i) transport_.add_datagram("get none\r\n");
    ASSERT_TRUE(worker_->run_once(0));
  }
  run_until_idle();
  EXPECT_EQ(stream_->output, want);
  EXPECT_EQ(other.output, of_other);
  EXPECT_EQ(transport_.datagram_replies(), std::vector<std::string>(3 * kRounds, "END\r\n"));
  EXPECT_GT(engine_.batches_most, 1u);
  transport_.close(other);
}

TEST_F(WorkerWithBatches, ReceiveLargeBodiesMeanwhile) {
  start();
  FakeTransport::Stream& other = transport_.open();
  const std::string large(300'000, 'b');
  transport_.cut = [](size_t available) { return std::min<size_t>(available, 7'000); };
  stream_->input = set("large", large) + "get large\r\n";
  for (int i = 0; i < 50; ++i) other.input += "get a\r\n";
  run_until_idle();
  EXPECT_EQ(stream_->output, "STORED\r\n" + value("large", large) + "END\r\n");
  std::string ends;
  for (int i = 0; i < 50; ++i) ends += "END\r\n";
  EXPECT_EQ(other.output, ends);
  transport_.close(other);
}

TEST_F(WorkerTest, StreamsShareABatch) {
  start();
  FakeTransport::Stream& other = transport_.open();
  other.input = "get a\r\n";
  EXPECT_EQ(ask(set("a", "1")), "STORED\r\n");
  EXPECT_EQ(other.output, value("a", "1") + "END\r\n");
  EXPECT_EQ(engine_.batch_count, 1u);
  transport_.close(other);
}

TEST_F(WorkerTest, RequestsPerStreamAreBounded) {
  WorkerConfig config;
  config.requests_per_stream_max = 10;
  start(config);
  std::string asked;
  std::string expected;
  for (int i = 0; i < 95; ++i) {
    asked += "version\r\n";
    expected += "VERSION\r\n";
  }
  EXPECT_EQ(ask(asked), expected);
  EXPECT_EQ(engine_.batch_count, 10u);
}

TEST_F(WorkerTest, AnEngineReleasesItsDeviceWhenNothingHasComeForAWhile) {
  WorkerConfig config;
  config.idle_after = std::chrono::milliseconds(30);
  start(config);
  const auto runs_for = [this](std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) ASSERT_TRUE(worker_->run_once(0));
  };
  EXPECT_EQ(ask("version\r\n"), "VERSION\r\n");
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(worker_->run_once(0));  // no input, but not for long
    EXPECT_EQ(ask("version\r\n"), "VERSION\r\n");
  }
  EXPECT_EQ(engine_.device_releases, 0u);
  runs_for(std::chrono::milliseconds(60));
  EXPECT_GT(engine_.device_releases, 0u);
  EXPECT_EQ(ask("version\r\n"), "VERSION\r\n");
}

TEST_F(WorkerTest, EveryCutOfAStreamGivesTheSameReplies) {
  start();
  const std::string asked = set("key", "value with \r\n in it") +
                            "get key key nokey key\r\nbogus\r\n" + "set key 0 0 2\r\nabc\r\n" +
                            "delete key\r\nversion\r\nget key\r\n";
  const std::string whole = ask(asked);
  EXPECT_NE(whole.find("DELETED\r\nVERSION\r\nEND\r\n"), std::string::npos) << whole;
  for (size_t at = 1; at < asked.size(); ++at) {
    std::string replies = ask(asked.substr(0, at));
    replies += ask(asked.substr(at));
    EXPECT_EQ(replies, whole) << "cut at " << at;
  }
  transport_.cut = [](size_t) { return size_t{1}; };
  EXPECT_EQ(ask(asked), whole) << "byte by byte";
}

TEST_F(WorkerTest, ALargeBodyGoesStraightToItsReservation) {
  start();
  const std::string big(Worker::kInlineBodyMax + 12345, 'b');
  transport_.cut = [](size_t available) { return std::min<size_t>(available, 20000); };
  EXPECT_EQ(ask("version\r\n" + set("big", big) + "get big\r\n"),
            "VERSION\r\nSTORED\r\n" + value("big", big) + "END\r\n");
}

TEST_F(WorkerTest, ALargeBodyThatEndsInItsFirstChunk) {
  start();
  const std::string big(Worker::kInlineBodyMax + 1, 'b');
  EXPECT_EQ(ask(set("big", big) + "get big\r\n"), "STORED\r\n" + value("big", big) + "END\r\n");
  EXPECT_EQ(ask("version\r\n" + set("big", big) + "delete big\r\n"),
            "VERSION\r\nSTORED\r\nDELETED\r\n");
}

TEST_F(WorkerTest, ALargeBodyWithoutItsLineEndIsRefused) {
  start();
  const std::string big(Worker::kInlineBodyMax + 1, 'b');
  std::string asked = set("big", big);
  asked[asked.size() - 2] = 'x';
  const std::string reply = ask(asked + "get big\r\n");
  EXPECT_EQ(reply.substr(0, 6), "ERROR ");
  EXPECT_EQ(reply.substr(reply.size() - 5), "END\r\n");
}

// As long as others' bodies hold the memory, up to a limit. What comes after it waits too.
TEST_F(WorkerTest, ALargeBodyWaitsForItsTurn) {
  WorkerConfig config;
  config.body_wait = std::chrono::hours(1);
  start(config);
  engine_.reservations_max = 0;
  const std::string big(3 * Worker::kInlineBodyMax, 'b');
  stream_->input += "version\r\n" + set("big", big) + "get big\r\n";
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(worker_->run_once(0));
  EXPECT_EQ(stream_->output, "VERSION\r\n");
  engine_.reservations_max = 1;
  EXPECT_EQ(ask(""), "VERSION\r\nSTORED\r\n" + value("big", big) + "END\r\n");
}

TEST_F(WorkerTest, WithoutSpaceALargeBodyIsSwallowed) {
  WorkerConfig config;
  config.body_wait = {};
  start(config);
  engine_.reservations_max = 0;
  const std::string big(3 * Worker::kInlineBodyMax, 'b');
  EXPECT_EQ(ask(set("big", big) + "version\r\n"),
            "ERROR " + std::to_string(static_cast<int>(Status::kOutOfMemory)) + "\r\nVERSION\r\n");
}

TEST_F(WorkerTest, ABodyAboveWhatTheClientMayHoldIsSwallowed) {
  start();
  const std::string big(3 * Worker::kInlineBodyMax, 'b');
  transport_.value_memory_max = big.size();
  EXPECT_EQ(ask(set("big", big) + "get big\r\n"), "STORED\r\n" + value("big", big) + "END\r\n");
  EXPECT_EQ(transport_.values_refused, 0u);
  const std::string error =
      "ERROR " + std::to_string(static_cast<int>(Status::kOverShare)) + "\r\n";
  EXPECT_EQ(ask("version\r\n" + set("more", big + "b") + set("big", big) + "get more\r\n"),
            "VERSION\r\n" + error + "STORED\r\nEND\r\n");
  EXPECT_EQ(transport_.values_refused, 1u);
}

TEST_F(WorkerTest, ALargeBodyReservesNothingBeforeMuchOfItHasCome) {
  start();
  const std::string big(3 * Worker::kInlineBodyMax, 'b');
  const std::string asked = set("big", big);
  const size_t much = asked.find('\n') + 1 + Worker::kInlineBodyMax;
  EXPECT_EQ(ask(asked.substr(0, much - 1)), "");
  EXPECT_EQ(engine_.reservation_count(), 0u);
  EXPECT_EQ(ask(asked.substr(much - 1, 1)), "");
  EXPECT_EQ(engine_.reservation_count(), 1u);
  EXPECT_EQ(ask(asked.substr(much) + "get big\r\n"), "STORED\r\n" + value("big", big) + "END\r\n");
}

TEST_F(WorkerTest, WithoutSpaceTheTransportIsTold) {
  WorkerConfig config;
  config.body_wait = {};
  start(config);
  engine_.reservations_max = 0;
  const std::string big(3 * Worker::kInlineBodyMax, 'b');
  (void)ask("version\r\n" + set("big", big) + set("big", big));
  EXPECT_EQ(transport_.bodies_refused, 2u);
}

TEST_F(WorkerTest, ACancelledBodyIsRefusedAndItsRestSwallowed) {
  start();
  const std::string big(3 * Worker::kInlineBodyMax, 'b');
  const std::string asked = set("big", big) + "version\r\n";
  const size_t body_at = asked.find('\n') + 1;
  for (const size_t at : {body_at + Worker::kInlineBodyMax, body_at + 2 * Worker::kInlineBodyMax,
                          body_at + big.size(), body_at + big.size() + 1}) {
    EXPECT_EQ(ask(asked.substr(0, at)), "");
    EXPECT_EQ(engine_.reservation_count(), 1u);
    transport_.cancel_body(*stream_);
    EXPECT_EQ(engine_.reservation_count(), 0u);
    EXPECT_EQ(
        ask(asked.substr(at)),
        "ERROR " + std::to_string(static_cast<int>(Status::kOutOfMemory)) + "\r\nVERSION\r\n");
  }
}

TEST_F(WorkerTest, WhoGoesAwayLeavesNoReservation) {
  start();
  const std::string big(3 * Worker::kInlineBodyMax, 'b');
  EXPECT_EQ(ask(set("big", big).substr(0, big.size())), "");
  EXPECT_EQ(engine_.reservation_count(), 1u);
  transport_.close(*stream_);
  EXPECT_EQ(engine_.reservation_count(), 0u);
}

TEST_F(WorkerTest, WhoHasNotLoggedInReservesNothing) {
  WorkerConfig config;
  config.authentication = true;
  start(config);
  (void)ask(set("big", std::string(3 * Worker::kInlineBodyMax, 'b')).substr(0, 100000));
  EXPECT_EQ(engine_.reservation_count(), 0u);
}

TEST_F(WorkerTest, TheEngineKnowsWhereWhoLogsInComesFrom) {
  WorkerConfig config;
  config.authentication = true;
  start(config);
  sockaddr_storage client{};
  client.ss_family = AF_INET;
  reinterpret_cast<sockaddr_in&>(client).sin_addr.s_addr = htonl(0x0a010203);
  FakeTransport::Stream& behind_proxy = transport_.open(&client);
  behind_proxy.input = "get a\r\n";
  run_until_idle();
  EXPECT_EQ(engine_.source, io::source_of(client));
  (void)ask("get a\r\n");
  EXPECT_EQ(engine_.source, 0u);  // the descriptor is no socket
  transport_.close(behind_proxy);
}

TEST_F(WorkerTest, TheTransportLearnsWhetherTheClientAskedForTheEnd) {
  start();
  (void)ask("quit\r\n");
  EXPECT_TRUE(stream_->closed && !stream_->refused);
  stream_ = &transport_.open();
  (void)ask(std::string(3000, 'x'));
  EXPECT_TRUE(stream_->closed && stream_->refused);
}

TEST_F(WorkerTest, QuitClosesAndTheRestIsNotRun) {
  start();
  EXPECT_EQ(ask("version\r\nquit\r\nversion\r\n"), "VERSION\r\n");
  EXPECT_TRUE(stream_->closed);
}

TEST_F(WorkerTest, FramesWithoutReplySpaceWait) {
  start();
  engine_.frames_per_entry_max = 1;
  EXPECT_EQ(ask(set("a", "1") + "get a a b a\r\nbogus\r\nbogus\r\nversion\r\nquit\r\n"),
            "STORED\r\n" + value("a", "1") + value("a", "1") + value("a", "1") + "END\r\n" +
                "ERROR 1\r\nERROR 1\r\nVERSION\r\n");
  EXPECT_TRUE(stream_->closed);
}

TEST_F(WorkerTest, StreamsAlternateWhenReplySpaceIsShort) {
  start();
  engine_.frames_per_entry_max = 1;
  engine_.frames_per_batch_max = 3;
  std::vector<FakeTransport::Stream*> streams = {stream_};
  while (streams.size() < 8) streams.push_back(&transport_.open());
  const std::string one = "VERSION\r\n";
  for (FakeTransport::Stream* stream : streams) {
    for (int i = 0; i < 20; ++i) stream->input += "version\r\n";
  }
  while (!transport_.idle()) {
    ASSERT_TRUE(worker_->run_once(0));
    const auto [least, most] = std::minmax_element(
        streams.begin(), streams.end(),
        [](const auto* a, const auto* b) { return a->output.size() < b->output.size(); });
    ASSERT_LE((*most)->output.size() - (*least)->output.size(), one.size());
  }
  for (FakeTransport::Stream* stream : streams) EXPECT_EQ(stream->output.size(), 20 * one.size());
  for (size_t i = 1; i < streams.size(); ++i) transport_.close(*streams[i]);
}

// Four fifths of the streams would fill every batch if they were always the first. The engine runs
// all of a batch, or defers most of it.
TEST_F(WorkerTest, StreamsAlternateWhenTheBatchIsFull) {
  constexpr uint32_t kRequests = 10000;
  const std::string one = "ERROR 7\r\n";
  for (const uint32_t served : {1u << 30, 40000u, 700u}) {
    SCOPED_TRACE(served);
    engine_.frames_per_batch_max = served;
    start();
    std::vector<FakeTransport::Stream*> streams = {stream_};
    while (streams.size() < 80) streams.push_back(&transport_.open());
    for (FakeTransport::Stream* stream : streams) {
      for (uint32_t i = 0; i < kRequests; ++i) stream->input += "a\r\n";
    }
    const size_t slice = one.size() * WorkerConfig{}.requests_per_stream_max;
    while (!transport_.idle()) {
      ASSERT_TRUE(worker_->run_once(0));
      const auto [least, most] = std::minmax_element(
          streams.begin(), streams.end(),
          [](const auto* a, const auto* b) { return a->output.size() < b->output.size(); });
      if (served > Worker::kBatchFramesMax) {
        ASSERT_LE((*most)->output.size() - (*least)->output.size(), 2 * slice);
      }
    }
    for (FakeTransport::Stream* stream : streams) {
      EXPECT_EQ(stream->output.size(), kRequests * one.size());
      transport_.close(*stream);
    }
  }
  EXPECT_LE(engine_.frames_most, Worker::kBatchFramesMax);
  EXPECT_GE(engine_.frames_most, Worker::kBatchFramesMax - 1);
}

TEST_F(WorkerTest, WhoGoesAwayLeavesNoWaitingFrames) {
  start();
  engine_.frames_per_entry_max = 0;
  const std::string big(Worker::kInlineBodyMax + 1, 'b');
  stream_->input = set("big", big) + "version\r\n" + set("big", big);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(worker_->run_once(0));
  EXPECT_GE(engine_.reservation_count(), 1u);
}

TEST_F(WorkerTest, ADatagramIsABatchEntryOfItsOwn) {
  start();
  transport_.add_datagram(set("a", "1") + "get a\r\n");
  transport_.add_datagram("get a b\r\n");
  transport_.add_datagram("get a");
  run_until_idle();
  ASSERT_EQ(transport_.datagram_replies().size(), 3u);
  EXPECT_EQ(transport_.datagram_replies()[0], "STORED\r\n" + value("a", "1") + "END\r\n");
  EXPECT_EQ(transport_.datagram_replies()[1], value("a", "1") + "END\r\n");
}

TEST_F(WorkerTest, DatagramsWithoutReplySpaceAreRunInTheSameIteration) {
  start();
  engine_.frames_per_batch_max = 3;
  ask(set("a", "1"));
  for (int i = 0; i < 10; ++i) transport_.add_datagram("get a\r\n");
  ASSERT_TRUE(worker_->run_once(0));
  ASSERT_EQ(transport_.datagram_replies().size(), 10u);
  for (const std::string& reply : transport_.datagram_replies()) {
    EXPECT_EQ(reply, value("a", "1") + "END\r\n");
  }
}

// More datagrams than a batch holds: they run in several batches of the same iteration.
TEST_F(WorkerTest, DatagramsOfManyRequestsAreAllAnswered) {
  start();
  constexpr uint32_t kDatagrams = 2 * Worker::kBatchFramesMax / engine::kDatagramFramesMax + 1;
  std::string many;
  std::string replies;
  for (uint32_t i = 0; i < engine::kDatagramFramesMax; ++i) {
    many += "get a\n";
    replies += "END\r\n";
  }
  for (uint32_t i = 0; i < kDatagrams; ++i) transport_.add_datagram(many);
  transport_.add_datagram("get a\r\n");
  ASSERT_TRUE(worker_->run_once(0));
  ASSERT_EQ(transport_.datagram_replies().size(), kDatagrams + 1);
  for (uint32_t i = 0; i < kDatagrams; ++i) {
    EXPECT_TRUE(transport_.datagram_replies()[i] == replies) << i;
  }
  EXPECT_EQ(transport_.datagram_replies()[kDatagrams], "END\r\n");
  EXPECT_LE(engine_.frames_most, Worker::kBatchFramesMax);
}

TEST_F(WorkerTest, ADatagramOfTooManyRequestsIsLostWhole) {
  start();
  std::string many = set("a", "1");
  for (uint32_t i = 0; i < engine::kDatagramFramesMax; ++i) many += "get\n";
  transport_.add_datagram(many);
  transport_.add_datagram("get a\r\n");
  ASSERT_TRUE(worker_->run_once(0));
  ASSERT_EQ(transport_.datagram_replies().size(), 2u);
  EXPECT_EQ(transport_.datagram_replies()[0], "");
  EXPECT_EQ(transport_.datagram_replies()[1], "END\r\n");
}

TEST_F(WorkerTest, ADatagramThatNeverFindsReplySpaceIsLost) {
  start();
  engine_.frames_per_batch_max = 0;
  transport_.add_datagram("get a\r\n");
  ASSERT_TRUE(worker_->run_once(0));
  ASSERT_EQ(transport_.datagram_replies().size(), 1u);
  EXPECT_EQ(transport_.datagram_replies()[0], "");
}

// Random dialogues in random pieces, with an engine that defers random frames: the replies are
// always those of the dialogue in one piece.
class WorkerRandomTest : public testing::TestWithParam<uint32_t> {};

uint32_t below(std::mt19937& random, uint32_t bound) {
  return static_cast<uint32_t>(random()) % bound;
}

std::string random_dialogue(std::mt19937& random) {
  const auto up_to = [&](uint32_t bound) { return below(random, bound); };
  std::string text;
  for (int i = 0; i < 60; ++i) {
    const std::string key = "key" + std::to_string(up_to(4));
    switch (up_to(9)) {
      case 0:
        text += set(key, std::string(Worker::kInlineBodyMax - 50 + up_to(6000), 'a'));
        break;
      case 1:
        text += set(key, std::string(up_to(300), 'b'));
        break;
      case 2:
        text += "set " + key + " 0 0 5 noreply\r\nabcde\r\n";
        break;
      case 3:
        text += "get " + key + " key0 key1 key2 key3\r\n";
        break;
      case 4:
        text += "delete " + key + "\r\n";
        break;
      case 5:
        text += "bogus\r\n";
        break;
      case 6:
        text += "set " + key + " 0 0 3\r\nabcde\r\n";
        break;
      case 7:
        text += "get " + key + "\r\n";
        break;
      default:
        text += "version\n";
        break;
    }
  }
  return text;
}

std::string run_dialogue(const std::string& text, uint32_t seed, bool rough) {
  std::mt19937 random(seed);
  FakeEngine engine;
  FakeTransport transport;
  WorkerConfig config;
  if (rough) {
    config.requests_per_stream_max = 1 + below(random, 20);
    engine.frames_per_entry_max = 1 + below(random, 4);
    engine.window_max = 1 + below(random, 20000);
    const uint32_t bytes = 1 + below(random, 70000);
    transport.cut = [bytes, &random](size_t) { return 1 + below(random, bytes); };
  }
  Worker worker(config, transport, engine);
  FakeTransport::Stream& stream = transport.open();
  stream.input = text;
  for (int i = 0; i < kIterationsMax && !transport.idle(); ++i) EXPECT_TRUE(worker.run_once(0));
  EXPECT_TRUE(transport.idle());
  EXPECT_EQ(engine.reservation_count(), 0u);
  if (!stream.closed) transport.close(stream);
  return stream.output;
}

TEST_P(WorkerRandomTest, CutsAndPausesDoNotMatter) {
  std::mt19937 random(GetParam());
  const std::string text = random_dialogue(random);
  const std::string whole = run_dialogue(text, 0, false);
  EXPECT_NE(whole.find("STORED"), std::string::npos);
  EXPECT_GT(std::count(whole.begin(), whole.end(), '\n'), 50);
  for (uint32_t i = 0; i < 5; ++i) {
    const uint32_t seed = GetParam() * 100 + i;
    ASSERT_EQ(run_dialogue(text, seed, true), whole) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, WorkerRandomTest, testing::Range(1u, 21u));

}  // namespace
}  // namespace warpcache::worker
