// SPDX-License-Identifier: Apache-2.0
//
// The long replies: dumps of all keys, lists of all connections. A worker that made them would
// delay its other clients. One thread makes all of them in small steps, each into its own pipe, as
// fast as the client reads. Workers only send the bytes from the pipes.
//
// Bounds: kRepliesMax replies at a time, of which one may be an unfinished dump of all keys, as in
// memcached. Each takes kPipeBytes and the text of one step: together less than 1 MB.
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
  // When a reply is refused at a bound, the replies whose readers have read nothing for this long
  // are broken off and their connections close, so that a later request finds a place.
  static constexpr std::chrono::seconds kStalledAfter{10};

  explicit LongReplies(std::chrono::milliseconds stalled_after = kStalledAfter)
      : stalled_after_(stalled_after) {}
  LongReplies(const LongReplies&) = delete;
  LongReplies& operator=(const LongReplies&) = delete;
  // REQUIRES: all readers have left.
  ~LongReplies();

  // Starts the thread. Throws std::system_error where the system refuses it.
  void start();
  // Breaks off all unfinished replies and refuses new ones.
  void stop();

  // Takes a reply and returns its pipe; the caller becomes the pipe's reader. Null: the limit is
  // reached. Any thread. REQUIRES: start() was called.
  BytePipe* add(Kind kind, std::unique_ptr<LongReply> reply);

 private:
  struct Job {
    Job(Kind kind_of, std::unique_ptr<LongReply> to_make, std::function<void()> wake_writer)
        : kind(kind_of), reply(std::move(to_make)), pipe(kPipeBytes, std::move(wake_writer)) {}

    const Kind kind;
    std::unique_ptr<LongReply> reply;
    BytePipe pipe;
    LongReply::Step last = LongReply::Step::kMore;  // result of the last step
    std::string text;                               // its bytes that are not in the pipe yet
    std::atomic<bool> made{false};                  // all bytes are in the pipe
  };

  void run();
  void wake();
  bool wait_for_work();
  static bool advance(Job& job);

  const std::chrono::milliseconds stalled_after_;
  std::mutex jobs_mutex_;  // guards the list; locked before a pipe's mutex
  std::list<Job> jobs_;    // only the thread removes elements and works on them
  std::mutex wake_mutex_;  // guards the members below; locked after a pipe's mutex
  std::condition_variable condition_;
  bool awake_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace warpcache::admin
