// SPDX-License-Identifier: Apache-2.0
//
// The least server that speaks memcached's text protocol through epoll: it stores nothing and
// answers every get with the same value. What it costs is what the sockets cost, so no server that
// uses them is cheaper. One thread; TCP and UDP. For bench/compare: requests are well-formed and
// are get, set, version, ms and "mg KEY f v".
//
//   socket_floor -l ADDRESS -p PORT [-U PORT]      other options of memcached are taken and ignored
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr size_t kInputBytes = 256 * 1024;
constexpr size_t kDatagramBytes = 2048;
constexpr size_t kDatagrams = 64;
constexpr size_t kUdpHeaderBytes = 8;
constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kValue = "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv";  // as large as SMALL_ITEMS'
constexpr std::string_view kAfterKey = " 0 32\r\n";
constexpr std::string_view kHit = "VA 32 f0\r\n";

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

// Replies, in memory that is used again. The caller makes sure that they fit.
class Replies {
 public:
  explicit Replies(size_t bytes) : bytes_(bytes) {}
  void clear() { size_ = 0; }
  void add(std::string_view text) {
    std::memcpy(bytes_.data() + size_, text.data(), text.size());
    size_ += text.size();
  }
  const char* data() const { return bytes_.data(); }
  size_t size() const { return size_; }

 private:
  std::vector<char> bytes_;
  size_t size_ = 0;
};

// A key takes two bytes of a request at least, and its reply this much more.
constexpr size_t kReplyBytesMax =
    kInputBytes / 2 * (sizeof("VALUE ") + kAfterKey.size() + kValue.size() + kLineEnd.size());

void answer_get(std::string_view keys, Replies& out) {
  while (!keys.empty()) {
    const size_t end = std::min(keys.find(' '), keys.size());
    out.add("VALUE ");
    out.add(keys.substr(0, end));
    out.add(kAfterKey);
    out.add(kValue);
    out.add(kLineEnd);
    keys.remove_prefix(std::min(end + 1, keys.size()));
  }
  out.add("END\r\n");
}

// The last number of a set's line; of a meta set, the one after the key.
size_t body_size(std::string_view line, bool meta) {
  size_t size = 0;
  const size_t at = (meta ? line.find(' ', sizeof("ms")) : line.rfind(' ')) + 1;
  std::from_chars(line.data() + at, line.data() + line.size(), size);
  return size;
}

// Answers the complete requests and returns how many bytes they take.
size_t answer(std::string_view input, Replies& out) {
  size_t done = 0;
  while (done < input.size()) {
    const auto* const end =
        static_cast<const char*>(std::memchr(input.data() + done, '\n', input.size() - done));
    if (end == nullptr) break;
    const size_t next = static_cast<size_t>(end - input.data()) + 1;
    const std::string_view line = input.substr(done, next - kLineEnd.size() - done);
    const bool meta_set = line.substr(0, 2) == "ms";
    if (line[0] == 's' || meta_set) {
      const size_t whole = next + body_size(line, meta_set) + kLineEnd.size();
      if (whole > input.size()) break;
      out.add(meta_set ? "HD\r\n" : "STORED\r\n");
      done = whole;
      continue;
    }
    if (line[0] == 'g') {
      answer_get(line.substr(sizeof("get")), out);
    } else if (line[0] == 'm') {
      out.add(kHit);
      out.add(kValue);
      out.add(kLineEnd);
    } else {
      out.add("VERSION floor\r\n");
    }
    done = next;
  }
  return done;
}

