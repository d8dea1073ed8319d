// SPDX-License-Identifier: Apache-2.0
#include "admin/admin.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "protocol/binary.h"
#include "protocol/framing/frame.h"
#include "protocol/parse/parse.h"
#include "store/host/store.h"
#include "store/testing/store_fixture.h"

namespace warpcache::admin {
namespace {

class FakeStats final : public StatsSource {
 public:
  StatsSnapshot snapshot() override { return {}; }
  SettingsSnapshot settings() override { return {}; }
  void list_connections(uint64_t& cursor,
                        const std::function<void(const ConnectionSnapshot&)>&) override {
    cursor = kWalkEnd;
  }
  // Visits a hundred items at a time.
  Status walk(uint64_t& cursor, const std::function<void(const DumpItem&)>& visit) override {
    for (int i = 0; i < 100 && cursor < items; ++i, ++cursor) visit(item);
    if (cursor == items) cursor = kWalkEnd;
    return Status::kOk;
  }

  uint64_t items = 2;
  DumpItem item{.key = "a key", .value_bytes = 3, .item_bytes = 48};
};

class AdminTest : public testing::Test {
 protected:
  void SetUp() override {
    store::StoreConfig config;
    config.memory_limit = uint64_t{64} << 20;
    config.memory_reach = uint64_t{128} << 20;
    config.maintenance_thread = false;
    config.manual_clock = true;
    ASSERT_EQ(store::Store::create(config, &store_), Status::kOk);
    active_.set(*store_);
    ASSERT_EQ(auth_.parse("alice:secret\n", "test"), "");
    long_replies_.start();
  }

  void make(const Options& options = {}) {
    options_ = options;
    admin_ = std::make_unique<Admin>(options_, active_, stats_, long_replies_, watchers_,
                                     inspection_, logins_, state_, stop_);
  }

  // Reads all bytes from the pipe of the last command and leaves it.
  std::string read_long_reply() {
    std::string text;
    BytePipe& pipe = *std::exchange(entry_.long_reply, nullptr);
    while (pipe.state() == BytePipe::State::kOpen) {
      const Bytes bytes = pipe.readable();
      text.append(reinterpret_cast<const char*>(bytes.data), bytes.size);
      if (bytes.empty()) {
        std::this_thread::yield();
      } else {
        pipe.consume(bytes.size);
      }
    }
    pipe.leave();
    return text;
  }
  std::string say_and_read(std::string text) {
    EXPECT_EQ(say(std::move(text)), "");
    return entry_.long_reply == nullptr ? "no long reply" : read_long_reply();
  }

  // Frames and parses `text` and runs every request.
  std::string say(std::string text, bool log_in = false) {
    if (admin_ == nullptr) make();
    protocol::FrameState framing{};
    const protocol::FrameLimits limits{1 << 20, 1 << 20, true, protocol::kProtocolAuto};
    auto* input = reinterpret_cast<uint8_t*>(text.data());
    protocol::Frame frames[16];
    const protocol::FrameResult framed =
        protocol::frame(framing, limits, {input, text.size()}, 0, 0, frames, 16);
    std::string reply;
    for (uint32_t i = 0; i < framed.count; ++i) {
      protocol::Request request;
      protocol::parse_request(frames[i], input, request);
      if (log_in) {
        admin_->authenticate(request, input, entry_, reply);
      } else {
        admin_->run(request, input, entry_, reply);
      }
    }
    return reply;
  }

  void store_k() {
    store::Worker worker(store_.get());
    ASSERT_EQ(worker.set("k", "value"), Status::kOk);
  }
  bool has_k() {
    store::Item item;
    return store_->inspect(bytes_of("k"), &item);
  }

  bool stop_asked() const {
    pollfd fd{stop_.fd(), POLLIN, 0};
    return poll(&fd, 1, 0) == 1;
  }

