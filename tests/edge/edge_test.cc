// SPDX-License-Identifier: Apache-2.0
//
// EDGE's queues and scheduler: each event runs exactly once, whatever happens beside it.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "edge/edge_fixture.h"

namespace warpcache::edge {
namespace {

// Events of the tests that count them: more on a GPU (EDGE_TEST_EVENTS).
uint64_t many_events() {
  constexpr uint64_t kHere = 400;
  const char* const wanted = std::getenv("EDGE_TEST_EVENTS");
  return wanted == nullptr ? kHere : std::strtoull(wanted, nullptr, 10);
}

TEST_F(EdgeTest, AnEventRunsAndSaysItsCode) {
  OPEN_OR_SKIP();
  const uint32_t id = add_event(kAdd, sizeof(AddParameters), 8);
  uint32_t number = 0;
  ASSERT_EQ(schedule(id, AddParameters{40, 2}, &number), EDGE_OK);
  uint32_t done = 0;
  uint32_t code = 0;
  ASSERT_TRUE(wait_for(id, &done, &code));
  EXPECT_EQ(done, number);
  EXPECT_EQ(code, 42u);
}

TEST_F(EdgeTest, ALongEntryIsTakenWhole) {
  OPEN_OR_SKIP();
  const uint32_t id = add_event(kSumLong, sizeof(LongParameters), 4);
  for (uint32_t round = 1; round < 12; ++round) {
    LongParameters parameters;
    uint32_t sum = 0;
    for (uint32_t& word : parameters.words) sum += word = round * 1000 + sum % 77;
    ASSERT_EQ(schedule(id, parameters), EDGE_OK);
    uint32_t code = 0;
    ASSERT_TRUE(wait_for(id, nullptr, &code));
    EXPECT_EQ(code, sum);
  }
}

// Each event adds 1 to the counter of its place. Where there are more events than counters, all
// counters are equal at the end.
void run_many(EdgeTest& test, uint32_t id, uint64_t events) {
  const uint64_t counters = std::min<uint64_t>(events, EdgeTest::kCounters);
  events = events / counters * counters;
  uint64_t submitted = 0;
  uint64_t completed = 0;
  uint64_t seen = 0;
  auto last = Clock::now();
  while (completed < events) {
    for (uint32_t i = 0; i < 64 && submitted < events; ++i) {
      const auto index = static_cast<uint32_t>(submitted % counters);
      const edge_status status = test.schedule(id, test.counting(index));
      if (status != EDGE_OK) {
        ASSERT_EQ(status, EDGE_FULL);
        break;
      }
      ++submitted;
    }
    uint32_t number = 0;
    uint32_t code = 1;
    while (edge_poll(test.queues_, id, &number, &code) == EDGE_OK) {
      ASSERT_EQ(number, static_cast<uint32_t>(++completed));
      ASSERT_EQ(code, 0u);
    }
    if (completed != seen) {
      seen = completed;
      last = Clock::now();
    } else if (Clock::now() - last > kPatience) {
      FAIL() << completed << " of " << submitted << " events have completed; "
             << edge_status_text(edge_check(test.runtime_)) << edge_why(test.runtime_);
    }
  }
  for (uint32_t i = 0; i < counters; ++i) ASSERT_EQ(test.counter(i), events / counters) << i;
}

TEST_F(EdgeTest, EachEventRunsOnceThroughManyWraps) {
  config_.depth_max = 1024;
  OPEN_OR_SKIP();
  const uint64_t events = many_events();
  run_many(*this, add_event(kCount, sizeof(CountParameters), events > 1000 ? 1024 : 16), events);
}

TEST_F(EdgeTest, InTheOrderOfSubmission) {
  OPEN_OR_SKIP();
  run_many(*this, add_event(kCount, sizeof(CountParameters), 16, EDGE_IN_ORDER), many_events() / 4);
}

TEST_F(EdgeTest, ByGraphsThatTheDeviceLaunches) {
  config_.form = EDGE_GRAPH_LAUNCH;
  OPEN_OR_SKIP();
  run_many(*this, add_event(kCount, sizeof(CountParameters), 32), many_events() / 40);
  edge_counts counts = {};
  EXPECT_EQ(edge_read_counts(runtime_, &counts), EDGE_OK);
  std::printf("%llu launches found a graph that was still ending\n",
              static_cast<unsigned long long>(counts.busy_launches));
}

TEST_F(EdgeTest, ManyBlocksAreOneEvent) {
  OPEN_OR_SKIP();
  const uint32_t id = add_event(kCount, sizeof(CountParameters), 8, EDGE_MODIFIABLE, 5);
  const uint32_t kBlocks[] = {0, 1, 7, 700};
  for (uint32_t i = 0; i < 4; ++i)
    ASSERT_EQ(schedule(id, counting(i), nullptr, kBlocks[i]), EDGE_OK);
  for (uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(wait_for(id, nullptr, nullptr));
  EXPECT_EQ(counter(0), 5u);
  EXPECT_EQ(counter(1), 1u);
  EXPECT_EQ(counter(2), 7u);
  EXPECT_EQ(counter(3), 700u);
}

TEST_F(EdgeTest, AFullQueueRefusesAndLosesNothing) {
  OPEN_OR_SKIP();
  const uint32_t id = add_event(kCount, sizeof(CountParameters), 4);
  uint32_t accepted = 0;
  while (schedule(id, counting(accepted)) == EDGE_OK) ++accepted;
  EXPECT_EQ(accepted, 4u);  // completions that nobody takes keep their entries
  EXPECT_EQ(schedule(id, counting(9)), EDGE_FULL);
  for (uint32_t i = 0; i < accepted; ++i) ASSERT_TRUE(wait_for(id, nullptr, nullptr));
  ASSERT_EQ(schedule(id, counting(accepted)), EDGE_OK);
  ASSERT_TRUE(wait_for(id, nullptr, nullptr));
  for (uint32_t i = 0; i <= accepted; ++i) EXPECT_EQ(counter(i), 1u);
  EXPECT_EQ(counter(9), 0u);
}

TEST_F(EdgeTest, CompletionsOutOfOrder) {
  OPEN_OR_SKIP();
  const uint32_t id = add_event(kSpin, sizeof(SpinParameters), 4);
  uint32_t slow = 0;
  uint32_t fast = 0;
  ASSERT_EQ(schedule(id, SpinParameters{3'000'000}, &slow), EDGE_OK);
  ASSERT_EQ(schedule(id, SpinParameters{0}, &fast), EDGE_OK);
  uint32_t code = 1;
  ASSERT_TRUE(eventually([&] { return edge_take(queues_, id, fast, &code) == EDGE_OK; }));
  EXPECT_EQ(code, 0u);
  EXPECT_EQ(edge_take(queues_, id, slow, &code), EDGE_NOT_DONE);
  ASSERT_TRUE(eventually([&] { return edge_take(queues_, id, slow, &code) == EDGE_OK; }));
}

TEST_F(EdgeTest, UnregisteredInFlight) {
  OPEN_OR_SKIP();
  const uint32_t spins = add_event(kSpin, sizeof(SpinParameters), 8);
  const uint32_t other = add_event(kAdd, sizeof(AddParameters), 8);
  for (uint32_t i = 0; i < 8; ++i) ASSERT_EQ(schedule(spins, SpinParameters{5000}), EDGE_OK);
  EXPECT_EQ(edge_unregister_event(runtime_, spins), EDGE_OK) << edge_why(runtime_);
  EXPECT_EQ(schedule(spins, SpinParameters{0}), EDGE_CLOSED);
  // The number is free for another kernel, whose queues are new.
  const uint32_t again = add_event(kCount, sizeof(CountParameters), 4);
  EXPECT_EQ(again, spins);
  ASSERT_EQ(schedule(again, counting(7)), EDGE_OK);
  ASSERT_EQ(schedule(other, AddParameters{1, 2}), EDGE_OK);
  uint32_t number = 0;
  ASSERT_TRUE(wait_for(again, &number, nullptr));
  EXPECT_EQ(number, 1u);
  uint32_t code = 0;
  ASSERT_TRUE(wait_for(other, nullptr, &code));
  EXPECT_EQ(code, 3u);
  EXPECT_EQ(counter(7), 1u);
}

TEST_F(EdgeTest, RegistrationsComeAndGo) {
  OPEN_OR_SKIP();
  for (uint32_t round = 0; round < 10; ++round) {
    const uint32_t id = add_event(kCount, sizeof(CountParameters), 4, EDGE_IN_ORDER, 3);
    for (uint32_t i = 0; i < 6; ++i) {
      ASSERT_EQ(schedule(id, counting(round)), EDGE_OK);
      ASSERT_TRUE(wait_for(id, nullptr, nullptr));
    }
    ASSERT_EQ(edge_unregister_event(runtime_, id), EDGE_OK);
    EXPECT_EQ(counter(round), 18u);
  }
}

TEST_F(EdgeTest, ModifiedInFlight) {
  OPEN_OR_SKIP();
  const uint32_t id = add_event(kCount, sizeof(CountParameters), 8, 0, 2);
  ASSERT_EQ(schedule(id, counting(0)), EDGE_OK);
  ASSERT_TRUE(wait_for(id, nullptr, nullptr));
  ASSERT_EQ(edge_modify_event(runtime_, id, 9), EDGE_OK);
  ASSERT_EQ(schedule(id, counting(1)), EDGE_OK);
  ASSERT_TRUE(wait_for(id, nullptr, nullptr));
  EXPECT_EQ(counter(0), 2u);
  EXPECT_EQ(counter(1), 9u);
  EXPECT_EQ(schedule(id, counting(1), nullptr, 3), EDGE_BAD_ARGUMENT);  // not modifiable by entries
}

TEST_F(EdgeTest, PausedEventsWaitAndRunOnce) {
  OPEN_OR_SKIP();
  const uint32_t id = add_event(kCount, sizeof(CountParameters), 32, EDGE_IN_ORDER);
  for (uint32_t round = 0; round < 4; ++round) {
    for (uint32_t i = 0; i < 8; ++i) ASSERT_EQ(schedule(id, counting(round * 8 + i)), EDGE_OK);
    ASSERT_EQ(edge_pause(runtime_), EDGE_OK) << edge_why(runtime_);
    ASSERT_EQ(edge_resume(runtime_), EDGE_OK) << edge_why(runtime_);
    for (uint32_t i = 0; i < 8; ++i) ASSERT_TRUE(wait_for(id, nullptr, nullptr));
  }
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(counter(i), 1u);
}

TEST_F(EdgeTest, TheEndCancelsWhatDidNotRun) {
  OPEN_OR_SKIP();
  const uint32_t id = add_event(kSpin, sizeof(SpinParameters), 64);
  for (uint32_t i = 0; i < 64; ++i) ASSERT_EQ(schedule(id, SpinParameters{10000}), EDGE_OK);
  edge_queues& queues = *queues_;
  ASSERT_EQ(edge_pause(runtime_), EDGE_OK);
  // As edge_close() does, which takes the memory as well: all have ended, with one of two codes.
  ASSERT_EQ(edge_unregister_event(runtime_, id), EDGE_OK);
  EXPECT_TRUE(queues.idle(queues.event(id)));
  ASSERT_EQ(edge_resume(runtime_), EDGE_OK);
}

TEST_F(EdgeTest, SelfFreeingQueuesNeedNoConsumer) {
  OPEN_OR_SKIP();
  const uint32_t id = add_event(kCount, sizeof(CountParameters), 4, EDGE_SELF_FREEING);
  for (uint32_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(eventually([&] { return schedule(id, counting(0)) == EDGE_OK; }));
  }
  EXPECT_TRUE(eventually([&] { return counter(0) == 50; }));
}

TEST_F(EdgeTest, AnEventKernelSubmitsEvents) {
  OPEN_OR_SKIP();
  const uint32_t chain = add_event(kChain, sizeof(ChainParameters), 8, EDGE_DEVICE_QUEUE);
  const uint32_t starter = add_event(kStart, sizeof(StartParameters), 4);
  const StartParameters first = {{counting(0).counters, 30, 0}, chain, 0};
  EXPECT_EQ(schedule(chain, first.chain), EDGE_BAD_ARGUMENT);  // the host cannot
  ASSERT_EQ(schedule(starter, first), EDGE_OK);
  uint32_t code = 1;
  ASSERT_TRUE(wait_for(starter, nullptr, &code));
  EXPECT_EQ(code, 0u);
  EXPECT_TRUE(eventually([&] { return counter(0) == 31; })) << counter(0);
  EXPECT_EQ(edge_unregister_event(runtime_, chain), EDGE_OK);
}

TEST_F(EdgeTest, ATimerTicks) {
  OPEN_OR_SKIP();
  const TickParameters tick = {0, 5, counting(0).counters};
  edge_event event = {};
  event.function = kTick;
  event.blocks = 1;
  event.parameter_bytes = sizeof(tick);
  event.depth = 16;
  event.period_us = 2000;
  event.timer_parameters = &tick;
  uint32_t id = 0;
  ASSERT_EQ(edge_register_event(runtime_, &event, &id), EDGE_OK) << edge_why(runtime_);
  EXPECT_TRUE(eventually([&] { return counter(5) >= 20; })) << counter(5);
  EXPECT_EQ(edge_unregister_event(runtime_, id), EDGE_OK) << edge_why(runtime_);
  const uint32_t ticks = counter(5);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(counter(5), ticks);
}

TEST_F(EdgeTest, CompletionsAreAnnouncedOnceForSeveral) {
  OPEN_OR_SKIP();
  edge_event event = {};
  event.function = kCount;
  event.blocks = 1;
  event.parameter_bytes = sizeof(CountParameters);
  event.depth = 64;
  event.notify_count = 8;
  event.notify_us_max = 60'000'000;
  uint32_t id = 0;
  ASSERT_EQ(edge_register_event(runtime_, &event, &id), EDGE_OK);
  for (uint32_t i = 0; i < 7; ++i) {
    ASSERT_EQ(schedule(id, counting(0)), EDGE_OK);
    ASSERT_TRUE(wait_for(id, nullptr, nullptr));
  }
  EXPECT_EQ(edge_notified(queues_, id), 0u);
  ASSERT_EQ(schedule(id, counting(0)), EDGE_OK);
  EXPECT_TRUE(eventually([&] { return edge_notified(queues_, id) == 8; }));
  ASSERT_EQ(edge_unregister_event(runtime_, id), EDGE_OK);
  event.notify_us_max = 1000;
  ASSERT_EQ(edge_register_event(runtime_, &event, &id), EDGE_OK);
  ASSERT_EQ(schedule(id, counting(0)), EDGE_OK);
  EXPECT_TRUE(eventually([&] { return edge_notified(queues_, id) == 1; }));  // by time
}

TEST_F(EdgeTest, AReleasedBarrierLetsAllGoOn) {
  OPEN_OR_SKIP();
  const uint32_t id = add_event(kWait, sizeof(WaitParameters), 4, 0, 3);
  ASSERT_EQ(schedule(id, WaitParameters{counting(0).counters, 2, 100'000'000}), EDGE_OK);
  ASSERT_TRUE(eventually([&] { return counter(0) == 3; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(counter(1), 0u);
  ASSERT_EQ(edge_release_barrier(runtime_, 2), EDGE_OK);
  uint32_t code = 1;
  ASSERT_TRUE(wait_for(id, nullptr, &code));
  EXPECT_EQ(code, 0u);
  EXPECT_EQ(counter(1), 3u);
}

TEST_F(EdgeTest, SeveralThreadsSubmitToOneQueue) {
  OPEN_OR_SKIP();
  const uint32_t id = add_event(kCount, sizeof(CountParameters), 8);
  constexpr uint32_t kEach = 60;
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([this, id, thread] {
      for (uint32_t i = 0; i < kEach; ++i) {
        while (schedule(id, counting(thread * kEach + i)) != EDGE_OK) std::this_thread::yield();
      }
    });
  }
  for (uint32_t i = 0; i < 3 * kEach; ++i) ASSERT_TRUE(wait_for(id, nullptr, nullptr));
  for (std::thread& thread : threads) thread.join();
  for (uint32_t i = 0; i < 3 * kEach; ++i) EXPECT_EQ(counter(i), 1u);
}

TEST_F(EdgeTest, BadArguments) {
  OPEN_OR_SKIP();
  edge_event event = {};
  event.function = kAdd;
  event.blocks = 1;
  event.parameter_bytes = sizeof(AddParameters);
  event.depth = 8;
  uint32_t id = 0;
  const auto refused = [&](auto change) {
    edge_event wrong = event;
    change(wrong);
    return edge_register_event(runtime_, &wrong, &id) == EDGE_BAD_ARGUMENT;
  };
  EXPECT_TRUE(refused([](edge_event& e) { e.function = 99; }));
  EXPECT_TRUE(refused([](edge_event& e) { e.blocks = 0; }));
  EXPECT_TRUE(refused([](edge_event& e) { e.depth = 7; }));
  EXPECT_TRUE(refused([](edge_event& e) { e.depth = 1 << 20; }));
  EXPECT_TRUE(refused([](edge_event& e) { e.parameter_bytes = 4; }));
  EXPECT_EQ(schedule(3, AddParameters{1, 2}), EDGE_CLOSED);
  EXPECT_EQ(edge_unregister_event(runtime_, 31), EDGE_CLOSED);
  EXPECT_EQ(edge_unregister_event(runtime_, 32), EDGE_BAD_ARGUMENT);
}

// How blocks wait for work.
class EdgeWaitTest : public EdgeTest, public ::testing::WithParamInterface<edge_wait> {};

TEST_P(EdgeWaitTest, EachEventRunsOnce) {
  config_.wait = GetParam();
  config_.release_count = 8;
  config_.release_us_max = 200;
  OPEN_OR_SKIP();
  run_many(*this, add_event(kCount, sizeof(CountParameters), 16), many_events() / 4);
  edge_counts counts = {};
  ASSERT_EQ(edge_read_counts(runtime_, &counts), EDGE_OK);
  EXPECT_EQ(counts.queue_polls == 0, GetParam() == EDGE_WAIT_TARGETED);
  EXPECT_EQ(counts.barrier_polls == 0, GetParam() == EDGE_WAIT_POLL);
}

INSTANTIATE_TEST_SUITE_P(Ways, EdgeWaitTest,
                         ::testing::Values(EDGE_WAIT_TARGETED, EDGE_WAIT_RELEASE_ALL,
                                           EDGE_WAIT_POLL));

TEST_F(EdgeTest, UrgentEventsOvertakeThoseThatWait) {
  config_.workers = 1;
  OPEN_OR_SKIP();
  const uint32_t slow = add_event(kSpin, sizeof(SpinParameters), 64);
  const uint32_t urgent = add_event(kAdd, sizeof(AddParameters), 4, 0, 1, EDGE_PRIORITY_1);
  for (uint32_t i = 0; i < 40; ++i) ASSERT_EQ(schedule(slow, SpinParameters{20000}), EDGE_OK);
  ASSERT_EQ(schedule(urgent, AddParameters{1, 2}), EDGE_OK);
  uint32_t completed = 0;
  ASSERT_TRUE(eventually([&] {
    if (edge_poll(queues_, slow, nullptr, nullptr) == EDGE_OK) ++completed;
    return edge_poll(queues_, urgent, nullptr, nullptr) == EDGE_OK;
  }));
  EXPECT_LT(completed, 40u);
}

TEST_F(EdgeTest, NoOtherEventStartsBesideOneOfPriority2) {
  OPEN_OR_SKIP();
  const uint32_t urgent = add_event(kSpin, sizeof(SpinParameters), 4, 0, 1, EDGE_PRIORITY_2);
  const uint32_t normal = add_event(kCount, sizeof(CountParameters), 4);
  ASSERT_EQ(schedule(urgent, SpinParameters{1'000'000}), EDGE_OK);
  ASSERT_TRUE(eventually([&] { return queues_->event(urgent).taken == 1; }));
  ASSERT_EQ(schedule(normal, counting(0)), EDGE_OK);
  // While the urgent event runs its completion is missing, and so must be the count.
  uint32_t code = 0;
  ASSERT_TRUE(eventually([&] {
    const uint32_t count = counter(0);
    const bool ended = edge_take(queues_, urgent, 1, &code) == EDGE_OK;
    EXPECT_TRUE(ended || count == 0);
    return ended;
  }));
  ASSERT_TRUE(wait_for(normal, nullptr, nullptr));
  EXPECT_EQ(counter(0), 1u);
}

TEST_F(EdgeTest, ReservedWorkersTakeUrgentEventsOnly) {
  config_.workers = 2;
  config_.reserved_workers = 1;
  OPEN_OR_SKIP();
  const uint32_t slow = add_event(kSpin, sizeof(SpinParameters), 8);
  const uint32_t urgent = add_event(kAdd, sizeof(AddParameters), 4, 0, 1, EDGE_PRIORITY_1);
  uint32_t last = 0;
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_EQ(schedule(slow, SpinParameters{2'000'000}, &last), EDGE_OK);
  }
  ASSERT_TRUE(eventually([&] { return queues_->event(slow).taken != 0; }));
  ASSERT_EQ(schedule(urgent, AddParameters{1, 2}), EDGE_OK);
  ASSERT_TRUE(wait_for(urgent, nullptr, nullptr));
  EXPECT_EQ(edge_take(queues_, slow, last, nullptr), EDGE_NOT_DONE);
}

}  // namespace
}  // namespace warpcache::edge
