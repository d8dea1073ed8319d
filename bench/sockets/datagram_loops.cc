// SPDX-License-Identifier: Apache-2.0
//
// What a server's loop costs per datagram, without a cache behind it, in several designs that take
// turns: an echo over loopback to 64 clients with one request each under way, as `warpcache-load
// --udp -c 64` has. Prints CPU time of the server thread per request, and its ratio to the first
// design round by round.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <liburing.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kClients = 64;
constexpr unsigned kBurst = 32;
constexpr size_t kRequestSize = 32;
constexpr size_t kHeaderSize = 8;
constexpr size_t kBodySize = 64;
constexpr auto kRoundTime = std::chrono::milliseconds(500);
constexpr int kRounds = 21;

struct Design {
  const char* name;
  bool control = true;       // room for control messages at each receive, UDP_GRO asked for
  unsigned pieces = 2;       // of a reply: header and body, or both in one
  bool apart = false;        // replies leave by a socket that nobody watches
  bool no_fragment = false;  // IP_PMTUDISC_DO: no identification for fragments
  bool connected = false;    // a socket per client
  bool uring = false;        // replies of a turn are one submission
  int busy_poll_us = 0;
};

constexpr Design kDesigns[] = {
    {.name = "recvmmsg, sendmmsg"},
    {.name = "the same again"},
    {.name = "no control messages", .control = false},
    {.name = "replies in one piece", .pieces = 1},
    {.name = "replies by a socket of their own", .apart = true},
    {.name = "no fragments", .no_fragment = true},
    {.name = "one piece, own socket", .control = false, .pieces = 1, .apart = true},
    {.name = "busy poll 50 us", .busy_poll_us = 50},
    {.name = "a connected socket per client", .connected = true},
    {.name = "io_uring for replies", .uring = true},
};

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

double thread_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// The thread's CPU: the first or second of those this process may use.
void pin(int place) {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || place-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    return;
  }
}

sockaddr* raw(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

sockaddr_in address_of(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(fd, raw(address), &size);
  return address;
}

int open_socket(sockaddr_in& address) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  if (bind(fd, raw(address), sizeof address) != 0) fail("bind");
  address = address_of(fd);
  return fd;
}

void join(int fd, sockaddr_in peer) {
  if (connect(fd, raw(peer), sizeof peer) != 0) fail("connect");
}

void watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

// Each client sends whenever its reply has come, until `stop`.
void drive(const std::vector<int>& clients, const std::atomic<bool>& stop) {
  pin(1);
  std::array<char, 256> message{};
  const int epoll = epoll_create1(0);
  for (int fd : clients) {
    watch(epoll, fd);
    if (send(fd, message.data(), kRequestSize, 0) < 0) fail("send");
  }
  std::array<epoll_event, kClients> events;
  while (!stop) {
    const int count = epoll_wait(epoll, events.data(), kClients, 100);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      if (recv(fd, message.data(), message.size(), 0) <= 0) fail("recv");
      if (send(fd, message.data(), kRequestSize, 0) < 0) fail("send");
    }
  }
  close(epoll);
}

struct Burst {
  mmsghdr in[kBurst];
  mmsghdr out[kBurst];
  iovec in_pieces[kBurst];
  iovec out_pieces[kBurst][2];
  sockaddr_storage sources[kBurst];
  alignas(8) std::array<char, 64> controls[kBurst];
  std::array<char, 256> requests[kBurst];
  std::array<char, 256> replies[kBurst];
};

void prepare(const Design& design, Burst& burst) {
  for (unsigned i = 0; i < kBurst; ++i) {
    burst.in_pieces[i] = {burst.requests[i].data(), burst.requests[i].size()};
    msghdr& in = burst.in[i].msg_hdr = {};
    in.msg_name = &burst.sources[i];
    in.msg_namelen = sizeof burst.sources[i];
    in.msg_iov = &burst.in_pieces[i];
    in.msg_iovlen = 1;
    if (design.control) {
      in.msg_control = burst.controls[i].data();
      in.msg_controllen = burst.controls[i].size();
    }
  }
}

void compose(const Design& design, Burst& burst, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    char* const reply = burst.replies[i].data();
    std::copy_n(burst.requests[i].data(), kHeaderSize, reply);
    burst.out_pieces[i][0] = {reply, kHeaderSize + (design.pieces == 1 ? kBodySize : 0)};
    burst.out_pieces[i][1] = {reply + kHeaderSize, kBodySize};
    msghdr& out = burst.out[i].msg_hdr = {};
    out.msg_name = &burst.sources[i];
    out.msg_namelen = burst.in[i].msg_hdr.msg_namelen;
    out.msg_iov = burst.out_pieces[i];
    out.msg_iovlen = design.pieces;
  }
}

