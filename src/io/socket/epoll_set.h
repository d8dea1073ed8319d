// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/epoll.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "base/assert.h"
#include "io/unique_fd.h"

namespace warpcache::io {

// The descriptors that a thread waits for. The caller closes the descriptors that it has added; a
// closed one is no longer watched.
class EpollSet {
 public:
  // Throws std::system_error if the system refuses a descriptor. For start-up only.
  EpollSet() : fd_(epoll_create1(EPOLL_CLOEXEC)) {
    if (!fd_.valid()) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  }

  // False: the system refuses the memory, or the user's watches have reached
  // fs.epoll.max_user_watches.
  [[nodiscard]] bool add(int fd, uint32_t events, uint64_t data) const {
    return control(EPOLL_CTL_ADD, fd, events, data);
  }

  // add(), but throws std::system_error. For start-up only.
  void add_or_throw(int fd, uint32_t events, uint64_t data) const {
    if (!add(fd, events, data)) {
      throw std::system_error(errno, std::generic_category(), "epoll_ctl");
    }
  }

  // REQUIRES: `fd` was added. Allocates nothing.
  void change(int fd, uint32_t events, uint64_t data) const {
    WC_ASSERT(control(EPOLL_CTL_MOD, fd, events, data));
  }

  // Does nothing if `fd` is not watched.
  void remove(int fd) const { (void)control(EPOLL_CTL_DEL, fd, 0, 0); }

  // Returns the number of events; 0 after a signal.
  uint32_t wait(epoll_event* events, int events_max, int timeout_ms) const {
    const int count = epoll_wait(fd_.get(), events, events_max, timeout_ms);
    return count > 0 ? static_cast<uint32_t>(count) : 0;
  }

 private:
  bool control(int operation, int fd, uint32_t events, uint64_t data) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = data;
    return epoll_ctl(fd_.get(), operation, fd, &event) == 0;
  }

  UniqueFd fd_;
};

}  // namespace warpcache::io
