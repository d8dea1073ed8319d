// SPDX-License-Identifier: Apache-2.0
#include "store/host/maintenance.h"

#include <chrono>
#include <utility>

namespace warpcache::store {

namespace {

constexpr auto kEpochPause = std::chrono::microseconds(50);
constexpr uint32_t kPausesMax = 20;  // how often maintenance pauses for callers before it continues

// Holds the mutex; maintenance lets this thread have it first.
class Caller {
 public:
  Caller(std::atomic<uint32_t>& callers, std::mutex& mutex) : callers_(callers), mutex_(mutex) {
    callers_.fetch_add(1, std::memory_order_relaxed);
    mutex_.lock();
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller() {
    mutex_.unlock();
    callers_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint32_t>& callers_;
  std::mutex& mutex_;
};

}  // namespace

Maintenance::Maintenance(const Core& core, ThreadContext* thread, uint32_t reclaim_wait_ms_max,
                         std::function<void(uint32_t segments)> limit_raised)
    : core_(core),
      reclaim_wait_ms_max_(reclaim_wait_ms_max),
      limit_raised_(std::move(limit_raised)),
      maintainer_(core, thread, &worker_group_, &evacuators_) {}

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

void Maintenance::let_callers_go_first() const {
  for (uint32_t i = 0; i < kPausesMax && callers_.load(std::memory_order_relaxed) != 0; ++i) {
    std::this_thread::sleep_for(kEpochPause);
  }
}

// REQUIRES: the mutex is held.
void Maintenance::take_up_limit() {
  const uint32_t limit = limit_wanted_.exchange(0, std::memory_order_relaxed);
  if (limit == 0) return;
  const bool raised = limit > load_relaxed(&core_.shared->segment_limit);
  if (maintainer_.set_target(limit) && raised) limit_raised_(limit);
}

// One step of the maintenance thread. It holds the mutex for this step alone, so a worker that
// needs space waits for one step at most. False: there is no more to do, or no time.
template <typename Step>
bool Maintenance::step(Step step) {
  if (stopping_) return false;
  let_callers_go_first();
  const std::lock_guard guard(mutex_);
  take_up_limit();
  return step();
}

void Maintenance::maintain() {
  while (step([this] { return maintainer_.maintain(1); })) {
  }
}

Status Maintenance::reclaim(uint64_t bytes) {
  using SteadyClock = std::chrono::steady_clock;
  const auto patience = std::chrono::milliseconds(reclaim_wait_ms_max_);
  SteadyClock::time_point deadline = SteadyClock::now() + patience;
  for (uint32_t i = 0; i < Maintainer::kStepsMax; ++i) {
    Maintainer::Space space = Maintainer::Space::kNone;
    {
      const Caller caller(callers_, mutex_);
      space = maintainer_.reclaim(bytes);
    }
    if (space == Maintainer::Space::kReady) return Status::kOk;
    if (space == Maintainer::Space::kNone) return Status::kOutOfMemory;
    if (space == Maintainer::Space::kProgress) {
      deadline = SteadyClock::now() + patience;
      continue;
    }
    if (SteadyClock::now() >= deadline) return Status::kOutOfMemory;
    std::this_thread::sleep_for(kEpochPause);
  }
  return Status::kOutOfMemory;
}

void Maintenance::retire_dead(uint32_t newest) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) maintainer_.retire_dead(newest);
}

void Maintenance::expire() {
  for (uint32_t i = 0; i < Maintainer::kExpireStepsMax; ++i) {
    if (!step([this] { return maintainer_.expire(); })) break;
  }
  for (uint32_t i = 0; i < Maintainer::kSweepStepsMax; ++i) {
    if (!step([this] { return maintainer_.sweep(); })) break;
  }
  for (uint32_t i = 0; i < Maintainer::kEvictAheadStepsMax; ++i) {
    if (!step([this] { return maintainer_.evict_ahead(); })) break;
  }
}

bool Maintenance::set_limit(uint32_t segments) {
  if (!is_possible_target(core_, segments)) return false;
  limit_wanted_.store(segments, std::memory_order_relaxed);
  wake();
  return true;
}

}  // namespace warpcache::store
