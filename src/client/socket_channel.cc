// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "client/channel.h"
#include "io/unique_fd.h"

namespace warpcache::client {
namespace {

using Clock = std::chrono::steady_clock;

// False: the deadline has passed.
bool wait_for(int fd, short events, Channel::Deadline deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd event{fd, events, 0};
    const int ready = poll(&event, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // the next call reports it
  }
}

class SocketChannel final : public Channel {
 public:
  explicit SocketChannel(io::UniqueFd fd) : fd_(std::move(fd)) {}

  const char* name() const override { return "tcp"; }

  Result send(Bytes head, Bytes body, Bytes end, Deadline deadline) override {
    iovec pieces[3] = {piece_of(head), piece_of(body), piece_of(end)};
    size_t left = head.size + body.size + end.size;
    size_t first = 0;
    while (left > 0) {
      msghdr message{};
      message.msg_iov = pieces + first;
      message.msg_iovlen = 3 - first;
      const ssize_t sent = sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0) {
        if (errno != EAGAIN && errno != EINTR) return Result::kClosed;
        if (!wait_for(fd_.get(), POLLOUT, deadline)) return Result::kTimeout;
        continue;
      }
      auto done = static_cast<size_t>(sent);
      left -= done;
      for (; first < 3 && done >= pieces[first].iov_len; ++first) done -= pieces[first].iov_len;
      if (first == 3) break;
      pieces[first].iov_base = static_cast<uint8_t*>(pieces[first].iov_base) + done;
      pieces[first].iov_len -= done;
    }
    return Result::kOk;
  }

  Result read_line(std::string* line, Deadline deadline) override {
    size_t searched = begin_;
    while (true) {
      for (size_t i = searched; i + 1 < end_; ++i) {
        if (buffer_[i] != '\r' || buffer_[i + 1] != '\n') continue;
        line->assign(reinterpret_cast<const char*>(buffer_ + begin_), i - begin_);
        begin_ = i + 2;
        return Result::kOk;
      }
      if (end_ - begin_ >= kLineMax) return Result::kClosed;
      if (begin_ > 0) std::memmove(buffer_, buffer_ + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
      searched = end_ > 0 ? end_ - 1 : 0;
      const Result result = receive(buffer_ + end_, sizeof buffer_ - end_, deadline);
      if (result != Result::kOk) return result;
      end_ += got_;
    }
  }

  Result read(uint8_t* data, size_t size, Deadline deadline) override {
    const size_t present = std::min(size, end_ - begin_);
    if (data != nullptr && present > 0) std::memcpy(data, buffer_ + begin_, present);
    begin_ += present;
    for (size_t done = present; done < size; done += got_) {
      // To nowhere: the buffer is empty by now.
      const Result result = data != nullptr
                                ? receive(data + done, size - done, deadline)
                                : receive(buffer_, std::min(sizeof buffer_, size - done), deadline);
      if (result != Result::kOk) return result;
    }
    return Result::kOk;
  }

 private:
  static iovec piece_of(Bytes bytes) { return {const_cast<uint8_t*>(bytes.data), bytes.size}; }

  Result receive(uint8_t* data, size_t size, Deadline deadline) {
    while (true) {
      const ssize_t got = recv(fd_.get(), data, size, MSG_DONTWAIT);
      if (got > 0) {
        got_ = static_cast<size_t>(got);
        return Result::kOk;
      }
      if (got == 0 || (errno != EAGAIN && errno != EINTR)) return Result::kClosed;
      if (!wait_for(fd_.get(), POLLIN, deadline)) return Result::kTimeout;
    }
  }

  io::UniqueFd fd_;
  uint8_t buffer_[2 * kLineMax];
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t got_ = 0;
};

}  // namespace

std::string connect_tcp(const std::string& host, uint16_t port, Channel::Deadline deadline,
                        std::unique_ptr<Channel>* channel) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return host + ": " + gai_strerror(error);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, freeaddrinfo);
  std::string failure;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    io::UniqueFd fd(socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.valid()) return "the system refuses a socket";
    int problem = connect(fd.get(), one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    if (problem == EINPROGRESS) {
      socklen_t size = sizeof problem;
      problem = ETIMEDOUT;
      if (wait_for(fd.get(), POLLOUT, deadline)) {
        (void)getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &problem, &size);
      }
    }
    if (problem == 0) {
      const int on = 1;
      (void)setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      *channel = std::make_unique<SocketChannel>(std::move(fd));
      return "";
    }
    failure = host + ":" + std::to_string(port) + ": " + std::strerror(problem);
  }
  return failure;
}

std::string connect_unix(const std::string& path, std::unique_ptr<Channel>* channel) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return path + ": the path is too long";
  std::memcpy(address.sun_path, path.data(), path.size());
  io::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return "the system refuses a socket";
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return path + ": " + std::strerror(errno);
  }
  *channel = std::make_unique<SocketChannel>(std::move(fd));
  return "";
}

}  // namespace warpcache::client
