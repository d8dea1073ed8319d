// SPDX-License-Identifier: Apache-2.0
#include "admin/long_replies.h"

#include <pthread.h>

#include <array>
#include <new>
#include <utility>

#include "base/assert.h"

namespace warpcache::admin {

LongReplies::~LongReplies() { stop(); }

void LongReplies::start() {
  thread_ = std::thread([this] { run(); });
  (void)pthread_setname_np(thread_.native_handle(), "long-replies");
}

void LongReplies::stop() {
  {
    const std::lock_guard lock(wake_mutex_);
    stopping_ = true;
  }
  condition_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void LongReplies::wake() {
  {
    const std::lock_guard lock(wake_mutex_);
    awake_ = true;
  }
  condition_.notify_one();
}

BytePipe* LongReplies::add(Kind kind, std::unique_ptr<LongReply> reply) {
  BytePipe* pipe = nullptr;
  {
    const std::lock_guard lock(jobs_mutex_);
    uint32_t replies = 0;
    uint32_t dumps = 0;
    for (const Job& job : jobs_) {
      if (job.pipe.reader_left()) continue;
      ++replies;
      if (job.kind == Kind::kDump && !job.made.load(std::memory_order_relaxed)) ++dumps;
    }
    const bool dump_in_the_way = kind == Kind::kDump && dumps >= kDumpsMax;
    if (replies >= kRepliesMax || dump_in_the_way) {
      const auto now = std::chrono::steady_clock::now();
      for (Job& job : jobs_) {
        const bool in_the_way = !dump_in_the_way || job.kind == Kind::kDump;
        if (in_the_way && now - job.pipe.last_read() >= stalled_after_) job.pipe.end(false);
      }
      return nullptr;
    }
    jobs_.emplace_back(kind, std::move(reply), [this] { wake(); });
    pipe = &jobs_.back().pipe;
  }
  wake();
  return pipe;
}

// Waits until a reply can be continued. False: stop() was called.
bool LongReplies::wait_for_work() {
  std::unique_lock lock(wake_mutex_);
  condition_.wait(lock, [this] { return awake_ || stopping_; });
  awake_ = false;
  return !stopping_;
}

// Continues a reply as far as possible. False: nothing can be done until its reader reads.
bool LongReplies::advance(Job& job) {
  if (job.pipe.reader_left() || job.made.load(std::memory_order_relaxed)) return false;
  if (job.text.empty() && job.last == LongReply::Step::kMore) {
    try {
      job.last = job.reply->step(job.text);
    } catch (const std::bad_alloc&) {
      job.last = LongReply::Step::kBroken;
    }
  }
  const size_t written =
      job.pipe.write({reinterpret_cast<const uint8_t*>(job.text.data()), job.text.size()});
  job.text.erase(0, written);
  if (!job.text.empty()) return false;
  if (job.last == LongReply::Step::kMore) return true;
  job.made.store(true, std::memory_order_relaxed);
  job.pipe.end(job.last == LongReply::Step::kLast);
  return false;
}

// The thread's function. It allocates nothing itself, because it has no way to report that there is
// no memory.
void LongReplies::run() {
  std::array<Job*, kRepliesMax> jobs;
  while (wait_for_work()) {
    size_t count = 0;
    {
      const std::lock_guard lock(jobs_mutex_);
      jobs_.remove_if([](const Job& job) { return job.pipe.reader_left(); });
      WC_ASSERT(jobs_.size() <= kRepliesMax);
      for (Job& job : jobs_) jobs[count++] = &job;
    }
    bool goes_on = false;
    for (size_t i = 0; i < count; ++i) goes_on = advance(*jobs[i]) || goes_on;
    if (goes_on) wake();
  }
  const std::lock_guard lock(jobs_mutex_);
  for (Job& job : jobs_) job.pipe.end(false);
}

}  // namespace warpcache::admin
