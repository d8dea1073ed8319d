// SPDX-License-Identifier: Apache-2.0
//
// What a server's loop costs per request on TCP, without a cache behind it: epoll with one recv and
// one send a request against io_uring with multishot receive into provided buffers. An echo of
// small messages over loopback, one request at a time a connection; both loops take turns, so that
// they meet the same machine. Prints CPU time of the server thread per request.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <liburing.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kConnections = 50;
constexpr int kSeconds = 3;
constexpr int kRounds = 3;
constexpr size_t kMessageSize = 64;
constexpr unsigned kRingEntries = 256;
constexpr unsigned kBuffers = 128;
constexpr int kBufferGroup = 1;
constexpr uint64_t kSendMark = 1u << 20;  // in user data: a send's completion

struct Pairs {
  std::vector<int> server;
  std::vector<int> client;
};

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

// Connected TCP sockets on loopback, without Nagle's delay.
Pairs connect_pairs() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, raw, size) != 0 || listen(listener, kConnections) != 0) fail("listen");
  getsockname(listener, raw, &size);
  Pairs pairs;
  for (int i = 0; i < kConnections; ++i) {
    pairs.client.push_back(socket(AF_INET, SOCK_STREAM, 0));
    if (connect(pairs.client.back(), raw, size) != 0) fail("connect");
    pairs.server.push_back(accept(listener, nullptr, nullptr));
    const int on = 1;
    setsockopt(pairs.client.back(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(pairs.server.back(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  close(listener);
  return pairs;
}

double thread_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Sends on each connection whenever its echo has come, until `stop`.
void drive(const Pairs& pairs, const std::atomic<bool>& stop) {
  std::array<char, kMessageSize> message{};
  const int epoll = epoll_create1(0);
  for (int fd : pairs.client) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    if (send(fd, message.data(), message.size(), 0) < 0) fail("send");
  }
  std::array<epoll_event, 64> events;
  while (!stop) {
    const int count = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 100);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      if (recv(fd, message.data(), message.size(), 0) <= 0) fail("recv");
      if (send(fd, message.data(), message.size(), 0) < 0) fail("send");
    }
  }
  close(epoll);
}

uint64_t serve_epoll(const Pairs& pairs, const std::atomic<bool>& stop) {
  std::array<char, 4096> buffer;
  const int epoll = epoll_create1(0);
  for (int fd : pairs.server) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
  }
  uint64_t requests = 0;
  std::array<epoll_event, 64> events;
  while (!stop) {
    const int count = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 100);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      const ssize_t bytes = recv(fd, buffer.data(), buffer.size(), 0);
      if (bytes <= 0) fail("recv");
      if (send(fd, buffer.data(), static_cast<size_t>(bytes), 0) < 0) fail("send");
      ++requests;
    }
  }
  close(epoll);
  return requests;
}

io_uring_sqe* next_entry(io_uring& ring) {
  io_uring_sqe* entry = io_uring_get_sqe(&ring);
  while (entry == nullptr) {
    io_uring_submit(&ring);
    entry = io_uring_get_sqe(&ring);
  }
  return entry;
}

void arm_receive(io_uring& ring, int fd) {
  io_uring_sqe* entry = next_entry(ring);
  io_uring_prep_recv_multishot(entry, fd, nullptr, 0, 0);
  entry->flags |= IOSQE_BUFFER_SELECT;
  entry->buf_group = kBufferGroup;
  io_uring_sqe_set_data64(entry, static_cast<__u64>(fd));
}

uint64_t serve_uring(const Pairs& pairs, const std::atomic<bool>& stop) {
  io_uring ring;
  io_uring_params params{};
  params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  if (io_uring_queue_init_params(kRingEntries, &ring, &params) < 0) fail("io_uring");
  std::vector<std::array<char, 4096>> memory(kBuffers);
  io_uring_buf_reg reg{};
  void* area = nullptr;
  if (posix_memalign(&area, 4096, kBuffers * sizeof(io_uring_buf)) != 0) fail("memory");
  auto* const buffers = static_cast<io_uring_buf_ring*>(area);
  io_uring_buf_ring_init(buffers);
  reg.ring_addr = reinterpret_cast<uint64_t>(area);
  reg.ring_entries = kBuffers;
  reg.bgid = kBufferGroup;
  if (io_uring_register_buf_ring(&ring, &reg, 0) != 0) fail("buffer ring");
  const int mask = io_uring_buf_ring_mask(kBuffers);
  for (unsigned short i = 0; i < kBuffers; ++i) {
    io_uring_buf_ring_add(buffers, memory[i].data(), 4096, i, mask, i);
  }
  io_uring_buf_ring_advance(buffers, kBuffers);
  for (int fd : pairs.server) arm_receive(ring, fd);
  uint64_t requests = 0;
  while (!stop) {
    io_uring_cqe* first = nullptr;
    __kernel_timespec timeout{0, 100'000'000};
    io_uring_submit_and_wait_timeout(&ring, &first, 1, &timeout, nullptr);
    unsigned head = 0;
    unsigned seen = 0;
    io_uring_cqe* done = nullptr;
    io_uring_for_each_cqe(&ring, head, done) {
      ++seen;
      if ((done->user_data & kSendMark) != 0) {
        // The buffer goes back when its echo has left.
        const auto id = static_cast<unsigned short>(done->user_data & 0xffff);
        io_uring_buf_ring_add(buffers, memory[id].data(), 4096, id, mask, 0);
        io_uring_buf_ring_advance(buffers, 1);
        continue;
      }
      const int fd = static_cast<int>(done->user_data);
      if (done->res <= 0) fail("receive");
      const unsigned id = done->flags >> IORING_CQE_BUFFER_SHIFT;
      io_uring_sqe* entry = next_entry(ring);
      io_uring_prep_send(entry, fd, memory[id].data(), static_cast<size_t>(done->res), 0);
      io_uring_sqe_set_data64(entry, kSendMark | id);
      if ((done->flags & IORING_CQE_F_MORE) == 0) arm_receive(ring, fd);
      ++requests;
    }
    io_uring_cq_advance(&ring, seen);
  }
  io_uring_queue_exit(&ring);
  std::free(area);
  return requests;
}

template <typename Serve>
void measure(const char* name, Serve serve) {
  const Pairs pairs = connect_pairs();
  std::atomic<bool> stop{false};
  std::thread server([&] {
    const double before = thread_cpu_seconds();
    const uint64_t requests = serve(pairs, stop);
    const double spent = thread_cpu_seconds() - before;
    fmt::print("{:8} {:8.0f} requests/s, {:.3f} us of server CPU each\n", name,
               static_cast<double>(requests) / kSeconds,
               spent / static_cast<double>(requests) * 1e6);
  });
  std::atomic<bool> stop_client{false};
  std::thread client([&] { drive(pairs, stop_client); });
  std::this_thread::sleep_for(std::chrono::seconds(kSeconds));
  stop_client = true;
  client.join();
  stop = true;
  server.join();
  for (int fd : pairs.server) close(fd);
  for (int fd : pairs.client) close(fd);
}

}  // namespace

int main() {
  for (int round = 0; round < kRounds; ++round) {
    measure("epoll", serve_epoll);
    measure("io_uring", serve_uring);
  }
}
