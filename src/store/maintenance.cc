// SPDX-License-Identifier: Apache-2.0
#include "store/maintenance.h"

#include <chrono>

namespace warpcache::store {

namespace {

constexpr auto kEpochPause = std::chrono::microseconds(50);

}  // namespace

Maintenance::Maintenance(const Core& core, ThreadContext* thread, uint32_t room_wait_ms_max)
    : core_(core), room_wait_ms_max_(room_wait_ms_max), maintainer_(core, thread, &crew_, &gang_) {}

Maintenance::~Maintenance() { stop(); }

void Maintenance::start(std::chrono::steady_clock::time_point first, void (*every_second)(void*),
                        void* context) {
  every_second_ = every_second;
  context_ = context;
  thread_ = std::thread([this, first] { run(first); });
}

void Maintenance::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard guard(wake_mutex_);
    stopping_ = true;
  }
  wake_condition_.notify_one();
  thread_.join();
}

void Maintenance::wake() {
  if (load_relaxed(&awake_) != 0) return;
  {
    const std::lock_guard guard(wake_mutex_);
    store_relaxed(&awake_, 1);
  }
  wake_condition_.notify_one();
}

void Maintenance::run(std::chrono::steady_clock::time_point second) {
  using SteadyClock = std::chrono::steady_clock;
  while (true) {
    {
      std::unique_lock lock(wake_mutex_);
      wake_condition_.wait_until(lock, second,
                                 [this] { return stopping_ || load_relaxed(&awake_) != 0; });
      if (stopping_) return;
      store_relaxed(&awake_, 0);
    }
    if (SteadyClock::now() >= second) {
      second += std::chrono::seconds(1);
      every_second_(context_);
    }
    maintain();
  }
}

void Maintenance::maintain() {
  const std::lock_guard guard(mutex_);
  maintainer_.maintain();
}

Status Maintenance::make_room(uint64_t bytes) {
  using SteadyClock = std::chrono::steady_clock;
  const auto patience = std::chrono::milliseconds(room_wait_ms_max_);
  SteadyClock::time_point deadline = SteadyClock::now() + patience;
  for (uint32_t i = 0; i < Maintainer::kStepsMax; ++i) {
    Maintainer::Room room = Maintainer::Room::kNone;
    {
      const std::lock_guard guard(mutex_);
      room = maintainer_.make_room(bytes);
    }
    if (room == Maintainer::Room::kReady) return Status::kOk;
    if (room == Maintainer::Room::kNone) return Status::kOutOfMemory;
    if (room == Maintainer::Room::kProgress) {
      deadline = SteadyClock::now() + patience;
      continue;
    }
    if (SteadyClock::now() >= deadline) return Status::kOutOfMemory;
    std::this_thread::sleep_for(kEpochPause);
  }
  return Status::kOutOfMemory;
}

void Maintenance::flush() {
  const std::lock_guard guard(mutex_);
  maintainer_.flush();
}

void Maintenance::expire() {
  {
    const std::lock_guard guard(mutex_);
    maintainer_.expire();
  }
  // Who wants room comes in between.
  for (uint32_t i = 0; i < Maintainer::kSweepStepsMax; ++i) {
    const std::lock_guard guard(mutex_);
    if (!maintainer_.sweep()) break;
  }
}

uint64_t Maintenance::set_limit(uint32_t segments) {
  using SteadyClock = std::chrono::steady_clock;
  const SteadyClock::time_point deadline =
      SteadyClock::now() + std::chrono::milliseconds(room_wait_ms_max_);
  Maintainer::Step done = Maintainer::Step::kWait;
  for (bool first = true; done == Maintainer::Step::kWait; first = false) {
    {
      const std::lock_guard guard(mutex_);
      if (first) maintainer_.set_target(segments);
      done = maintainer_.shrink();
    }
    if (SteadyClock::now() >= deadline) break;
    if (done == Maintainer::Step::kWait) std::this_thread::sleep_for(kEpochPause);
  }
  return uint64_t{load_relaxed(&core_.shared->segment_limit)} << core_.segment_shift;
}

}  // namespace warpcache::store
