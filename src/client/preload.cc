// SPDX-License-Identifier: Apache-2.0
//
// libwarpcache_preload.so: connections of an unmodified program to servers that
// WARPCACHE_UCX names go by active messages.
//
//   LD_PRELOAD=libwarpcache_preload.so WARPCACHE_UCX=127.0.0.1:11211=11212 memcslap -s 127.0.0.1
//
// WARPCACHE_UCX is HOST:TCP_PORT=UCX_PORT, several with commas between them. A connect() to
// HOST:TCP_PORT puts a pair of Unix sockets in its place, and a thread carries their bytes. Where
// the server does not answer by UCX the connection is one of TCP, as without this library; and so
// it is in a process that was forked after its parent had used UCX, which does not live on there.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "client/am_client.h"
#include "client/am_pump.h"

namespace warpcache::client {
namespace {

constexpr auto kConnectTime = std::chrono::seconds(2);
constexpr int kSleepMs = 1000;

// Threads of this library and of UCX connect as ever.
thread_local bool connects_as_ever = false;

template <typename Function>
Function* next_of(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

struct Route {
  std::vector<sockaddr_storage> addresses;  // of HOST:TCP_PORT
  std::string host;
  uint16_t ucx_port = 0;
};

bool read_port(std::string_view text, uint16_t* port) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *port);
  return error == std::errc() && end == text.data() + text.size() && *port != 0;
}

// One part of WARPCACHE_UCX. False: it is not HOST:TCP_PORT=UCX_PORT.
bool read_route(std::string_view text, Route* route) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos) return false;
  const size_t colon = text.rfind(':', equals);
  if (colon == std::string_view::npos || colon == 0) return false;
  std::string_view host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const std::string tcp_port(text.substr(colon + 1, equals - colon - 1));
  uint16_t port = 0;
  if (!read_port(tcp_port, &port) || !read_port(text.substr(equals + 1), &route->ucx_port)) {
    return false;
  }
  route->host = host;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(route->host.c_str(), tcp_port.c_str(), &hints, &found) != 0) return false;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    std::memcpy(&route->addresses.emplace_back(), one->ai_addr, one->ai_addrlen);
  }
  freeaddrinfo(found);
  return true;
}

std::vector<Route> read_routes() {
  std::vector<Route> routes;
  const char* const given = std::getenv("WARPCACHE_UCX");
  std::string_view text = given == nullptr ? "" : given;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    Route route;
    if (read_route(text.substr(0, comma), &route)) {
      routes.push_back(std::move(route));
    } else {
      std::fprintf(stderr, "WARPCACHE_UCX: \"%.*s\" is not HOST:TCP_PORT=UCX_PORT\n",
                   static_cast<int>(comma), text.data());
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return routes;
}

// REQUIRES: `asked` is as long as its family's addresses.
bool is_same(const sockaddr_storage& known, const sockaddr* asked) {
  if (known.ss_family != asked->sa_family) return false;
  if (asked->sa_family == AF_INET) {
    const auto& a = reinterpret_cast<const sockaddr_in&>(known);
    const auto& b = *reinterpret_cast<const sockaddr_in*>(asked);
    return a.sin_port == b.sin_port && a.sin_addr.s_addr == b.sin_addr.s_addr;
  }
  const auto& a = reinterpret_cast<const sockaddr_in6&>(known);
  const auto& b = *reinterpret_cast<const sockaddr_in6*>(asked);
  return a.sin6_port == b.sin6_port && std::memcmp(&a.sin6_addr, &b.sin6_addr, 16) == 0;
}

const Route* route_to(const sockaddr* address) {
  static const std::vector<Route> routes = read_routes();
  if (address->sa_family != AF_INET && address->sa_family != AF_INET6) return nullptr;
  for (const Route& route : routes) {
    for (const sockaddr_storage& known : route.addresses) {
      if (is_same(known, address)) return &route;
    }
  }
  return nullptr;
}

// The thread that carries bytes.
class Carrier {
 public:
  Carrier() : pid_(getpid()), wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    thread_ = std::thread([this] { run(); });
  }
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;
  // Carries what was written before it ends, within kConnectTime.
  ~Carrier() {
    {
      const std::lock_guard guard(mutex_);
      stopped_ = true;
    }
    wake();
    thread_.join();
    (void)close(wake_fd_);
  }

  bool is_of_this_process() const { return pid_ == getpid(); }

  // Connects `fd`, the other end of the program's socket. False: the server does not answer.
  bool connect(int fd, const Route& route) {
    Request request = {fd, &route, Request::State::kNew};
    std::unique_lock lock(mutex_);
    if (stopped_) return false;
    requests_.push_back(&request);
    wake();
    ready_.wait(lock, [&] { return request.state != Request::State::kNew; });
    return request.state == Request::State::kOpen;
  }

 private:
  struct Request {
    enum class State : uint8_t { kNew, kOpen, kRefused };
    int fd;
    const Route* route;
    State state;
  };

  void wake() {
    const uint64_t one = 1;
    (void)!write(wake_fd_, &one, sizeof one);
  }

  void run() {
    connects_as_ever = true;
    std::unique_ptr<AmClient> client;
    const std::string failure = AmClient::open(&client);
    if (!failure.empty()) std::fprintf(stderr, "WARPCACHE_UCX: %s\n", failure.c_str());
    std::unique_ptr<AmPump> pump;
    if (failure.empty()) pump = std::make_unique<AmPump>(*client);
    while (true) {
      std::vector<Request*> asked;
      {
        std::unique_lock lock(mutex_);
        if (pump == nullptr) ready_.wait(lock, [&] { return stopped_ || !requests_.empty(); });
        if (stopped_) break;
        asked.swap(requests_);
      }
      for (Request* const request : asked) answer(*request, client.get(), pump.get());
      if (pump == nullptr || !pump->run_once(wake_fd_, kSleepMs)) continue;
      uint64_t count;
      (void)!read(wake_fd_, &count, sizeof count);
    }
    const auto deadline = std::chrono::steady_clock::now() + kConnectTime;
    while (pump != nullptr && !pump->is_empty() && std::chrono::steady_clock::now() < deadline) {
      (void)pump->run_once(-1, 1);
    }
  }

  void answer(Request& request, AmClient* client, AmPump* pump) {
    AmStream* stream = nullptr;
    bool open = client != nullptr &&
                client->connect(request.route->host, request.route->ucx_port, &stream).empty();
    if (open) {
      const auto deadline = std::chrono::steady_clock::now() + kConnectTime;
      while (stream->state() == AmStream::State::kConnecting &&
             std::chrono::steady_clock::now() < deadline) {
        client->wait(deadline);
      }
      open = stream->state() == AmStream::State::kOpen;
      if (open) {
        pump->add(request.fd, stream);
      } else {
        client->close(stream);
      }
    }
    const std::lock_guard guard(mutex_);
    request.state = open ? Request::State::kOpen : Request::State::kRefused;
    ready_.notify_all();
  }

  const pid_t pid_;
  const int wake_fd_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable ready_;
  std::vector<Request*> requests_;
  bool stopped_ = false;
  std::thread thread_;
};

