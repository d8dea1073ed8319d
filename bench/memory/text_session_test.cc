// SPDX-License-Identifier: Apache-2.0
#include "memory/text_session.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <iterator>
#include <string>
#include <vector>

namespace warpcache::bench {
namespace {

// A session whose server is a socket that the test writes to.
class TextSessionTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    session_.attach(ends[0]);
    peer_ = ends[1];
  }
  void TearDown() override { hang_up(); }

  void hang_up() {
    if (peer_ >= 0) close(peer_);
    peer_ = -1;
  }

  void say(const std::string& text) {
    ASSERT_EQ(write(peer_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  std::string heard() {
    char buffer[4096];
    const ssize_t got = read(peer_, buffer, sizeof buffer);
    return got > 0 ? std::string(buffer, static_cast<size_t>(got)) : std::string();
  }

  std::string key() const {
    std::string text(kSizes.key, '\0');
    maker_.write_key(kId, kSizes.key, text.data());
    return text;
  }

  std::string value(uint32_t version) const {
    std::string text(kSizes.value, '\0');
    maker_.write_value(kId, version, kSizes.value, text.data());
    return text;
  }

  std::string hit(const std::string& key, uint32_t version) const {
    return "VALUE " + key + " " + std::to_string(maker_.flags(kId, version)) + " 20\r\n" +
           value(version) + "\r\nEND\r\n";
  }

  std::string hits(const std::vector<std::string>& keys) const {
    std::string text;
    for (const std::string& key : keys)
      text += hit(key, kVersion).substr(0, hit(key, kVersion).size() - 5);
    return text + "END\r\n";
  }

  Outcome outcome_of(Operation operation, const std::string& answer) {
    session_.queue({operation, true, kId, kVersion, kSizes});
    EXPECT_TRUE(session_.flush());
    say(answer);
    Reply reply = {};
    EXPECT_TRUE(session_.next_reply(&reply)) << session_.failure();
    EXPECT_EQ(reply.request.id, kId);
    return reply.outcome;
  }

  static constexpr uint32_t kId = 42;
  static constexpr uint32_t kVersion = 3;
  static constexpr ItemSizes kSizes = {16, 20};
  ItemMaker maker_{1};
  TextSession session_{maker_};
  int peer_ = -1;
};

TEST_F(TextSessionTest, SpeaksTheTextProtocol) {
  session_.queue({Operation::kGet, true, kId, kVersion, kSizes});
  session_.queue({Operation::kSet, true, kId, kVersion, kSizes}, 9);
  session_.queue({Operation::kDelete, true, kId, kVersion, kSizes});
  ASSERT_TRUE(session_.flush());
  EXPECT_EQ(session_.outstanding(), 3u);
  EXPECT_EQ(heard(), "get " + key() + "\r\nset " + key() + " " +
                         std::to_string(maker_.flags(kId, kVersion)) + " 9 20\r\n" +
                         value(kVersion) + "\r\ndelete " + key() + "\r\n");
}

TEST_F(TextSessionTest, GetsShareALine) {
  constexpr uint32_t kGets = 30;
  std::string both = "get";
  for (uint32_t i = 0; i < kGets; ++i) {
    session_.queue({Operation::kGet, true, kId, kVersion, kSizes});
    both += (i == 24 ? "\r\nget " : " ") + key();
  }
  ASSERT_TRUE(session_.flush());
  session_.queue({Operation::kGet, true, kId, kVersion, kSizes});
  ASSERT_TRUE(session_.flush());
  EXPECT_EQ(heard(), both + "\r\nget " + key() + "\r\n");
}

TEST_F(TextSessionTest, FindsTheMissesOfALine) {
  constexpr uint32_t kIds[] = {1, 2, kId, 3, kId};
  const auto ask = [&] {
    for (const uint32_t id : kIds) session_.queue({Operation::kGet, true, id, kVersion, kSizes});
    EXPECT_TRUE(session_.flush());
  };
  const auto outcomes = [&] {
    std::vector<Outcome> seen;
    for (size_t i = 0; i < std::size(kIds); ++i) {
      Reply reply = {};
      EXPECT_TRUE(session_.next_reply(&reply)) << session_.failure();
      EXPECT_EQ(reply.request.id, kIds[i]);
      seen.push_back(reply.outcome);
    }
    return seen;
  };
  constexpr Outcome kMiss = Outcome::kMiss;
  constexpr Outcome kHit = Outcome::kHit;
  ask();
  say(hits({key(), key()}));
  EXPECT_EQ(outcomes(), (std::vector{kMiss, kMiss, kHit, kMiss, kHit}));
  ask();
  say(hits({key()}));
  EXPECT_EQ(outcomes(), (std::vector{kMiss, kMiss, kHit, kMiss, kMiss}));
  ask();
  say("END\r\n");
  EXPECT_EQ(outcomes(), std::vector(5, kMiss));
  ask();
  say(hits({key(), "another"}));
  EXPECT_EQ(outcomes(), (std::vector{kMiss, kMiss, kHit, kMiss, Outcome::kWrong}));
  ask();
  say("SERVER_ERROR busy\r\n");
  EXPECT_EQ(outcomes(), std::vector(5, Outcome::kRefused));
}

TEST_F(TextSessionTest, TellsHitsFromWrongOnes) {
  EXPECT_EQ(outcome_of(Operation::kGet, hit(key(), kVersion)), Outcome::kHit);
  EXPECT_EQ(outcome_of(Operation::kGet, "END\r\n"), Outcome::kMiss);
  EXPECT_EQ(outcome_of(Operation::kGet, hit(key(), kVersion - 1)), Outcome::kWrong);
  EXPECT_EQ(outcome_of(Operation::kGet, hit("another", kVersion)), Outcome::kWrong);
  std::string spoiled = hit(key(), kVersion);
  spoiled[spoiled.size() - 10] ^= 1;  // a byte of the value
  EXPECT_EQ(outcome_of(Operation::kGet, spoiled), Outcome::kWrong);
  EXPECT_EQ(session_.outstanding(), 0u);
}

TEST_F(TextSessionTest, TellsTheOtherReplies) {
  EXPECT_EQ(outcome_of(Operation::kSet, "STORED\r\n"), Outcome::kStored);
  EXPECT_EQ(outcome_of(Operation::kSet, "SERVER_ERROR out of memory storing object\r\n"),
            Outcome::kOutOfMemory);
  EXPECT_EQ(outcome_of(Operation::kDelete, "DELETED\r\n"), Outcome::kRemoved);
  EXPECT_EQ(outcome_of(Operation::kDelete, "NOT_FOUND\r\n"), Outcome::kNotFound);
  EXPECT_EQ(session_.first_refusal(), "");
  EXPECT_EQ(outcome_of(Operation::kSet, "SERVER_ERROR busy\r\n"), Outcome::kRefused);
  EXPECT_EQ(outcome_of(Operation::kSet, "END\r\n"), Outcome::kRefused);
  EXPECT_EQ(session_.first_refusal(), "SERVER_ERROR busy");
}

TEST_F(TextSessionTest, AnswersInPieces) {
  session_.queue({Operation::kGet, true, kId, kVersion, kSizes});
  session_.queue({Operation::kGet, true, kId, kVersion, kSizes});
  ASSERT_TRUE(session_.flush());
  const std::string both = hit(key(), kVersion) + "END\r\n";
  for (const char c : both.substr(0, both.size() - 1)) say(std::string(1, c));
  Reply reply = {};
  ASSERT_TRUE(session_.next_reply(&reply));
  EXPECT_EQ(reply.outcome, Outcome::kHit);
  say("\n");
  ASSERT_TRUE(session_.next_reply(&reply));
  EXPECT_EQ(reply.outcome, Outcome::kMiss);
}

TEST_F(TextSessionTest, ReadsStats) {
  std::map<std::string, std::string> stats;
  say("STAT curr_items 7\r\nSTAT version 1 2\r\nEND\r\n");
  ASSERT_TRUE(session_.ask_stats(&stats));
  EXPECT_EQ(stats["curr_items"], "7");
  EXPECT_EQ(stats["version"], "1 2");
}

TEST_F(TextSessionTest, AClosedConnectionIsAFailure) {
  session_.queue({Operation::kGet, true, kId, kVersion, kSizes});
  ASSERT_TRUE(session_.flush());
  say("VALUE abc");
  heard();
  hang_up();
  Reply reply = {};
  EXPECT_FALSE(session_.next_reply(&reply));
  EXPECT_NE(session_.failure(), "");
}

}  // namespace
}  // namespace warpcache::bench