class Server {
 public:
  Server(const sockaddr_in& tcp, const sockaddr_in* udp) : replies_(kReplyBytesMax) {
    epoll_ = epoll_create1(0);
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    const int one = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener_, reinterpret_cast<const sockaddr*>(&tcp), sizeof tcp) != 0) fail("bind");
    if (listen(listener_, 1024) != 0) fail("listen");
    watch(listener_);
    if (udp == nullptr) return;
    udp_ = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    if (bind(udp_, reinterpret_cast<const sockaddr*>(udp), sizeof *udp) != 0) fail("bind");
    watch(udp_);
  }

  [[noreturn]] void run() {
    for (;;) {
      std::array<epoll_event, 256> events;
      const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < count; ++i) {
        const int fd = events[static_cast<size_t>(i)].data.fd;
        if (fd == listener_) {
          accept();
        } else if (fd == udp_) {
          serve_datagrams();
        } else {
          serve(fd);
        }
      }
    }
  }

 private:
  void watch(int fd) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
  }

  void accept() {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK);
    if (fd < 0) return;
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (left_.size() <= static_cast<size_t>(fd)) left_.resize(static_cast<size_t>(fd) + 1);
    watch(fd);
  }

  void serve(int fd) {
    std::string& left = left_[static_cast<size_t>(fd)];
    std::memcpy(input_.data(), left.data(), left.size());
    const ssize_t got = recv(fd, input_.data() + left.size(), input_.size() - left.size(), 0);
    if (got <= 0) {
      left.clear();
      close(fd);
      return;
    }
    const std::string_view input(input_.data(), left.size() + static_cast<size_t>(got));
    replies_.clear();
    left.assign(input.substr(answer(input, replies_)));
    send_all(fd);
  }

  void send_all(int fd) {
    size_t sent = 0;
    while (sent < replies_.size()) {
      const ssize_t result = send(fd, replies_.data() + sent, replies_.size() - sent, MSG_NOSIGNAL);
      if (result > 0) sent += static_cast<size_t>(result);
      if (result < 0 && errno != EAGAIN) return;
    }
  }

  void serve_datagrams() {
    std::array<mmsghdr, kDatagrams> messages{};
    std::array<iovec, kDatagrams> pieces;
    std::array<sockaddr_in, kDatagrams> from;
    for (size_t i = 0; i < kDatagrams; ++i) {
      pieces[i] = {input_.data() + i * kDatagramBytes, kDatagramBytes};
      messages[i].msg_hdr = {&from[i], sizeof from[i], &pieces[i], 1, nullptr, 0, 0};
    }
    const int count = recvmmsg(udp_, messages.data(), kDatagrams, 0, nullptr);
    replies_.clear();
    for (size_t i = 0; count > 0 && i < static_cast<size_t>(count); ++i) {
      const std::string_view datagram(static_cast<char*>(pieces[i].iov_base), messages[i].msg_len);
      const size_t start = replies_.size();
      replies_.add(datagram.substr(0, kUdpHeaderBytes));
      answer(datagram.substr(kUdpHeaderBytes), replies_);
      pieces[i] = {const_cast<char*>(replies_.data()) + start, replies_.size() - start};
    }
    if (count > 0) sendmmsg(udp_, messages.data(), static_cast<unsigned>(count), 0);
  }

  int epoll_ = -1;
  int listener_ = -1;
  int udp_ = -1;
  std::vector<std::string> left_;  // by fd: the start of a request that is not complete
  std::array<char, kInputBytes> input_;
  Replies replies_;
};

}  // namespace

int main(int argc, char** argv) {
  const char* address = "127.0.0.1";
  sockaddr_in tcp{};
  sockaddr_in udp{};
  tcp.sin_family = udp.sin_family = AF_INET;
  int option;
  while ((option = getopt(argc, argv, "l:p:U:m:t:c:u:")) != -1) {
    if (option == '?') return 2;
    if (option == 'l') address = optarg;
    if (option == 'p') tcp.sin_port = htons(static_cast<uint16_t>(std::atoi(optarg)));
    if (option == 'U') udp.sin_port = htons(static_cast<uint16_t>(std::atoi(optarg)));
  }
  if (tcp.sin_port == 0 || inet_pton(AF_INET, address, &tcp.sin_addr) != 1) {
    std::fputs("usage: socket_floor -l ADDRESS -p PORT [-U PORT]\n", stderr);
    return 2;
  }
  udp.sin_addr = tcp.sin_addr;
  static Server server(tcp, udp.sin_port != 0 ? &udp : nullptr);
  server.run();
}