void submit(io_uring& ring, int fd, Burst& burst, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    io_uring_prep_sendmsg(io_uring_get_sqe(&ring), fd, &burst.out[i].msg_hdr, 0);
  }
  io_uring_submit_and_wait(&ring, count);
  io_uring_cq_advance(&ring, count);
}

// One watched socket for all clients.
uint64_t serve(const Design& design, int fd, int reply_fd, const std::atomic<bool>& stop) {
  io_uring ring;
  const unsigned flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  if (design.uring && io_uring_queue_init(kBurst, &ring, flags) < 0) fail("io_uring");
  const int epoll = epoll_create1(0);
  watch(epoll, fd);
  static Burst burst;
  uint64_t requests = 0;
  epoll_event event;
  while (!stop) {
    if (epoll_wait(epoll, &event, 1, 100) <= 0) continue;
    prepare(design, burst);
    const int got = recvmmsg(fd, burst.in, kBurst, MSG_DONTWAIT, nullptr);
    if (got <= 0) continue;
    const auto count = static_cast<unsigned>(got);
    compose(design, burst, count);
    if (design.uring) {
      submit(ring, reply_fd, burst, count);
    } else if (sendmmsg(reply_fd, burst.out, count, MSG_DONTWAIT) != got) {
      fail("sendmmsg");
    }
    requests += count;
  }
  if (design.uring) io_uring_queue_exit(&ring);
  close(epoll);
  return requests;
}

// A watched socket for each client.
uint64_t serve_connected(const std::vector<int>& fds, const std::atomic<bool>& stop) {
  const int epoll = epoll_create1(0);
  for (int fd : fds) watch(epoll, fd);
  std::array<char, 256> request;
  std::array<char, 256> reply{};
  uint64_t requests = 0;
  std::array<epoll_event, kClients> events;
  while (!stop) {
    const int count = epoll_wait(epoll, events.data(), kClients, 100);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      if (recv(fd, request.data(), request.size(), MSG_DONTWAIT) <= 0) continue;
      if (send(fd, reply.data(), kHeaderSize + kBodySize, MSG_DONTWAIT) < 0) fail("send");
      ++requests;
    }
  }
  close(epoll);
  return requests;
}

double microseconds_each(const Design& design) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::vector<int> fds = {open_socket(address)};
  const int on = 1;
  if (design.control) setsockopt(fds[0], IPPROTO_UDP, UDP_GRO, &on, sizeof on);
  if (design.apart) {
    fds.push_back(open_socket(address));
    join(fds[1], address);  // so that it receives from nobody else
  }
  std::vector<int> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(socket(AF_INET, SOCK_DGRAM, 0));
    join(clients.back(), address);
    if (!design.connected) continue;
    fds.push_back(open_socket(address));
    join(fds.back(), address_of(clients.back()));
  }
  for (int fd : fds) {
    const int discover = IP_PMTUDISC_DO;
    if (design.no_fragment) setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover);
    const int busy = design.busy_poll_us;
    if (busy > 0) setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL, &busy, sizeof busy);
  }
  std::atomic<bool> stop{false};
  double result = 0;
  std::thread server([&] {
    pin(0);
    const double before = thread_cpu_seconds();
    const uint64_t requests = design.connected ? serve_connected(fds, stop)
                                               : serve(design, fds[0], fds[design.apart], stop);
    result = (thread_cpu_seconds() - before) / static_cast<double>(requests) * 1e6;
  });
  std::thread client([&] { drive(clients, stop); });
  std::this_thread::sleep_for(kRoundTime);
  stop = true;
  client.join();
  server.join();
  for (int fd : fds) close(fd);
  for (int fd : clients) close(fd);
  return result;
}

}  // namespace

int main() {
  std::map<std::string, std::vector<double>> times;
  std::map<std::string, std::vector<double>> ratios;
  for (int round = 0; round < kRounds; ++round) {
    for (const Design& design : kDesigns) {
      times[design.name].push_back(microseconds_each(design));
      ratios[design.name].push_back(times[design.name].back() / times[kDesigns[0].name].back());
    }
  }
  const auto at = [](std::vector<double>& values, size_t numerator) {
    std::sort(values.begin(), values.end());
    return values[values.size() * numerator / 4];
  };
  for (const Design& design : kDesigns) {
    std::vector<double>& ratio = ratios[design.name];
    fmt::print("{:34} {:.3f} us, {:.2f} ({:.2f} to {:.2f})\n", design.name,
               at(times[design.name], 2), at(ratio, 2), at(ratio, 1), at(ratio, 3));
  }
}
