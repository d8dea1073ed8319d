// SPDX-License-Identifier: Apache-2.0
#include "admin/watchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace warpcache::admin {
namespace {

using engine::KeyState;
using ::testing::ContainsRegex;
using ::testing::StartsWith;

constexpr size_t kBufferBytes = 16 * 1024;

class WatchersTest : public testing::Test {
 protected:
  ~WatchersTest() override {
    for (BytePipe* pipe : pipes_) pipe->leave();
  }

  BytePipe* add(uint32_t kinds) {
    BytePipe* pipe = nullptr;
    EXPECT_EQ(watchers_.add(kinds, &pipe), Watchers::Added::kYes);
    pipes_.push_back(pipe);
    return pipe;
  }
  void leave(BytePipe* pipe) {
    std::erase(pipes_, pipe);
    pipe->leave();
  }

  // The next line, without its end.
  std::string line(BytePipe* pipe) {
    std::string& text = unread_[pipe];
    while (text.find('\n') == std::string::npos) {
      const Bytes bytes = pipe->readable();
      text.append(reinterpret_cast<const char*>(bytes.data), bytes.size);
      if (bytes.empty()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      } else {
        pipe->consume(bytes.size);
      }
    }
    const size_t end = text.find('\n');
    std::string first = text.substr(0, end);
    text.erase(0, end + 1);
    return first;
  }
  // The same without the time.
  std::string event(BytePipe* pipe) {
    const std::string whole = line(pipe);
    EXPECT_THAT(whole, ContainsRegex("^ts=[0-9]+\\.[0-9]+ gid=[0-9]+ "));
    return whole.substr(whole.find(' ', whole.find("gid=")) + 1);
  }

  void get(std::string_view key, KeyState before = KeyState::kNotFound, uint32_t size = 0) {
    protocol::Request request = {};
    request.op = protocol::Op::kGet;
    see(request, protocol::Outcome::kHit, key, before, size);
  }
  void see(const protocol::Request& request, protocol::Outcome outcome, std::string_view key,
           KeyState before, uint32_t size, uint32_t ttl = 0) {
    protocol::Result result = {};
    result.outcome = outcome;
    result.value_size = request.value_size;
    watchers_.saw_request({.request = request,
                           .result = result,
                           .key = bytes_of(key),
                           .fd = 7,
                           .before = before,
                           .value_size_before = size,
                           .ttl = ttl});
  }