  Options options_;
  std::unique_ptr<store::Store> store_;
  store::ActiveStore active_;
  FakeStats stats_;
  Inspection inspection_{StatsOptions{}};
  AuthFile auth_;
  Logins logins_{&auth_, nullptr};
  ServerState state_;
  StopRequest stop_;
  LongReplies long_replies_;
  Watchers watchers_{1 << 16, 1 << 18};
  std::unique_ptr<Admin> admin_;
  engine::BatchEntry entry_;
};

TEST_F(AdminTest, FlushAllCountsAndRemembers) {
  EXPECT_EQ(say("flush_all\r\nflush_all 10\r\nflush_all 0 noreply\r\n"), "OK\r\nOK\r\n");
  EXPECT_EQ(state_.flushes.load(), 3u);
  EXPECT_EQ(say("flush_all 10\r\n"), "OK\r\n");
  EXPECT_EQ(state_.flushed_at_s.load(), store_->clock().now + 9);
}

TEST_F(AdminTest, FlushAllWithADelayTakesEffectASecondBefore) {
  const auto pass_second = [&] { store_->set_clock(store_->clock().now + 1); };
  store_k();
  EXPECT_EQ(say("flush_all 2\r\n"), "OK\r\n");
  EXPECT_TRUE(has_k());
  pass_second();
  EXPECT_FALSE(has_k());
  store_k();
  pass_second();
  EXPECT_FALSE(has_k());
  store_k();
  pass_second();
  EXPECT_TRUE(has_k());
  EXPECT_EQ(say("flush_all 1\r\n"), "OK\r\n");
  EXPECT_FALSE(has_k());
}

// No item is older than the server.
TEST_F(AdminTest, FlushAllUpToADateBeforeTheStartFlushesNothing) {
  store_k();
  EXPECT_EQ(say("flush_all 3\r\nflush_all 2592001\r\n"), "OK\r\nOK\r\n");
  EXPECT_EQ(state_.flushed_at_s.load(), 0u);
  for (int i = 0; i < 5; ++i) store_->set_clock(store_->clock().now + 1);
  EXPECT_TRUE(has_k());
  EXPECT_EQ(say("flush_all -1\r\n"), "OK\r\n");
  EXPECT_FALSE(has_k());
}

TEST_F(AdminTest, FlushAllIsForbiddenByF) {
  Options options;
  options.server.flush_enabled = false;
  make(options);
  EXPECT_EQ(say("flush_all\r\n"), "CLIENT_ERROR flush_all not allowed\r\n");
  EXPECT_EQ(state_.flushes.load(), 0u);
}

TEST_F(AdminTest, MemoryLimit) {
  EXPECT_EQ(say("cache_memlimit 32\r\n"), "OK\r\n");
  EXPECT_EQ(state_.memory_limit_bytes.load(), uint64_t{32} << 20);
  EXPECT_EQ(say("cache_memlimit 7\r\n"),
            "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n");
  EXPECT_EQ(say("cache_memlimit 1000000001\r\n"),
            "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n");
  EXPECT_EQ(say("cache_memlimit 4096\r\n"),
            "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n");
  EXPECT_EQ(state_.memory_limit_bytes.load(), uint64_t{32} << 20);
}

TEST_F(AdminTest, ShutdownNeedsA) {
  EXPECT_EQ(say("shutdown\r\n"), "SERVER_ERROR: shutdown not enabled\r\n");
  EXPECT_FALSE(stop_asked());
  EXPECT_FALSE(entry_.close);
}

TEST_F(AdminTest, ShutdownAsksTheMainThread) {
  Options options;
  options.server.shutdown_enabled = true;
  make(options);
  EXPECT_EQ(say("shutdown soon\r\n"), "CLIENT_ERROR invalid shutdown mode\r\n");
  EXPECT_FALSE(stop_asked());
  EXPECT_EQ(say("shutdown graceful\r\n"), "");
  EXPECT_TRUE(stop_asked());
  EXPECT_TRUE(entry_.close);
  EXPECT_EQ(stop_.kind(), StopKind::kGraceful);
  EXPECT_EQ(say("shutdown\r\n"), "");
  EXPECT_EQ(stop_.kind(), StopKind::kNow);
}

TEST_F(AdminTest, DebugOfAMissingItem) { EXPECT_EQ(say("me none\r\n"), "EN\r\n"); }

TEST_F(AdminTest, Dumps) {
  const std::string line = "key=a%20key exp=-1 la=0 cas=0 fetch=no cls=1 size=48 flags=0 \n";
  EXPECT_EQ(say_and_read("lru_crawler metadump all\r\n"), "OK\r\n" + line + line + "END\r\n");
  EXPECT_EQ(say_and_read("lru_crawler mgdump all\r\n"),
            "OK\r\nmg YSBrZXk= b\r\nmg YSBrZXk= b\r\nEN\r\n");
  EXPECT_EQ(say_and_read("lru_crawler metadump 2\r\n"), "OK\r\nEND\r\n");
  EXPECT_EQ(say("lru_crawler metadump\r\n"), "ERROR\r\n");
  EXPECT_EQ(say("lru_crawler metadump all 1\r\n"), "ERROR\r\n");
  EXPECT_EQ(say("lru_crawler metadump all noreply\r\n"), "");
  EXPECT_EQ(entry_.long_reply, nullptr);
  Options options;
  options.server.dump_enabled = false;
  admin_.reset();
  make(options);
  EXPECT_EQ(say("lru_crawler metadump all\r\n"), "ERROR metadump not allowed\r\n");
  EXPECT_EQ(say("lru_crawler mgdump all\r\n"), "ERROR key dump not allowed\r\n");
}

// A second dump is refused at once; the first, which is read late, is complete.
TEST_F(AdminTest, OneDumpAtATime) {
  stats_.items = 100'000;
  EXPECT_EQ(say("lru_crawler metadump all\r\n"), "");
  BytePipe* const unread = std::exchange(entry_.long_reply, nullptr);
  ASSERT_NE(unread, nullptr);
  EXPECT_EQ(say("lru_crawler mgdump all\r\n"), "BUSY currently processing crawler request\r\n");
  EXPECT_EQ(say_and_read("stats cachedump 1 1\r\n"), "ITEM a key [3 b; 0 s]\r\nEND\r\n");
  entry_.long_reply = unread;
  const std::string text = read_long_reply();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 100'002);
  EXPECT_EQ(text.substr(text.size() - 7), " \nEND\r\n");
  stats_.items = 1;
  EXPECT_EQ(say_and_read("lru_crawler mgdump all\r\n"), "OK\r\nmg YSBrZXk= b\r\nEN\r\n");
}

// The source address of a datagram may be forged, and UDP has no flow control.
TEST_F(AdminTest, NoLongReplyGoesOverUdp) {
  entry_.datagram = true;
  const std::string refusal = "CLIENT_ERROR not available over UDP\r\n";
  say("stats sizes_enable\r\n");
  for (const std::string line :
       {"lru_crawler metadump all", "lru_crawler mgdump all", "stats cachedump 1 0", "stats sizes",
        "stats conns", "stats detail dump"}) {
    EXPECT_EQ(say(line + "\r\n"), refusal) << line;
  }
}

// For all clients, or for those of one listener.
TEST_F(AdminTest, WhatChangesTheServerCanBeSwitchedOff) {
  Options options;
  options.server.shutdown_enabled = true;
  const std::vector<std::string> changing = {"flush_all",          "cache_memlimit 32",
                                             "verbosity 1",        "shutdown",
                                             "lru mode flat",      "slabs automove 1",
                                             "lru_crawler enable", "lru_crawler crawl all",
                                             "stats reset",        "stats detail on",
                                             "stats detail off",   "stats sizes_enable",
                                             "debugtime 1",        "watch",
                                             "refresh_certs",      "stats  sizes_disable"};
  for (const bool by_option : {true, false}) {
    options.server.admin_enabled = !by_option;
    make(options);
    entry_.admin = by_option;
    for (const std::string& line : changing) {
      EXPECT_EQ(say(line + "\r\n"), "CLIENT_ERROR not allowed here\r\n") << line;
    }
    EXPECT_EQ(say("flush_all noreply\r\n"), "");
    EXPECT_EQ(state_.flushes.load(), 0u);
    EXPECT_FALSE(stop_asked());
    EXPECT_EQ(say("me none\r\n"), "EN\r\n");
    EXPECT_NE(say("stats\r\n"), "");
    EXPECT_EQ(say_and_read("stats detail dump\r\n"), "END\r\n");
    EXPECT_EQ(say_and_read("lru_crawler mgdump 2\r\n"), "OK\r\nEN\r\n");
  }
}

TEST_F(AdminTest, LinesThatSteerNothing) {
  EXPECT_EQ(say("lru_crawler enable\r\nslabs automove 1\r\nlru mode flat\r\n"),
            "OK\r\nOK\r\nOK\r\n");
  EXPECT_EQ(say("slabs reassign 1 2\r\n"), "BADCLASS invalid src or dst class id\r\n");
  EXPECT_EQ(say("slabs automove 5\r\nlru nonsense\r\nwatch x\r\n"), "ERROR\r\nERROR\r\nERROR\r\n");
  EXPECT_EQ(say("lru_crawler sleep 5 noreply\r\n"), "");
  EXPECT_EQ(say("refresh_certs noreply\r\n"), "Error TLS not enabled\r\n");  // as memcached
  std::string failure;
  state_.refresh_certificates = [&] { return failure; };
  EXPECT_EQ(say("refresh_certs\r\n"), "OK\r\n");
  EXPECT_EQ(say("refresh_certs noreply\r\n"), "");
  failure = "Error loading the key: x";
  EXPECT_EQ(say("refresh_certs\r\n"), "Error loading the key: x\r\n");
  EXPECT_EQ(say("refresh_certs noreply\r\n"), "Error loading the key: x\r\n");
}

TEST_F(AdminTest, LoginTakesTheFirstSetWithAPassword) {
  entry_.authenticated = false;
  EXPECT_EQ(say("get a b c\r\n", true), "CLIENT_ERROR unauthenticated\r\n");
  EXPECT_EQ(say("delete a noreply\r\n", true), "CLIENT_ERROR unauthenticated\r\n");
  EXPECT_EQ(say("add x 0 0 12\r\nalice secret\r\n", true), "CLIENT_ERROR unauthenticated\r\n");
  EXPECT_EQ(say("set x 0 0 12\r\nalice secre7\r\n", true),
            "CLIENT_ERROR authentication failure\r\n");
  EXPECT_EQ(say("set x 0 0 5\r\nalice\r\n", true),
            "CLIENT_ERROR bad authentication token format\r\n");
  EXPECT_FALSE(entry_.authenticated);
  EXPECT_EQ(say("set x 0 0 12\r\nalice secret\r\n", true), "STORED\r\n");
  EXPECT_TRUE(entry_.authenticated);
  EXPECT_EQ(state_.auth_commands.load(), 3u);
  EXPECT_EQ(state_.auth_errors.load(), 2u);
}

TEST_F(AdminTest, AConnectionIsClosedAfterAFewFailedLogins) {
  entry_.authenticated = false;
  for (uint32_t i = 1; i <= AuthFile::kFailedLoginsMax; ++i) {
    EXPECT_FALSE(entry_.close);
    EXPECT_EQ(say("get a\r\n", true), "CLIENT_ERROR unauthenticated\r\n");  // is no login
    (void)say(i % 2 == 0 ? "set x 0 0 5\r\nalice\r\n" : "set x 0 0 7\r\nalice x\r\n", true);
    EXPECT_EQ(entry_.failed_logins, i);
  }
  EXPECT_TRUE(entry_.close);
  EXPECT_FALSE(entry_.authenticated);
}

// A request of the binary protocol.
std::string binary(uint8_t opcode, const std::string& key = "", const std::string& value = "") {
  std::string text(protocol::kBinaryHeaderSize, '\0');
  text[0] = static_cast<char>(protocol::kBinaryRequestMagic);
  text[1] = static_cast<char>(opcode);
  text[3] = static_cast<char>(key.size());
  text[11] = static_cast<char>(key.size() + value.size());
  return text + key + value;
}

class SaslAdminTest : public AdminTest {
 protected:
  void SetUp() override {
    AdminTest::SetUp();
    unsetenv("SASL_CONF_PATH");
    std::ofstream(path_) << "alice:secret\n";
    ASSERT_EQ(sasl_.open(), "");
    logins_ = {nullptr, &sasl_};
    entry_.authenticated = false;
  }
  void TearDown() override { std::filesystem::remove(path_); }

