// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "io/unique_fd.h"

namespace warpcache::io {

// Wakes an epoll_wait() from another thread. REQUIRES: the fd is watched for EPOLLIN.
class WakeEvent {
 public:
  // Throws std::system_error if the system refuses a descriptor. For start-up and the end only.
  WakeEvent() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (!fd_.valid()) throw std::system_error(errno, std::generic_category(), "eventfd");
  }

  int fd() const { return fd_.get(); }

  // Any thread, also a signal handler.
  void raise() const {
    const uint64_t one = 1;
    const ssize_t put = write(fd_.get(), &one, sizeof one);
    (void)put;  // fails only if it is already raised
  }

  // Called by the woken thread.
  void clear() const {
    uint64_t count;
    const ssize_t got = read(fd_.get(), &count, sizeof count);
    (void)got;  // fails only if it is already clear
  }

 private:
  UniqueFd fd_;
};

}  // namespace warpcache::io