  Watchers watchers_{kBufferBytes, Watchers::kPipeBytesMin};
  std::vector<BytePipe*> pipes_;
  std::map<BytePipe*, std::string> unread_;
};

TEST_F(WatchersTest, NothingIsWantedWithoutWatchers) {
  EXPECT_EQ(watchers_.wanted(), 0u);
  get("k");
  EXPECT_EQ(watchers_.counts().records_written, 0u);
  BytePipe* const pipe = add(engine::kWatchFetchers | engine::kWatchConnections);
  EXPECT_EQ(watchers_.wanted(), engine::kWatchFetchers | engine::kWatchConnections);
  EXPECT_EQ(watchers_.counts().watchers, 1u);
  leave(pipe);
  while (watchers_.wanted() != 0) std::this_thread::yield();
  EXPECT_EQ(watchers_.counts().watchers, 0u);
}

TEST_F(WatchersTest, LinesOfRequests) {
  BytePipe* const pipe = add(engine::kWatchRequests);
  get("a%b~", KeyState::kFound, 5);
  EXPECT_EQ(event(pipe), "type=item_get key=a%25b~ status=found clsid=1 cfd=7 size=5");
  get("a", KeyState::kTimedOut);
  EXPECT_EQ(event(pipe), "type=item_get key=a status=expired clsid=1 cfd=7 size=0");
  protocol::Request set = {};
  set.op = protocol::Op::kSet;
  set.value_size = 3;
  see(set, protocol::Outcome::kStored, "k", KeyState::kFlushed, 0, 100);
  EXPECT_EQ(event(pipe), "type=item_get key=k status=flushed clsid=1 cfd=7 size=0");
  EXPECT_EQ(event(pipe),
            "type=item_store key=k status=stored cmd=set ttl=100 clsid=1 cfd=7 size=3");
  protocol::Request remove = {};
  remove.op = protocol::Op::kDelete;
  see(remove, protocol::Outcome::kDeleted, "k", KeyState::kFound, 3);
  EXPECT_EQ(event(pipe), "type=item_get key=k status=found clsid=1 cfd=7 size=3");
  EXPECT_EQ(event(pipe), "type=deleted key=k cmd=delete clsid=1 size=3");
}

TEST_F(WatchersTest, LinesOfOtherEvents) {
  BytePipe* const pipe =
      add(engine::kWatchEvictions | engine::kWatchConnections | engine::kWatchCommands);
  struct {
    store::Item item = {};
    char key[2] = {'k', '1'};
  } stored;
  stored.item.key_size = 2;
  stored.item.value_size = 10;
  stored.item.init_words(5, 160, store::kItemFetched);
  stored.item.store_access_time(90);
  watchers_.evicted(stored.item, 100);
  EXPECT_EQ(event(pipe), "type=eviction key=k1 fetch=yes ttl=60 la=10 clsid=1 size=10");
  stored.item.init_words(5, 0, 0);
  watchers_.evicted(stored.item, 100);
  EXPECT_EQ(event(pipe), "type=eviction key=k1 fetch=no ttl=-1 la=10 clsid=1 size=10");
  engine::PeerAddress peer = {engine::PeerAddress::Kind::kIpv4, 99, {127, 0, 0, 1}};
  watchers_.connection_opened(4, peer);
  EXPECT_EQ(event(pipe), "type=conn_new rip=127.0.0.1 rport=99 transport=tcp cfd=4");
  watchers_.connection_closed(4, {engine::PeerAddress::Kind::kUnix, 0, {}}, "normal");
  EXPECT_EQ(event(pipe), "type=conn_close rip=unix rport=0 transport=local reason=normal cfd=4");
  watchers_.saw_commands("<4 get a\n<4 get b\n");
  EXPECT_EQ(event(pipe), "<4 get a");
  EXPECT_EQ(event(pipe), "<4 get b");
}

TEST_F(WatchersTest, EachGetsItsOwnKinds) {
  BytePipe* const fetchers = add(engine::kWatchFetchers);
  BytePipe* const connections = add(engine::kWatchConnections);
  get("k");
  watchers_.connection_opened(4, {});
  EXPECT_THAT(event(fetchers), StartsWith("type=item_get"));
  EXPECT_THAT(event(connections), StartsWith("type=conn_new"));
  get("l");
  EXPECT_THAT(event(fetchers), StartsWith("type=item_get key=l"));
  EXPECT_TRUE(connections->readable().empty());
}

TEST_F(WatchersTest, AWatcherThatDoesNotReadMissesLines) {
  BytePipe* const slow = add(engine::kWatchFetchers);
  BytePipe* const fast = add(engine::kWatchFetchers);
  // Far more than the pipe takes, in portions that a buffer takes.
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 20; ++i) get("k");
    for (int i = 0; i < 20; ++i) (void)line(fast);
  }
  WatchCounts counts = watchers_.counts();
  EXPECT_GT(counts.lines_skipped, 0u);
  EXPECT_EQ(counts.lines_skipped + counts.lines_sent, 2u * 200 * 20);
  EXPECT_EQ(counts.records_written, 200u * 20);
  EXPECT_EQ(counts.records_dropped, 0u);
  const uint64_t read = counts.lines_sent - 200 * 20;
  for (uint64_t i = 0; i < read; ++i) EXPECT_THAT(line(slow), StartsWith("ts="));
  get("after");
  EXPECT_EQ(line(slow), "skipped=" + std::to_string(counts.lines_skipped));
  EXPECT_THAT(event(slow), StartsWith("type=item_get key=after"));
}

TEST_F(WatchersTest, AFullBufferDropsRecords) {
  BytePipe* const pipe = add(engine::kWatchFetchers);
  for (int i = 0; i < 100'000; ++i) get("k");
  WatchCounts counts = watchers_.counts();
  EXPECT_GT(counts.records_dropped, 0u);
  EXPECT_EQ(counts.records_dropped + counts.records_written, 100'000u);
  EXPECT_THAT(line(pipe), StartsWith("ts="));
}

TEST_F(WatchersTest, TheirNumberIsBounded) {
  for (uint32_t i = 0; i < Watchers::kWatchersMax; ++i) add(engine::kWatchFetchers);
  BytePipe* pipe = nullptr;
  EXPECT_EQ(watchers_.add(engine::kWatchFetchers, &pipe), Watchers::Added::kTooMany);
  EXPECT_EQ(pipe, nullptr);
  leave(pipes_.front());
  add(engine::kWatchMutations);
}

TEST_F(WatchersTest, ManyThreads) {
  BytePipe* const pipe = add(engine::kWatchFetchers);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 1000; ++i) get("k");
    });
  }
  std::thread comes_and_goes([this] {
    for (int i = 0; i < 50; ++i) {
      BytePipe* other = nullptr;
      ASSERT_EQ(watchers_.add(engine::kWatchMutations, &other), Watchers::Added::kYes);
      other->leave();
    }
  });
  for (std::thread& thread : threads) thread.join();
  comes_and_goes.join();
  const WatchCounts counts = watchers_.counts();
  EXPECT_EQ(counts.records_written + counts.records_dropped, 8000u);
  EXPECT_THAT(line(pipe), StartsWith("ts="));
}

}  // namespace
}  // namespace warpcache::admin
