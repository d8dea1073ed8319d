// SPDX-License-Identifier: Apache-2.0
#include "io/frames/dpdk/ring_door.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace warpcache::io {
namespace {

constexpr int kWaiting = 8;        // peers that have not been let in
constexpr int kHelloMsMax = 1000;  // the server looks more often
constexpr useconds_t kStepUs = 10'000;

struct Address {
  explicit Address(const std::string& name) {
    const std::string text = "warpcache-ring-" + name;
    bytes.sun_family = AF_UNIX;
    const size_t count = std::min(text.size(), sizeof bytes.sun_path - 1);
    std::memcpy(bytes.sun_path + 1, text.data(), count);  // abstract: the first byte is 0
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + count);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }

  sockaddr_un bytes = {};
  socklen_t size;
};

UniqueFd new_socket(int flags) {
  return UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
}

bool has_ended(int fd) {
  pollfd readable = {fd, POLLIN, 0};
  return poll(&readable, 1, 0) != 0;  // nothing is sent after the first message
}

}  // namespace

std::string RingDoor::take(const std::string& name) {
  const Address address(name);
  owner_ = geteuid();
  door_ = new_socket(SOCK_NONBLOCK);
  if (door_.valid() && bind(door_.get(), address.get(), address.size) == 0) return "";
  return errno == EADDRINUSE ? "another server has it" : std::strerror(errno);
}

std::string RingDoor::open(uint32_t queues, uint32_t ports) {
  hello_ = {0, queues, ports};
  return listen(door_.get(), kWaiting) == 0 ? "" : std::strerror(errno);
}

pid_t RingDoor::look() {
  if (inside_.valid() && has_ended(inside_.get())) {
    peer_.store(0, std::memory_order_release);
    inside_.reset();
    return std::exchange(process_, 0);  // the next one comes in when all that it has left is gone
  }
  UniqueFd peer(accept4(door_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (peer.valid()) let_in(std::move(peer));
  return 0;
}

void RingDoor::let_in(UniqueFd peer) {
  ucred who = {};
  socklen_t size = sizeof who;
  if (getsockopt(peer.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return;
  if (who.uid != 0 && who.uid != owner_) return;
  RingHello hello = hello_;
  if (!inside_.valid()) hello.peer = ++peers_;
  const bool told = send(peer.get(), &hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello;
  if (!told || hello.peer == 0) return;
  process_ = who.pid;
  inside_ = std::move(peer);
  peer_.store(hello.peer, std::memory_order_release);
}

std::string RingVisit::enter(const std::string& name, uint32_t wait_ms) {
  int error = try_to_enter(name);
  for (uint32_t ms = 0; error != 0 && ms < wait_ms; ms += kStepUs / 1000) {
    (void)usleep(kStepUs);
    error = try_to_enter(name);
  }
  if (error == EBUSY) return "another process is its other side";
  if (error == EPERM) return "its server belongs to another user";
  return error == 0 ? "" : "there is no server with it";
}

int RingVisit::try_to_enter(const std::string& name) {
  const Address address(name);
  socket_ = new_socket(0);
  if (!socket_.valid()) return errno;
  if (connect(socket_.get(), address.get(), address.size) != 0) return errno;
  pollfd readable = {socket_.get(), POLLIN, 0};
  if (poll(&readable, 1, kHelloMsMax) != 1) return ETIMEDOUT;
  if (recv(socket_.get(), &hello_, sizeof hello_, 0) != sizeof hello_) return EPERM;
  return hello_.peer == 0 ? EBUSY : 0;
}

bool RingVisit::server_is_there() const { return !has_ended(socket_.get()); }

}  // namespace warpcache::io
