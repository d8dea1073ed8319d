// SPDX-License-Identifier: Apache-2.0
//
// For tests: maintenance by a crew of threads of the host, as the threads of a block do it on a
// device.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <thread>

#include "store/reclaim/maintainer.h"
#include "store/testing/store_fixture.h"

namespace warpcache::store {

// Its threads serve until it goes; whoever made it leads.
class ThreadCrew {
 public:
  // 0 workers: the leader is alone.
  ThreadCrew(Store* store, uint32_t workers)
      : store_(store), contexts_(workers + 1), sizes_(kWindowGranules) {
    for (ThreadContext& context : contexts_) {
      EXPECT_EQ(store->register_thread(&context), Status::kOk);
    }
    crew_.muster(workers, sizes_.data());
    for (uint32_t i = 0; i < workers; ++i) {
      threads_.emplace_back([this, i] { crew_.serve(core(), contexts_[i + 1], i); });
    }
  }
  ~ThreadCrew() {
    crew_.dismiss();
    for (std::thread& thread : threads_) thread.join();
    for (ThreadContext& context : contexts_) store_->unregister_thread(&context);
  }
  ThreadCrew(const ThreadCrew&) = delete;
  ThreadCrew& operator=(const ThreadCrew&) = delete;

  Core core() const { return store_->ref().core; }
  Crew* crew() { return &crew_; }
  ThreadContext* leader() { return contexts_.data(); }

 private:
  Store* store_;
  Crew crew_;
  std::vector<ThreadContext> contexts_;
  std::vector<uint16_t> sizes_;
  std::vector<std::thread> threads_;
};

// Hands that are threads without crews of their own, for a gang of maintenance.
class ThreadGang {
 public:
  ThreadGang(Store* store, uint32_t hands) : store_(store), contexts_(hands) {
    gang_.shift = 1;
    gang_.count = hands;
    for (ThreadContext& context : contexts_) {
      EXPECT_EQ(store->register_thread(&context), Status::kOk);
    }
    gang_.hands = static_cast<Hand*>(::operator new(hands * sizeof(Hand)));
    for (uint32_t i = 0; i < hands; ++i) {
      Hand* const hand = new (&gang_.hands[i]) Hand(store->ref().core, contexts_[i].counters);
      hand->crew.muster(0, nullptr);
      threads_.emplace_back([this, hand] { hand->serve(gang_.shift, &gang_.over); });
    }
  }
  ~ThreadGang() {
    gang_.dismiss();
    for (std::thread& thread : threads_) thread.join();
    ::operator delete(gang_.hands);
    for (ThreadContext& context : contexts_) store_->unregister_thread(&context);
  }
  ThreadGang(const ThreadGang&) = delete;
  ThreadGang& operator=(const ThreadGang&) = delete;

  Gang* gang() { return &gang_; }

 private:
  Store* store_;
  std::vector<ThreadContext> contexts_;
  Gang gang_;
  std::vector<std::thread> threads_;
};

// What store::Maintenance is, with a crew and with hands. REQUIRES: the store has no maintenance
// thread of its own and nobody calls its make_room() or maintain().
class CrewMaintenance {
 public:
  CrewMaintenance(Store* store, uint32_t workers, uint32_t hands)
      : crew_(store, workers),
        gang_(store, hands),
        maintainer_(crew_.core(), crew_.leader(), crew_.crew(), gang_.gang()),
        thread_([this] { run(); }) {}
  ~CrewMaintenance() {
    done_ = true;
    thread_.join();
  }

  uint64_t copied_by_hands() {
    const std::lock_guard guard(mutex_);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < gang_.gang()->count; ++i) sum += gang_.gang()->hands[i].copied_bytes();
    return sum;
  }

  Status make_room(uint64_t bytes) {
    using SteadyClock = std::chrono::steady_clock;
    const auto patience = std::chrono::seconds(10);
    SteadyClock::time_point deadline = SteadyClock::now() + patience;
    while (SteadyClock::now() < deadline) {
      Maintainer::Room room = Maintainer::Room::kNone;
      {
        const std::lock_guard guard(mutex_);
        room = maintainer_.make_room(bytes);
      }
      if (room == Maintainer::Room::kReady) return Status::kOk;
      if (room == Maintainer::Room::kNone) break;
      if (room == Maintainer::Room::kProgress) deadline = SteadyClock::now() + patience;
      if (room == Maintainer::Room::kWait)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return Status::kOutOfMemory;
  }

 private:
  void run() {
    while (!done_) {
      {
        const std::lock_guard guard(mutex_);
        maintainer_.expire();
        (void)maintainer_.maintain(Maintainer::kStepsMax);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  ThreadCrew crew_;
  std::mutex mutex_;  // guards the maintainer: one leads at a time
  ThreadGang gang_;
  Maintainer maintainer_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

}  // namespace warpcache::store
