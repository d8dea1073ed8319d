// SPDX-License-Identifier: Apache-2.0
//
// The checker on correct histories, and on histories with one error.
#include "stress/checker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <random>

namespace warpcache::stress {
namespace {

constexpr uint32_t kNow = 100;

class HistoryBuilder {
 public:
  Operation& add(uint32_t session, int64_t invoked, int64_t responded, Kind kind, Outcome outcome) {
    Operation op;
    op.session = session;
    op.invoked = invoked;
    op.responded = responded;
    op.kind = kind;
    op.outcome = outcome;
    op.clock_low = op.clock_high = kNow;
    history_.push_back(op);
    return history_.back();
  }
  Operation& set(uint32_t session, int64_t invoked, int64_t responded, const std::string& value,
                 uint64_t cas = 0) {
    Operation& op = add(session, invoked, responded, Kind::kSet, Outcome::kStored);
    op.value = value_of(value);
    if (cas != 0) show_cas(op, cas);
    return op;
  }
  Operation& hit(uint32_t session, int64_t invoked, int64_t responded, const std::string& value,
                 uint64_t cas = 0) {
    Operation& op = add(session, invoked, responded, Kind::kGet, Outcome::kHit);
    op.seen = value_of(value);
    op.shown = kShowsValue;
    if (cas != 0) show_cas(op, cas);
    return op;
  }
  Operation& miss(uint32_t session, int64_t invoked, int64_t responded) {
    return add(session, invoked, responded, Kind::kGet, Outcome::kMiss);
  }
  Operation& set_number(uint32_t session, int64_t invoked, int64_t responded, uint64_t number) {
    Operation& op = add(session, invoked, responded, Kind::kSet, Outcome::kStored);
    op.value = number_value(number, 0);
    return op;
  }
  Operation& incr(uint32_t session, int64_t invoked, int64_t responded, uint64_t by,
                  uint64_t result) {
    Operation& op = add(session, invoked, responded, Kind::kIncr, Outcome::kNumber);
    op.delta = by;
    op.seen_number = result;
    return op;
  }
  Operation& evict(int64_t invoked, int64_t responded, uint64_t cas) {
    Operation& op = add(63, invoked, responded, Kind::kEvict, Outcome::kOk);
    op.cas_compare = cas;
    return op;
  }
  static void show_cas(Operation& op, uint64_t cas) {
    op.seen_cas = cas;
    op.shown |= kShowsCas;
  }
  static void compare(Operation& op, uint64_t cas) {
    op.cas_compare = cas;
    op.options |= kComparesCas;
  }

  Linearizable check() const {
    CasBook book;
    return check_history(history_, {}, &book).verdict;
  }
  void expect_good() const {
    CasBook book;
    const CheckResult result = check_history(history_, {}, &book);
    EXPECT_EQ(result.verdict, Linearizable::kYes) << result.because;
  }
  void expect_bad() const { EXPECT_EQ(check(), Linearizable::kNo); }
  std::vector<Operation>& history() { return history_; }

