// SPDX-License-Identifier: Apache-2.0
//
// What every command does with the store, tested with protocol bytes. (tests/transcripts compares
// the exact texts with memcached.)
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "request/testing/dialogue.h"

namespace warpcache::request {
namespace {

store::StoreConfig small_store() {
  store::StoreConfig config;
  config.memory_limit = 16 * 1024 * 1024;
  config.threads = 1;
  config.seed = 7;
  return config;
}

class RequestTest : public ::testing::Test {
 protected:
  std::string say(const std::string& bytes) { return dialogue_.say(bytes); }

  // The CAS id that `gets` shows for `key`.
  std::string cas_of(const std::string& key) {
    const std::string reply = say("gets " + key + "\r\n");
    const size_t line_end = reply.find("\r\n");
    const size_t space = reply.rfind(' ', line_end);
    return reply.substr(space + 1, line_end - space - 1);
  }

  Dialogue dialogue_{small_store()};
};

TEST_F(RequestTest, SetThenGet) {
  EXPECT_EQ(say("set a 5 0 3\r\nabc\r\n"), "STORED\r\n");
  EXPECT_EQ(say("get a\r\n"), "VALUE a 5 3\r\nabc\r\nEND\r\n");
  EXPECT_EQ(say("get b\r\n"), "END\r\n");
  EXPECT_EQ(say("set a 6 0 1\r\nz\r\n"), "STORED\r\n");
  EXPECT_EQ(say("get a b a\r\n"), "VALUE a 6 1\r\nz\r\nVALUE a 6 1\r\nz\r\nEND\r\n");
}

TEST_F(RequestTest, AddAndReplaceMindPresence) {
  EXPECT_EQ(say("replace a 0 0 1\r\nx\r\n"), "NOT_STORED\r\n");
  EXPECT_EQ(say("add a 0 0 1\r\nx\r\n"), "STORED\r\n");
  EXPECT_EQ(say("add a 0 0 1\r\ny\r\n"), "NOT_STORED\r\n");
  EXPECT_EQ(say("replace a 0 0 1\r\nz\r\n"), "STORED\r\n");
  EXPECT_EQ(say("get a\r\n"), "VALUE a 0 1\r\nz\r\nEND\r\n");
}

TEST_F(RequestTest, FailedStoresWriteNothing) {
  say("set a 0 0 1\r\nx\r\n");
  const uint64_t before = dialogue_.store().stats().get(store::StoreCounter::kTotalItems);
  for (int i = 0; i < 100; ++i) {
    say("add a 0 0 1\r\ny\r\n");
    say("replace b 0 0 1\r\ny\r\n");
    say("cas a 0 0 1 99999999\r\ny\r\n");
    say("append b 0 0 1\r\ny\r\n");
  }
  EXPECT_EQ(dialogue_.store().stats().get(store::StoreCounter::kTotalItems), before);
}

TEST_F(RequestTest, AppendAndPrependKeepFlagsAndExpiry) {
  EXPECT_EQ(say("append a 0 0 1\r\nx\r\n"), "NOT_STORED\r\n");
  say("set a 9 100 2\r\nbb\r\n");
  EXPECT_EQ(say("append a 1 0 2\r\ncc\r\n"), "STORED\r\n");
  EXPECT_EQ(say("prepend a 1 0 2\r\naa\r\n"), "STORED\r\n");
  EXPECT_EQ(say("mg a f t v\r\n"), "VA 6 f9 t100\r\naabbcc\r\n");
}

TEST_F(RequestTest, CasComparesAndSets) {
  EXPECT_EQ(say("cas a 0 0 1 1\r\nx\r\n"), "NOT_FOUND\r\n");
  say("set a 0 0 1\r\nx\r\n");
  const std::string first = cas_of("a");
  EXPECT_EQ(say("cas a 0 0 1 " + first + "\r\ny\r\n"), "STORED\r\n");
  EXPECT_EQ(say("cas a 0 0 1 " + first + "\r\nz\r\n"), "EXISTS\r\n");
  EXPECT_GT(std::stoull(cas_of("a")), std::stoull(first));
  EXPECT_EQ(dialogue_.counters().read(Counter::kCasHits), 1u);
  EXPECT_EQ(dialogue_.counters().read(Counter::kCasBadval), 1u);
  EXPECT_EQ(dialogue_.counters().read(Counter::kCasMisses), 1u);
}

TEST_F(RequestTest, DeleteRemoves) {
  EXPECT_EQ(say("delete a\r\n"), "NOT_FOUND\r\n");
  say("set a 0 0 1\r\nx\r\n");
  EXPECT_EQ(say("delete a\r\n"), "DELETED\r\n");
  EXPECT_EQ(say("get a\r\n"), "END\r\n");
}

TEST_F(RequestTest, IncrWrapsAndDecrStopsAtZero) {
  EXPECT_EQ(say("incr a 1\r\n"), "NOT_FOUND\r\n");
  say("set a 3 0 20\r\n18446744073709551615\r\n");
  EXPECT_EQ(say("incr a 1\r\n"), "0\r\n");
  EXPECT_EQ(say("incr a 41\r\n"), "41\r\n");
  EXPECT_EQ(say("decr a 50\r\n"), "0\r\n");
  EXPECT_EQ(say("get a\r\n"), "VALUE a 3 20\r\n0                   \r\nEND\r\n");
  say("set b 0 0 1\r\n9\r\n");
  EXPECT_EQ(say("incr b 1\r\n"), "10\r\n");
  EXPECT_EQ(say("get b\r\n"), "VALUE b 0 2\r\n10\r\nEND\r\n");
  EXPECT_EQ(say("decr b 1\r\n"), "9\r\n");
  EXPECT_EQ(say("get b\r\n"), "VALUE b 0 2\r\n9 \r\nEND\r\n");
}

TEST_F(RequestTest, IncrOfTextIsAnError) {
  say("set a 0 0 1\r\nx\r\n");
  EXPECT_EQ(say("incr a 1\r\n"),
            "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
  EXPECT_EQ(say("get a\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\n");
}

// In small segments shorter values are chains already.
TEST_F(RequestTest, ANumberIsAsLongWithAnyMemory) {
  constexpr size_t kLongest = 16'000;
  const std::string key(250, 'k');
  for (const uint64_t segment_size : {16u * 1024, 64u * 1024}) {
    store::StoreConfig config = small_store();
    config.segment_size = segment_size;
    Dialogue dialogue(config);
    for (const size_t size : {kLongest, kLongest + 1}) {
      const std::string value = "12 " + std::string(size - 3, 'x');
      dialogue.say("set " + key + " 0 0 " + std::to_string(size) + "\r\n" + value + "\r\n");
      EXPECT_EQ(dialogue.say("incr " + key + " 1\r\n"),
                size == kLongest
                    ? "13\r\n"
                    : "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n")
          << segment_size;
      const std::string stored = size == kLongest ? "13" + std::string(size - 2, ' ') : value;
      EXPECT_EQ(dialogue.say("get " + key + "\r\n"),
                "VALUE " + key + " 0 " + std::to_string(size) + "\r\n" + stored + "\r\nEND\r\n");
    }
  }
}

TEST_F(RequestTest, ExpiryRelativeNegativeAndTouched) {
  say("set a 0 10 1\r\nx\r\nset b 0 -1 1\r\nx\r\nset c 0 0 1\r\nx\r\n");
  EXPECT_EQ(say("get a b c\r\n"), "VALUE a 0 1\r\nx\r\nVALUE c 0 1\r\nx\r\nEND\r\n");
  dialogue_.advance(9);
  EXPECT_EQ(say("touch a 20\r\n"), "TOUCHED\r\n");
  dialogue_.advance(11);
  EXPECT_EQ(say("get a\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\n");
  dialogue_.advance(9);
  EXPECT_EQ(say("get a\r\n"), "END\r\n");
  EXPECT_EQ(say("touch a 20\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(say("gat 5 c\r\n"), "VALUE c 0 1\r\nx\r\nEND\r\n");
  dialogue_.advance(5);
  EXPECT_EQ(say("get c\r\n"), "END\r\n");
}

TEST_F(RequestTest, RecacheIsWonOnce) {
  say("set a 0 30 1\r\nx\r\n");
  EXPECT_EQ(say("mg a R60 v\r\n"), "VA 1 W\r\nx\r\n");
  EXPECT_EQ(say("mg a R60 v\r\n"), "VA 1 Z\r\nx\r\n");
}

TEST_F(RequestTest, VivifyLeavesAStubThatOneClientWins) {
  EXPECT_EQ(say("mg a N30 t v\r\n"), "VA 0 t30 W\r\n\r\n");
  EXPECT_EQ(say("mg a N30 v\r\n"), "VA 0 Z\r\n\r\n");
  EXPECT_EQ(say("ms a 1\r\nx\r\n"), "HD\r\n");
  EXPECT_EQ(say("mg a N30 v\r\n"), "VA 1\r\nx\r\n");
}

TEST_F(RequestTest, InvalidatedItemsAreStaleUntilSet) {
  say("set a 0 0 1\r\nx\r\n");
  const std::string cas = cas_of("a");
  EXPECT_EQ(say("md a I T30\r\n"), "HD\r\n");
  EXPECT_EQ(say("mg a t v\r\n"), "VA 1 t30 X W\r\nx\r\n");
  EXPECT_EQ(say("mg a v\r\n"), "VA 1 Z X\r\nx\r\n");
  EXPECT_EQ(say("ms a 1 C" + cas + "\r\ny\r\n"), "EX\r\n");
  EXPECT_EQ(say("ms a 1 I C" + cas + "\r\ny\r\n"), "HD\r\n");
  EXPECT_EQ(say("mg a v\r\n"), "VA 1 Z X\r\ny\r\n");
  EXPECT_EQ(say("ms a 1\r\nz\r\n"), "HD\r\n");
  EXPECT_EQ(say("mg a v\r\n"), "VA 1\r\nz\r\n");
}

TEST_F(RequestTest, MetaArithmeticVivifies) {
  EXPECT_EQ(say("ma a v\r\n"), "NF\r\n");
  EXPECT_EQ(say("ma a N60 J13 v t\r\n"), "VA 2 t60\r\n13\r\n");
  EXPECT_EQ(say("ma a D10 v\r\n"), "VA 2\r\n23\r\n");
  EXPECT_EQ(say("ma a MD D30 v\r\n"), "VA 1\r\n0\r\n");
  EXPECT_EQ(say("ma a C1 v\r\n"), "EX\r\n");
}

TEST_F(RequestTest, ExplicitCasIsTakenAsGiven) {
  EXPECT_EQ(say("ms a 1 E1234 c\r\nx\r\n"), "HD c1234\r\n");
  EXPECT_EQ(say("ms a 1 C1234 E5 c\r\ny\r\n"), "HD c5\r\n");
  EXPECT_EQ(say("mg a c v\r\n"), "VA 1 c5\r\ny\r\n");
}

TEST_F(RequestTest, TooLargeDropsTheOldValueOfASet) {
  dialogue_.limits().item_size_max = 1024;
  say("set a 0 0 1\r\nx\r\nset b 0 0 1\r\nx\r\n");
  const std::string big(2000, 'x');
  EXPECT_EQ(say("set a 0 0 2000\r\n" + big + "\r\n"),
            "SERVER_ERROR object too large for cache\r\n");
  EXPECT_EQ(say("add b 0 0 2000\r\n" + big + "\r\n"),
            "SERVER_ERROR object too large for cache\r\n");
  EXPECT_EQ(say("get a b\r\n"), "VALUE b 0 1\r\nx\r\nEND\r\n");
}

TEST_F(RequestTest, TooLargeTogetherLeavesTheOldValue) {
  dialogue_.limits().item_size_max = 1024;
  const std::string half(600, 'x');
  say("set a 0 0 600\r\n" + half + "\r\n");
  for (const std::string command : {"append", "prepend"}) {
    EXPECT_EQ(say(command + " a 0 0 600\r\n" + half + "\r\n"), "NOT_STORED\r\n");
  }
  EXPECT_EQ(dialogue_.counters().value[static_cast<int>(Counter::kCmdSet)], 3u);
  EXPECT_EQ(say("get a\r\n"), "VALUE a 0 600\r\n" + half + "\r\nEND\r\n");
}

TEST_F(RequestTest, HitAndIdleTimesAreThoseBeforeTheCommand) {
  say("set a 0 0 1\r\nx\r\n");
  dialogue_.advance(4);
  EXPECT_EQ(say("mg a h l\r\n"), "HD h0 l4\r\n");
  EXPECT_EQ(say("mg a h l\r\n"), "HD h1 l0\r\n");
}

TEST_F(RequestTest, LongKeysThatShareAPrefixDiffer) {
  const std::string stem(249, 'k');
  say("set " + stem + "a 0 0 1\r\na\r\nset " + stem + "b 0 0 1\r\nb\r\n");
  EXPECT_EQ(say("get " + stem + "a\r\n"), "VALUE " + stem + "a 0 1\r\na\r\nEND\r\n");
  EXPECT_EQ(say("get " + stem + "b\r\n"), "VALUE " + stem + "b 0 1\r\nb\r\nEND\r\n");
  EXPECT_EQ(say("get " + stem + "\r\n"), "END\r\n");
}

TEST_F(RequestTest, MegabyteValues) {
  const std::string big(1000 * 1000, 'v');
  const std::string size = std::to_string(big.size());
  EXPECT_EQ(say("set a 0 0 " + size + "\r\n" + big + "\r\n"), "STORED\r\n");
  EXPECT_EQ(say("get a\r\n"), "VALUE a 0 " + size + "\r\n" + big + "\r\nEND\r\n");
  EXPECT_EQ(say("append a 0 0 3\r\nend\r\n"), "STORED\r\n");
  EXPECT_EQ(say("get a\r\n"), "VALUE a 0 1000003\r\n" + big + "end\r\nEND\r\n");
  EXPECT_EQ(say("prepend a 0 0 3\r\npre\r\n"), "STORED\r\n");
  EXPECT_EQ(say("get a\r\n"), "VALUE a 0 1000006\r\npre" + big + "end\r\nEND\r\n");
}

// As memcached 1.6.45 counts them.
TEST_F(RequestTest, EachCommandCounts) {
  const std::string live = "set k 0 0 1\r\n5\r\n";
  const std::string dead = "set k 0 -1 1\r\n5\r\n";
  const std::string none = live + "delete k\r\n";  // an expired item would stay
  using C = Counter;
  const struct {
    std::string before;
    std::string command;
    std::vector<Counter> counts;
  } cases[] = {
      {live, "get k\r\n", {C::kCmdGet, C::kGetHits}},
      {none, "get k\r\n", {C::kCmdGet, C::kGetMisses}},
      {dead, "get k\r\n", {C::kCmdGet, C::kGetMisses, C::kGetExpired}},
      {live, "gat 0 k\r\n", {C::kCmdTouch, C::kTouchHits}},
      {none, "gats 0 k\r\n", {C::kCmdTouch, C::kTouchMisses}},
      {dead, "gat 0 k\r\n", {C::kCmdTouch, C::kTouchMisses, C::kGetExpired}},
      {live, "mg k T0\r\n", {C::kCmdMeta, C::kCmdTouch, C::kTouchHits}},
      {none, "mg k T0\r\n", {C::kCmdMeta, C::kCmdGet, C::kGetMisses}},
      {none, "mg k N9\r\n", {C::kCmdMeta, C::kCmdGet, C::kGetMisses}},
      {dead, "mg k N9\r\n", {C::kCmdMeta, C::kCmdGet, C::kGetMisses, C::kGetExpired}},
      {live, "touch k 0\r\n", {C::kCmdTouch, C::kTouchHits}},
      {dead, "touch k 0\r\n", {C::kCmdTouch, C::kTouchMisses, C::kGetExpired}},
      {dead, "set k 0 0 1\r\nx\r\n", {C::kCmdSet, C::kGetExpired}},
      {dead, "add k 0 0 1\r\nx\r\n", {C::kCmdSet, C::kGetExpired}},
      {dead, "replace k 0 0 1\r\nx\r\n", {C::kCmdSet, C::kGetExpired}},
      {dead, "append k 0 0 1\r\nx\r\n", {C::kCmdSet, C::kGetExpired}},
      {dead, "cas k 0 0 1 1\r\nx\r\n", {C::kCmdSet, C::kCasMisses, C::kGetExpired}},
      {dead, "ms k 1 MA N9\r\nx\r\n", {C::kCmdMeta, C::kCmdSet, C::kGetExpired}},
      {live, "set k 0 0 1\r\nxyz12\r\n", {C::kCmdSet}},
      {live, "delete k\r\n", {C::kDeleteHits}},
      {dead, "delete k\r\n", {C::kDeleteMisses, C::kGetExpired}},
      {live, "md k I\r\n", {C::kCmdMeta}},
      {live, "md k x\r\n", {C::kCmdMeta, C::kDeleteHits}},
      {live, "md k C1\r\n", {C::kCmdMeta, C::kDeleteMisses}},
      {live, "incr k 1\r\n", {C::kIncrHits}},
      {dead, "decr k 1\r\n", {C::kDecrMisses, C::kGetExpired}},
      {none, "ma k N0\r\n", {C::kCmdMeta}},
      {dead, "ma k N0\r\n", {C::kCmdMeta, C::kGetExpired}},
      {live, "ma k MD\r\n", {C::kCmdMeta, C::kDecrHits}},
  };
  for (const auto& [before, command, counts] : cases) {
    say(none + before);
    const Counters then = dialogue_.counters();
    say(command);
    uint64_t expected[static_cast<int>(C::kCount)] = {};
    for (const Counter counter : counts) ++expected[static_cast<int>(counter)];
    for (int i = 0; i < static_cast<int>(C::kCount); ++i) {
      EXPECT_EQ(dialogue_.counters().value[i] - then.value[i], expected[i])
          << before << command << "counter " << i;
    }
  }
}

}  // namespace
}  // namespace warpcache::request