std::mutex carrier_mutex;
Carrier* carrier = nullptr;

// Null: the process was forked from one that has a carrier.
Carrier* carrier_of_this_process() {
  const std::lock_guard guard(carrier_mutex);
  if (carrier == nullptr) carrier = new Carrier;
  return carrier->is_of_this_process() ? carrier : nullptr;
}

// When the program ends.
__attribute__((destructor)) void end_carrier() {
  if (carrier != nullptr && carrier->is_of_this_process()) delete std::exchange(carrier, nullptr);
}

int option_of(int fd, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

// Whether `fd` is connected by active messages now.
bool connect_by_messages(int fd, const Route& route) {
  Carrier* const thread = carrier_of_this_process();
  int ends[2];
  if (thread == nullptr) return false;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
  const bool connected = thread->connect(ends[1], route);
  const int flags = fcntl(fd, F_GETFL);
  const bool closes = (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
  const bool done = connected && dup3(ends[0], fd, closes ? O_CLOEXEC : 0) == fd;
  if (done) (void)fcntl(fd, F_SETFL, flags);
  if (!connected) (void)close(ends[1]);  // else it is the carrier's
  (void)close(ends[0]);
  return done;
}

int connect_socket(int fd, const sockaddr* address, socklen_t size) {
  static auto* const next = next_of<int(int, const sockaddr*, socklen_t)>("connect");
  const bool is_whole = address != nullptr && size >= sizeof(sockaddr_in) &&
                        (address->sa_family != AF_INET6 || size >= sizeof(sockaddr_in6));
  if (connects_as_ever || !is_whole) return next(fd, address, size);
  const Route* const route = route_to(address);
  const bool stream = route != nullptr && option_of(fd, SO_TYPE) == SOCK_STREAM &&
                      option_of(fd, SO_DOMAIN) == address->sa_family;
  if (stream && connect_by_messages(fd, *route)) return 0;
  return next(fd, address, size);
}

// A program sets options of TCP before or after it connects.
int set_option(int fd, int level, int option, const void* value, socklen_t size) {
  static auto* const next = next_of<int(int, int, int, const void*, socklen_t)>("setsockopt");
  if (level == IPPROTO_TCP && !connects_as_ever && option_of(fd, SO_DOMAIN) == AF_UNIX) return 0;
  return next(fd, level, option, value, size);
}

}  // namespace
}  // namespace warpcache::client

extern "C" __attribute__((visibility("default"))) int connect(int fd, const sockaddr* addr,
                                                              socklen_t len) {
  return warpcache::client::connect_socket(fd, addr, len);
}

extern "C" __attribute__((visibility("default"))) int setsockopt(int fd, int level, int optname,
                                                                 const void* optval,
                                                                 socklen_t optlen) {
  return warpcache::client::set_option(fd, level, optname, optval, optlen);
}
