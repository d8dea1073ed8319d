// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace warpcache::admin {

// What administrative commands change or count, over all workers. Any thread.
struct ServerState {
  std::atomic<uint64_t> memory_limit_bytes{0};  // as asked for; the store works in whole segments
  std::atomic<uint64_t> flushes{0};
  std::atomic<uint64_t> flushed_at_s{
      0};  // last server second that the last flush_all ends; 0: none
  std::atomic<uint64_t> auth_commands{0};
  std::atomic<uint64_t> auth_errors{0};
};

enum class StopKind : uint8_t { kNone, kGraceful, kNow };

// How a command asks the main thread to end the server, as signals do.
class StopRequest {
 public:
  StopRequest() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;
  ~StopRequest() {
    if (fd_ >= 0) close(fd_);
  }

  // Readable once a stop was asked for; -1 where the system refused it.
  int fd() const { return fd_; }
  StopKind kind() const { return kind_.load(); }

  // Any thread.
  void ask(StopKind kind) {
    kind_.store(kind);
    const uint64_t one = 1;
    const ssize_t put = write(fd_, &one, sizeof one);
    (void)put;  // fails only when it is readable already
  }

 private:
  int fd_;
  std::atomic<StopKind> kind_{StopKind::kNone};
};

}  // namespace warpcache::admin
