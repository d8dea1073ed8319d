// SPDX-License-Identifier: Apache-2.0
//
// Replies that are too long or too slow to make for a worker: dumps of all keys, lists of all
// connections. One thread makes them all, each in small steps into a pipe of its own, no faster
// than its client reads. Workers only send what the pipes hold.
//
// Bounds: kRepliesMax replies at a time, of them one dump of all keys in the making, as in
// memcached. Each takes kPipeBytes and what one step makes, less than a megabyte in all.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "admin/long_reply.h"
#include "base/byte_pipe.h"

namespace warpcache::admin {

class LongReplies {
 public:
  enum class Kind : uint8_t { kDump, kStats };

  static constexpr uint32_t kDumpsMax = 1;
  static constexpr uint32_t kRepliesMax = 16;
  static constexpr size_t kPipeBytes = 256 * 1024;
  // A reader that has taken nothing for so long gives way to whoever is refused for it: its
  // connection is closed.
  static constexpr std::chrono::seconds kStalledAfter{10};

  explicit LongReplies(std::chrono::milliseconds stalled_after = kStalledAfter)
      : stalled_after_(stalled_after) {}
  LongReplies(const LongReplies&) = delete;
  LongReplies& operator=(const LongReplies&) = delete;
  // REQUIRES: all readers have left.
  ~LongReplies();

  // Starts the thread. Throws std::system_error where the system refuses it.
  void start();
  // Breaks all replies that are under way, and makes no more.
  void stop();

  // Takes a reply and returns the pipe that it comes through, whose reader the caller becomes.
  // Null: there are as many as there may be. Any thread. REQUIRES: started.
  BytePipe* add(Kind kind, std::unique_ptr<LongReply> reply);

 private:
  struct Job {
    Job(Kind kind_of, std::unique_ptr<LongReply> to_make, std::function<void()> wake_writer)
        : kind(kind_of), reply(std::move(to_make)), pipe(kPipeBytes, std::move(wake_writer)) {}

    const Kind kind;
    std::unique_ptr<LongReply> reply;
    BytePipe pipe;
    LongReply::Step last = LongReply::Step::kMore;  // what the last step said
    std::string text;                               // of that step, not yet in the pipe
    std::atomic<bool> made{false};                  // nothing more comes into the pipe
  };

  void run();
  void wake();
  bool wait_for_work();
  static bool advance(Job& job);

  const std::chrono::milliseconds stalled_after_;
  std::mutex jobs_mutex_;  // guards the list; comes before the pipes' own
  std::list<Job> jobs_;    // the thread alone removes, and works on, its elements
  std::mutex wake_mutex_;  // guards what follows; comes after the pipes' own
  std::condition_variable condition_;
  bool awake_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace warpcache::admin
