// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace warpcache::admin {

// State that administrative commands change or count, shared by all workers. Any thread.
struct ServerState {
  std::atomic<uint64_t> memory_limit_bytes{0};  // as given; the store rounds to whole segments
  std::atomic<uint64_t> flushes{0};
  std::atomic<uint64_t> prefix_flushes{0};
  std::atomic<uint64_t> flushed_at_s{
      0};  // the last flush_all removes items up to this server second; 0: no flush_all yet
  std::atomic<uint64_t> auth_commands{0};
  std::atomic<uint64_t> auth_errors{0};
  std::atomic<uint64_t> access_denied{0};  // requests, with --access
  // refresh_certs: reads the certificates again; returns an error or "". Null without -Z. Set
  // before the first request.
  std::function<std::string()> refresh_certificates;
};

enum class StopKind : uint8_t { kNone, kGraceful, kNow };

// A command's request to the main thread to stop the server, as a signal does.
class StopRequest {
 public:
  StopRequest() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;
  ~StopRequest() {
    if (fd_ >= 0) close(fd_);
  }

  // Readable after ask(); -1 if the system refused the descriptor.
  int fd() const { return fd_; }
  StopKind kind() const { return kind_.load(); }

  // Any thread.
  void ask(StopKind kind) {
    kind_.store(kind);
    const uint64_t one = 1;
    const ssize_t put = write(fd_, &one, sizeof one);
    (void)put;  // fails only if it is already readable
  }

 private:
  int fd_;
  std::atomic<StopKind> kind_{StopKind::kNone};
};

}  // namespace warpcache::admin
