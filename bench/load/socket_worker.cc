// SPDX-License-Identifier: Apache-2.0
#include "load/socket_worker.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "load/stream_connection.h"
#include "load/udp_connection.h"

namespace warpcache::load {
namespace {

constexpr int kEventsMax = 256;
constexpr uint64_t kSecond = 1'000'000'000;

}  // namespace

SocketWorker::~SocketWorker() {
  for (const int socket : sockets_) close(socket);
  if (epoll_ >= 0) close(epoll_);
}

bool SocketWorker::connect(const Address& address, std::string* why) {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  for (uint32_t i = 0; i < connection_count(); ++i) {
    const int fd = connect_to(address, why);
    if (fd < 0) return false;
    sockets_.push_back(fd);
    if (options_.udp) {
      connections_.push_back(std::make_unique<UdpConnection>(&context_, fd, options_.pipeline));
    } else {
      connections_.push_back(std::make_unique<StreamConnection>(
          &context_, std::make_unique<SocketStream>(fd), fill_pipeline()));
    }
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = i;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) {
      *why = std::strerror(errno);
      return false;
    }
  }
  return true;
}

bool SocketWorker::watch(size_t number, bool writable) {
  epoll_event event = {};
  event.events = writable ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.u64 = number;
  return epoll_ctl(epoll_, EPOLL_CTL_MOD, sockets_[number], &event) == 0;
}

bool SocketWorker::wait(uint64_t wait_ns) {
  epoll_event events[kEventsMax];
  const timespec timeout = {static_cast<time_t>(wait_ns / kSecond),
                            static_cast<long>(wait_ns % kSecond)};
  const int count = epoll_pwait2(epoll_, events, kEventsMax, &timeout, nullptr);
  if (count < 0 && errno != EINTR) return false;
  if (count <= 0) context_.now_ns = steady_now_ns();
  for (int i = 0; i < count; ++i) {
    const bool readable = (events[i].events & ~static_cast<uint32_t>(EPOLLOUT)) != 0;
    if (!serve(events[i].data.u64, readable)) return false;
  }
  return true;
}

}  // namespace warpcache::load