  // The status of the reply, and its text.
  std::string ask(uint8_t opcode, const std::string& key = "", const std::string& value = "") {
    const std::string reply = say(binary(opcode, key, value), !entry_.authenticated);
    if (reply.size() < protocol::kBinaryHeaderSize) return "no reply";
    return std::to_string(static_cast<uint8_t>(reply[7])) + " " +
           reply.substr(protocol::kBinaryHeaderSize);
  }

  const std::string good_ = std::string("\0alice\0secret", 13);
  const std::string path_ = testing::TempDir() + "/admin-sasl-" + std::to_string(getpid());
  Sasl sasl_{path_};
};

TEST_F(SaslAdminTest, OnlyLoginsAndTheVersionAreAnsweredBefore) {
  EXPECT_EQ(ask(protocol::kOpVersion).substr(0, 3), "0 1");
  EXPECT_EQ(ask(protocol::kOpSaslListMechanisms), "0 PLAIN");
  EXPECT_FALSE(entry_.close);
  for (const uint8_t opcode :
       {protocol::kOpGet, protocol::kOpGetQ, protocol::kOpNoop, protocol::kOpQuit,
        protocol::kOpQuitQ, protocol::kOpStat, protocol::kOpFlush, protocol::kOpSetQ}) {
    entry_.close = false;
    EXPECT_EQ(ask(opcode), "32 Auth failure.") << int{opcode};
    EXPECT_TRUE(entry_.close);
  }
  entry_.close = false;
  EXPECT_EQ(ask(0x77), "32 Auth failure.");
  EXPECT_TRUE(entry_.close);
}

TEST_F(SaslAdminTest, ALoginCountsAndLastsUntilTheNext) {
  EXPECT_EQ(ask(protocol::kOpSaslAuth, "PLAIN", std::string("\0alice\0wrong", 12)),
            "32 Auth failure.");
  EXPECT_FALSE(entry_.authenticated);
  EXPECT_EQ(ask(protocol::kOpSaslAuth, "PLAIN", good_), "0 Authenticated");
  EXPECT_TRUE(entry_.authenticated);
  EXPECT_EQ(state_.auth_commands.load(), 2u);
  EXPECT_EQ(state_.auth_errors.load(), 1u);
  EXPECT_EQ(ask(protocol::kOpSaslAuth, "PLAIN", good_), "32 Auth failure.");  // as memcached
  EXPECT_FALSE(entry_.authenticated);
  EXPECT_EQ(ask(protocol::kOpSaslAuth, "PLAIN"), "33 ");
  EXPECT_EQ(ask(protocol::kOpSaslStep, "PLAIN", good_), "0 Authenticated");
  EXPECT_EQ(ask(protocol::kOpSaslListMechanisms), "0 PLAIN");
  EXPECT_FALSE(entry_.authenticated);
}

TEST_F(SaslAdminTest, MalformedLogins) {
  EXPECT_EQ(ask(protocol::kOpSaslAuth, std::string(33, 'X'), good_), "4 Invalid arguments");
  EXPECT_EQ(state_.auth_commands.load(), 0u);
  EXPECT_FALSE(entry_.close);
  EXPECT_EQ(ask(protocol::kOpSaslAuth, std::string(32, 'X'), good_), "32 Auth failure.");
  EXPECT_EQ(ask(protocol::kOpSaslAuth, "", good_), "4 Invalid arguments");
  EXPECT_TRUE(entry_.close);
}

TEST_F(SaslAdminTest, AConnectionIsClosedAfterAFewFailedLogins) {
  for (uint32_t i = 1; i <= AuthFile::kFailedLoginsMax; ++i) {
    EXPECT_FALSE(entry_.close);
    EXPECT_EQ(ask(protocol::kOpSaslAuth, "PLAIN", "x"), "32 Auth failure.");
    EXPECT_EQ(entry_.failed_logins, i);
  }
  EXPECT_TRUE(entry_.close);
}

TEST_F(AdminTest, KeysAreCountedByPrefix) {
  EXPECT_FALSE(admin_ != nullptr && admin_->wants_keys());
  EXPECT_EQ(say("stats detail on\r\n"), "OK\r\n");
  EXPECT_TRUE(admin_->wants_keys());
  const std::string_view text = "user:1";
  const Bytes key = {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
  admin_->saw_key(protocol::Op::kGet, key, true);
  admin_->saw_key(protocol::Op::kGet, key, false);
  admin_->saw_key(protocol::Op::kAppend, key, true);
  admin_->saw_key(protocol::Op::kDelete, key, true);
  admin_->saw_key(protocol::Op::kIncr, key, true);
  EXPECT_EQ(say_and_read("stats detail dump\r\n"),
            "PREFIX user get 2 hit 1 set 1 del 1\r\nEND\r\n");
}

}  // namespace
}  // namespace warpcache::admin