 private:
  std::vector<Operation> history_;
};

TEST(Checker, EmptyHistory) { HistoryBuilder().expect_good(); }

TEST(Checker, ReadsSeeTheLastWrite) {
  HistoryBuilder good;
  good.miss(0, 0, 1);
  good.set(0, 2, 3, "a");
  good.hit(1, 4, 5, "a");
  good.set(1, 6, 7, "b");
  good.hit(0, 8, 9, "b");
  good.expect_good();
  good.hit(0, 10, 11, "a");  // an old value again
  good.expect_bad();
}

TEST(Checker, AMissAfterAWriteNeedsAReason) {
  HistoryBuilder bad;
  bad.set(0, 0, 1, "a");
  bad.miss(1, 2, 3);
  bad.expect_bad();
}

TEST(Checker, AValueNobodyWrote) {
  HistoryBuilder bad;
  bad.set(0, 0, 1, "a");
  bad.hit(1, 0, 3, "c");
  bad.expect_bad();
}

TEST(Checker, OperationsAtTheSameTimeMayTakeEitherOrder) {
  for (const char* seen : {"a", "b"}) {
    HistoryBuilder good;
    good.set(0, 0, 10, "a");
    good.set(1, 0, 10, "b");
    good.hit(2, 11, 12, seen);
    good.expect_good();
  }
  HistoryBuilder bad;  // two readers in succession see the two writes in both orders
  bad.set(0, 0, 10, "a");
  bad.set(1, 0, 10, "b");
  bad.hit(2, 11, 12, "a");
  bad.hit(3, 13, 14, "b");
  bad.expect_bad();
}

TEST(Checker, AReaderThatSawTheNewValueBindsThoseAfterIt) {
  HistoryBuilder bad;  // the write is not finished, but its value was seen
  bad.set(0, 0, 1, "a");
  bad.set(0, 2, 20, "b");
  bad.hit(1, 3, 4, "b");
  bad.hit(2, 5, 6, "a");
  bad.expect_bad();
}

TEST(Checker, ASessionsOwnOrderHoldsWithinOneBatch) {
  HistoryBuilder good;
  good.set(0, 0, 10, "a");
  good.hit(0, 0, 10, "a");
  good.set(0, 0, 10, "b");
  good.hit(0, 0, 10, "b");
  good.expect_good();
  HistoryBuilder bad;
  bad.set(0, 0, 10, "a");
  bad.set(0, 0, 10, "b");
  bad.hit(0, 0, 10, "a");
  bad.expect_bad();
}

TEST(Checker, OneOfTwoAddsWins) {
  for (const bool both : {false, true}) {
    HistoryBuilder history;
    for (uint32_t session : {0u, 1u}) {
      Operation& op = history.set(session, 0, 10, session == 0 ? "a" : "b");
      op.kind = Kind::kAdd;
      op.outcome = session == 0 || both ? Outcome::kStored : Outcome::kNotStored;
    }
    both ? history.expect_bad() : history.expect_good();
  }
}

TEST(Checker, CasSucceedsOnlyOnWhatWasRead) {
  HistoryBuilder good;
  good.set(0, 0, 1, "a");
  good.hit(1, 2, 3, "a", 7);
  HistoryBuilder::compare(good.set(1, 4, 5, "b"), 7);
  good.hit(0, 6, 7, "b", 9);
  good.expect_good();

  HistoryBuilder lost_update;  // another set came in between; its id was never seen
  lost_update.set(0, 0, 1, "a");
  lost_update.hit(1, 2, 3, "a", 7);
  lost_update.set(0, 4, 5, "c");
  HistoryBuilder::compare(lost_update.set(1, 6, 7, "b"), 7);
  lost_update.expect_bad();

  HistoryBuilder deleted;  // the same after the item was deleted and another one stored
  deleted.set(0, 0, 1, "a");
  deleted.hit(1, 2, 3, "a", 7);
  deleted.add(0, 4, 5, Kind::kDelete, Outcome::kDeleted);
  deleted.set(0, 6, 7, "c");
  HistoryBuilder::compare(deleted.set(1, 8, 9, "b"), 7);
  deleted.expect_bad();
}

TEST(Checker, ACasThatFailedNeedsAnotherId) {
  HistoryBuilder bad;
  bad.set(0, 0, 1, "a", 7);
  Operation& op = bad.set(0, 2, 3, "b");
  HistoryBuilder::compare(op, 7);
  op.outcome = Outcome::kExists;
  bad.expect_bad();
}

TEST(Checker, CasIdsRiseAndNameOneValue) {
  HistoryBuilder falls;
  falls.set(0, 0, 1, "a", 7);
  falls.set(0, 2, 3, "b", 6);
  falls.expect_bad();
  HistoryBuilder twice;
  twice.set(0, 0, 1, "a", 7);
  twice.add(0, 2, 3, Kind::kDelete, Outcome::kDeleted);
  twice.set(0, 4, 5, "b", 7);
  twice.expect_bad();
}

TEST(Checker, CountersLoseNothing) {
  HistoryBuilder good;
  good.set_number(0, 0, 1, 10);
  good.incr(1, 2, 10, 1, 12);
  good.incr(2, 2, 10, 1, 11);
  good.expect_good();
  HistoryBuilder bad;
  bad.set_number(0, 0, 1, 10);
  bad.incr(1, 2, 10, 1, 11);
  bad.incr(2, 2, 10, 1, 11);
  bad.expect_bad();
}

TEST(Checker, AnIncrThatRanTwice) {
  HistoryBuilder bad;
  bad.set_number(0, 0, 1, 10);
  bad.incr(1, 2, 3, 1, 11);
  bad.incr(1, 4, 5, 1, 13);
  bad.expect_bad();
}

TEST(Checker, ALowerNumberKeepsItsBlanks) {
  HistoryBuilder good;
  good.set_number(0, 0, 1, 10);
  Operation& op = good.incr(0, 2, 3, 1, 9);
  op.kind = Kind::kDecr;
  good.hit(0, 4, 5, "9 ");
  good.expect_good();
  good.hit(0, 6, 7, "9");
  good.expect_bad();
}

TEST(Checker, ConcatenationsAreWhole) {
  HistoryBuilder good;
  good.set(0, 0, 1, "b");
  Operation& after = good.set(1, 2, 10, "c");
  after.kind = Kind::kAppend;
  Operation& before = good.set(2, 2, 10, "a");
  before.kind = Kind::kPrepend;
  good.hit(0, 11, 12, "abc");
  good.expect_good();
  good.hit(0, 13, 14, "bc");
  good.expect_bad();
}

TEST(Checker, AnEvictionExplainsAMissOfThatItemOnce) {
  HistoryBuilder good;
  good.set(0, 0, 1, "a", 7);
  good.evict(2, 10, 7);
  good.miss(0, 3, 4);
  good.expect_good();
  HistoryBuilder other;
  other.set(0, 0, 1, "a", 7);
  other.evict(2, 10, 6);
  other.miss(0, 3, 4);
  other.expect_bad();
  HistoryBuilder again;
  again.set(0, 0, 1, "a", 7);
  again.evict(2, 10, 7);
  again.miss(0, 3, 4);
  again.hit(0, 5, 6, "a", 7);
  again.expect_bad();
  HistoryBuilder late;  // the miss came before the eviction
  late.set(0, 0, 1, "a", 7);
  late.miss(0, 2, 3);
  late.evict(4, 10, 7);
  late.expect_bad();
}

TEST(Checker, AnEvictedItemIsGoneUnlessTheEvictionIsOptional) {
  for (const bool optional : {false, true}) {
    HistoryBuilder history;
    history.set(0, 0, 1, "a", 7);
    Operation& op = history.evict(2, 3, 7);
    if (optional) op.options |= kOptional;
    history.hit(0, 4, 5, "a", 7);
    optional ? history.expect_good() : history.expect_bad();
  }
}

TEST(Checker, AnUnseenEvictionTakesWhateverItemThereIsAndItDoesNotComeBack) {
  for (const bool back : {false, true}) {
    HistoryBuilder history;
    history.set(0, 0, 1, "a", 7);
    history.set(0, 2, 3, "b", 8);
    history.miss(0, 4, 5);
    if (back) history.hit(0, 6, 7, "b", 8);
    history.evict(0, 10, kAnyItem).options |= kOptional;
    back ? history.expect_bad() : history.expect_good();
  }
}

TEST(Checker, ExpiryIsJudgedByTheClockThatTheOperationSaw) {
  HistoryBuilder good;
  good.set(0, 0, 1, "a").exptime = 2;
  good.hit(0, 2, 3, "a").clock_low = kNow + 1;
  good.history().back().clock_high = kNow + 1;
  Operation& at_the_tick = good.miss(0, 4, 5);
  at_the_tick.clock_low = kNow + 1;
  at_the_tick.clock_high = kNow + 2;
  good.expect_good();
  Operation& late = good.hit(0, 6, 7, "a");
  late.clock_low = late.clock_high = kNow + 2;
  good.expect_bad();
  HistoryBuilder early;
  early.set(0, 0, 1, "a").exptime = 2;
  early.miss(0, 2, 3).clock_low = kNow + 1;
  early.history().back().clock_high = kNow + 1;
  early.expect_bad();
}

TEST(Checker, WhatExpiredAtATickMayBeGoneForOneWhoCountsFromBeforeIt) {
  HistoryBuilder good;
  good.set(0, 0, 1, "a").exptime = 1;
  Operation& add = good.set(0, 2, 3, "b");
  add.kind = Kind::kAdd;
  add.exptime = 2;
  add.clock_high = kNow + 1;
  Operation& read = good.hit(0, 4, 5, "b");
  read.clock_low = read.clock_high = kNow + 1;
  read.shown |= kShowsTtl;
  read.seen_ttl = 1;
  good.expect_good();
  good.history()[1].clock_high = kNow;
  good.expect_bad();
}

TEST(Checker, ATouchIsNotLost) {
  for (const bool lost : {false, true}) {
    HistoryBuilder history;
    history.set(0, 0, 1, "a").exptime = 2;
    history.add(1, 2, 3, Kind::kTouch, Outcome::kTouched).exptime = 100;
    Operation& op = lost ? history.miss(0, 4, 5) : history.hit(0, 4, 5, "a");
    op.clock_low = op.clock_high = kNow + 3;
    lost ? history.expect_bad() : history.expect_good();
  }
}

TEST(Checker, AReadThatWasMissedForWantOfPinsHasTouchedNothing) {
  const std::string large(1'100'000, 'v');
  for (const bool gone : {false, true}) {
    HistoryBuilder history;
    history.set(0, 0, 1, large).exptime = 100;
    Operation& read = history.miss(1, 2, 3);
    read.options |= kMayBeUnpinned | kTouches;
    read.exptime = 2;
    Operation& op = gone ? history.miss(0, 4, 5) : history.hit(0, 4, 5, large);
    op.clock_low = op.clock_high = kNow + 3;
    gone ? history.expect_bad() : history.expect_good();
  }
}

TEST(Checker, FlushEmptiesTheKeyForGood) {
  HistoryBuilder bad;
  bad.set(0, 0, 1, "a");
  bad.add(1, 2, 3, Kind::kFlush, Outcome::kOk);
  bad.hit(0, 4, 5, "a");
  bad.expect_bad();
  HistoryBuilder good;
  good.set(0, 0, 4, "a");
  good.add(1, 2, 3, Kind::kFlush, Outcome::kOk);
  good.hit(0, 5, 6, "a");
  good.expect_good();
}

TEST(Checker, OneClientWinsTheRecache) {
  for (const bool two : {false, true}) {
    HistoryBuilder history;
    history.set(0, 0, 1, "a");
    history.add(0, 2, 3, Kind::kDelete, Outcome::kDeleted).options = kInvalidates;
    for (uint32_t session : {1u, 2u}) {
      Operation& op = history.hit(session, 4, 10, "a");
      op.options = kMeta;
      op.shown |= kShowsSigns;
      op.signs = session == 1 || two ? kWon | kStale : kStale | kAlreadySent;
    }
    two ? history.expect_bad() : history.expect_good();
  }
}

TEST(Checker, AStaleStoreLeavesAStaleItem) {
  HistoryBuilder good;
  good.set(0, 0, 1, "a", 7);
  good.set(0, 2, 3, "b", 9);
  Operation& op = good.set(1, 4, 5, "c", 11);
  op.options = kMeta | kInvalidates;
  HistoryBuilder::compare(op, 7);
  Operation& read = good.hit(0, 6, 7, "c", 11);
  read.options = kMeta;
  read.shown |= kShowsSigns;
  read.signs = kStale | kWon;
  good.expect_good();
  good.history().back().signs = 0;
  good.expect_bad();
}

TEST(Checker, AnIdThatWasNeverShownMayBeNewer) {
  HistoryBuilder good;
  good.set(0, 0, 1, "a");
  Operation& op = good.set(1, 2, 3, "b", 11);
  op.options = kMeta | kInvalidates;
  HistoryBuilder::compare(op, 7);
  Operation& read = good.hit(0, 4, 5, "b", 11);
  read.options = kMeta;
  read.shown |= kShowsSigns;
  HistoryBuilder fresh = good;
  fresh.expect_good();  // it was 7
  read.signs = kStale | kWon;
  good.expect_good();  // it was above 7
  read.signs = kAlreadySent;
  good.expect_bad();
}

TEST(Checker, AStoreThatFindsNoMemoryMayHaveToRemove) {
  for (const bool drops : {false, true}) {
    HistoryBuilder missed;
    missed.set(0, 0, 1, "a");
    Operation& failed = missed.set(0, 2, 3, "b");
    failed.outcome = Outcome::kNoMemory;
    if (drops) failed.options = kDropsOnFailure;
    HistoryBuilder read = missed;
    missed.miss(0, 4, 5);
    read.hit(0, 4, 5, "a");
    drops ? missed.expect_good() : missed.expect_bad();
    drops ? read.expect_bad() : read.expect_good();
  }
}

// A random run on a real register is correct; with one changed outcome it is not, for changes that
// nothing else explains.
TEST(Checker, LongRandomHistories) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    HistoryBuilder history;
    uint64_t number = 1000;
    history.set_number(0, 0, 1, number);
    constexpr uint32_t kSessions = 8;
    int64_t time = 50;
    // Operations take effect in order. Each is extended in both directions up to its session's
    // neighbours.
    for (uint32_t i = 0; i < 2000; ++i, time += 10) {
      const uint32_t session = i % kSessions;
      const int64_t start = time - static_cast<int64_t>(random() % 40);
      const int64_t end = time + static_cast<int64_t>(random() % 40);
      if (random() % 3 == 0) {
        history.hit(session, start, end, std::to_string(number));
      } else {
        const uint64_t by = 1 + random() % 9;
        number += by;
        history.incr(session, start, end, by, number);
      }
    }
    history.expect_good();
    Operation& victim = history.history()[1 + random() % 2000];
    if (victim.kind == Kind::kGet) {
      victim.seen = value_of("7");
    } else {
      victim.seen_number += 10'000'000;
    }
    history.expect_bad();
  }
}

TEST(Checker, HashOfAConcatenationIsThatOfTheWhole) {
  const std::string a = make_value(7, 123);
  const std::string b = make_value(8, 4567);
  EXPECT_TRUE(concatenate(value_of(a), value_of(b)).same_bytes(value_of(a + b)));
  EXPECT_FALSE(concatenate(value_of(b), value_of(a)).same_bytes(value_of(a + b)));
  std::string torn = a + b;
  std::swap(torn[200], torn[201]);
  if (torn != a + b) {
    EXPECT_FALSE(value_of(torn).same_bytes(value_of(a + b)));
  }
  EXPECT_TRUE(number_value(9, 3).same_bytes(value_of("9  ")));
}

}  // namespace
}  // namespace warpcache::stress
