// SPDX-License-Identifier: Apache-2.0
#include "store/cuda/eviction_watch.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

namespace warpcache::store {

namespace {

using std::chrono::milliseconds;

// How long the thread waits for records: less while there are some.
constexpr milliseconds kEvictionPauseMin{1};
constexpr milliseconds kEvictionPauseMax{4};
// The device learns that records were taken after this number of them.
constexpr uint32_t kRecordsPerPush = kEvictionRecords / 4;

}  // namespace

bool EvictionWatch::take_memory() {
  constexpr auto kHost = gpu::CudaMemory::Place::kHost;
  return log_.allocate(gpu::CudaMemory::Place::kDevice, sizeof(EvictionLog)) &&
         records_.allocate(kHost, uint64_t{kEvictionRecords} * sizeof(EvictionRecord)) &&
         pushed_.allocate(kHost, sizeof(uint32_t)) &&
         stream_.create(gpu::CudaStream::Priority::kHigh);
}

std::string EvictionWatch::start(std::function<bool(uint64_t)> set_log) {
  set_log_ = std::move(set_log);
  EvictionLog filled{};
  filled.records = records_.as<EvictionRecord>();
  const char* const what = "starting the log of evictions";
  const cudaError_t error =
      cudaMemcpyAsync(log_.data(), &filled, sizeof filled, cudaMemcpyHostToDevice, stream_.get());
  if (!faults_.check(error, what) || !faults_.check(cudaStreamSynchronize(stream_.get()), what)) {
    return faults_.why();
  }
  std::promise<void> attached;
  const std::future<void> is_attached = attached.get_future();
  thread_ = std::thread([this, attached = std::move(attached)]() mutable {
    (void)faults_.check(gpu::attach_thread(), "starting the thread that reports evictions");
    attached.set_value();
    run();
  });
  is_attached.wait();
  return faults_.failed() ? faults_.why() : "";
}

void EvictionWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  condition_.notify_one();
  if (thread_.joinable()) thread_.join();
}

// What was not reported to an earlier watcher is forgotten.
void EvictionWatch::begin() {
  const std::lock_guard lock(mutex_);
  if (logs_ || faults_.failed()) return;
  const char* const what = "watching evictions";
  if (!faults_.check(gpu::attach_thread(), what)) return;
  (void)take(false);
  if (!faults_.check(cudaStreamSynchronize(stream_.get()), what)) return;
  logs_ = set_log_(reinterpret_cast<uint64_t>(log_.data()));
  condition_.notify_one();
}

void EvictionWatch::saw_missed(uint32_t missed) {
  const uint32_t more = missed - std::exchange(missed_seen_, missed);
  if (more != 0) observer_->missed_evictions(more);
}

void EvictionWatch::run() {
  milliseconds pause = kEvictionPauseMin;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!logs_) {
      condition_.wait(lock, [this] { return logs_ || stopping_; });
      continue;
    }
    const bool took = take(true);
    if (faults_.failed()) {
      logs_ = false;
    } else if (!observer_->wants_evictions()) {
      logs_ = !set_log_(0);
    } else {
      pause = took ? kEvictionPauseMin : std::min(pause * 2, kEvictionPauseMax);
      (void)condition_.wait_for(lock, pause, [this] { return stopping_; });
    }
  }
}

// Takes the records that are there, as far as the observer has space for them. False: none.
// REQUIRES: mutex_ is held.
bool EvictionWatch::take(bool is_told) {
  auto* const records = records_.as<EvictionRecord>();
  uint32_t count = 0;
  for (; count < kEvictionRecords; ++count) {
    const EvictionRecord& record = records[taken_ % kEvictionRecords];
    if (load_acquire(&record.number) != taken_ + 1) break;
    if (is_told && !observer_->takes_eviction()) break;
    if (is_told) observer_->evicted(record.item, record.now);
    ++taken_;
    if (taken_ % kRecordsPerPush == 0) push_taken();
  }
  if (count != 0) push_taken();
  return count != 0;
}

// A copy that has not run yet may show a later number, which is as right.
void EvictionWatch::push_taken() {
  if (faults_.failed()) return;
  store_release(pushed_.as<uint32_t>(), taken_);
  auto* const log = log_.as<EvictionLog>();
  (void)faults_.check(cudaMemcpyAsync(&log->taken, pushed_.data(), sizeof(uint32_t),
                                      cudaMemcpyHostToDevice, stream_.get()),
                      "telling the GPU which evictions are known");
}

}  // namespace warpcache::store
