// SPDX-License-Identifier: Apache-2.0
#include "io/socket/testing/line_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/testing/patience.h"

namespace warpcache::io {
namespace {

constexpr int kWaitMs = 1000;

uint32_t sum_of(const uint8_t* data, size_t size) {
  uint32_t sum = 0;
  for (size_t i = 0; i < size; ++i) sum = sum * 31 + data[i];
  return sum;
}

uint32_t number_in(std::string_view text) {
  uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

LongWriter::LongWriter(size_t size, bool whole)
    : pipe_(kPipeBytes,
            [this] {
              const std::lock_guard lock(mutex_);
              awake_ = true;
              condition_.notify_one();
            }),
      thread_([this, size, whole] { run(size, whole); }) {}

LongWriter::~LongWriter() { thread_.join(); }

void LongWriter::run(size_t size, bool whole) {
  const std::string text(10'000, 'l');
  while (size > 0 && !pipe_.reader_left()) {
    const size_t wanted = std::min(size, text.size());
    const size_t written = pipe_.write({reinterpret_cast<const uint8_t*>(text.data()), wanted});
    size -= written;
    if (written == wanted) continue;
    std::unique_lock lock(mutex_);
    condition_.wait(lock, [this] { return awake_; });
    awake_ = false;
  }
  pipe_.end(whole);
}

LineWorker::LineWorker(SocketTransport& transport) : transport_(transport), memory_(4 << 20) {
  burst_.arena = {memory_.data(), static_cast<uint32_t>(memory_.size()), 0};
  transport_.attach(*this, *this);
}

void LineWorker::run() {
  while (true) {
    burst_.arena.used = 0;
    burst_.chunks.clear();
    replies_.clear();
    if (!transport_.receive(burst_, kWaitMs)) break;
    ++iterations_;
    chunk_count_ += burst_.chunks.size();
    for (const RxChunk& chunk : burst_.chunks) serve(chunk);
  }
}

void LineWorker::closed(SessionStorage& storage, CloseReason /*reason*/) {
  Session& session = reinterpret_cast<Session&>(storage.bytes);
  delete[] session.buffer;
  if (session.number != 0) --sessions_;
}

bool LineWorker::holds_body(const SessionStorage& storage) const {
  return reinterpret_cast<const Session&>(storage.bytes).buffer != nullptr;
}

void LineWorker::cancel_body(SessionStorage& storage) {
  Session& session = reinterpret_cast<Session&>(storage.bytes);
  delete[] std::exchange(session.buffer, nullptr);
  session.body_size = session.body_received = 0;
}

void LineWorker::release(uint32_t pin) { WC_ASSERT(pins_.erase(pin) == 1); }

void LineWorker::add(std::string text) {
  replies_.push_back(std::make_unique<std::string>(std::move(text)));
  spans_.push_back({reinterpret_cast<const uint8_t*>(replies_.back()->data()),
                    static_cast<uint32_t>(replies_.back()->size()), 0});
}

void LineWorker::add_pinned(size_t size) {
  pinned_.push_back(std::make_unique<std::string>(size, 'p'));
  const auto* data = reinterpret_cast<const uint8_t*>(pinned_.back()->data());
  const auto half = static_cast<uint32_t>(size / 2);
  spans_.push_back({data, half, kPinFollows});
  spans_.push_back({data + half, static_cast<uint32_t>(size) - half, next_pin_});
  pins_.insert(next_pin_++);
}

void LineWorker::serve(const RxChunk& chunk) {
  static_assert(sizeof(Session) <= sizeof(SessionStorage));
  Session none{};
  Session& session = chunk.datagram ? none : reinterpret_cast<Session&>(chunk.session->bytes);
  if (!chunk.datagram && session.number == 0) {
    session.number = 1;
    ++sessions_;
  }
  spans_.clear();
  RxNext next;
  bool go_on = session.body_size == 0 || serve_body(chunk, session, next);
  const std::string_view input(reinterpret_cast<const char*>(burst_.arena.data) + chunk.offset,
                               chunk.size);
  while (go_on) {
    const std::string_view rest = input.substr(next.consumed);
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;
    go_on = serve_line(session, rest.substr(0, end), rest.substr(end + 1), next);
  }
  const Completion completion = {&chunk, &next, spans_.data(),
                                 static_cast<uint32_t>(spans_.size())};
  transport_.complete(burst_, &completion, 1);
}

// Returns false if the body is not complete.
bool LineWorker::serve_body(const RxChunk& chunk, Session& session, RxNext& next) {
  session.body_received += chunk.body_received;
  const uint32_t left = session.body_size - session.body_received;
  const uint32_t here = std::min(left, chunk.size);
  std::memcpy(session.buffer + session.body_received, burst_.arena.data + chunk.offset, here);
  session.body_received += here;
  next.consumed = here;
  if (session.body_received < session.body_size) {
    constexpr uint32_t kWindow = 10'000;
    const uint32_t missing = session.body_size - session.body_received;
    next.body = {session.buffer + session.body_received, std::min(missing, kWindow)};
    next.body_ends = missing <= kWindow;
    next.in_value = true;
    return false;
  }
  add(std::to_string(session.body_size) + " " +
      std::to_string(sum_of(session.buffer, session.body_size)) + "\n");
  delete[] session.buffer;
  session.buffer = nullptr;
  session.body_size = session.body_received = 0;
  return true;
}

// Answers a line and the bytes that belong to it. Returns false if nothing more can be done in this
// iteration.
bool LineWorker::serve_line(Session& session, std::string_view line, std::string_view rest,
                            RxNext& next) {
  const std::string_view command = line.substr(0, line.find(' '));
  const std::string_view argument = line.substr(std::min(command.size() + 1, line.size()));
  const uint32_t number = number_in(argument);
  uint32_t used = static_cast<uint32_t>(line.size()) + 1;
  if (command == "echo") {
    add(std::string(argument) + "\n");
  } else if (command == "big") {
    add(std::string(number, 'x'));
  } else if (command == "pin") {
    add_pinned(number);
  } else if (command == "need") {
    next.need = used + number;
    next.in_value = true;
    if (rest.size() < number) return false;
    const auto* data = reinterpret_cast<const uint8_t*>(rest.data());
    add(std::to_string(number) + " " + std::to_string(sum_of(data, number)) + "\n");
    used += number;
    next.need = 0;
    next.in_value = false;
  } else if (command == "body") {
    session.body_size = number;
    session.buffer = new uint8_t[number];
    RxChunk tail;
    tail.offset =
        static_cast<uint32_t>(reinterpret_cast<const uint8_t*>(rest.data()) - burst_.arena.data);
    tail.size = static_cast<uint32_t>(rest.size());
    const uint32_t before = next.consumed + used;
    const bool whole = serve_body(tail, session, next);
    next.consumed += before;
    return whole;
  } else if (command == "long" || command == "cut") {
    long_replies_.push_back(std::make_unique<LongWriter>(number, command == "long"));
    next.long_reply = long_replies_.back()->pipe();
    next.consumed += used;
    next.more_now = !rest.empty();
    return false;
  } else if (command == "refuse") {
    transport_.body_refused();
    add("refused\n");
  } else if (command == "slow") {
    session.slow ^= 1;
    next.more_now = session.slow != 0;
    if (next.more_now) return false;
    add("slow\n");
  } else if (command == "later") {
    next.more_now = next.later = session.laters < number;
    session.laters = next.later ? session.laters + 1 : 0;
    if (next.later) return false;
    add("later\n");
  } else if (command == "quit") {
    add("bye\n");
    next.close = true;
    return false;
  }
  next.consumed += used;
  return true;
}

bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

LineServer::LineServer(const LineServerConfig& config) {
  std::vector<Listener> listeners;
  std::vector<std::string> skipped;
  const std::string host = config.ipv6 ? "::1" : "127.0.0.1";
  const TlsUse tls = config.tls != nullptr ? config.tls_use : TlsUse::kNone;
  const std::string failure = config.unix_path.empty()
                                  ? open_tcp({host, 0, true, tls}, 1024, listeners, skipped)
                                  : open_unix(config.unix_path, 0700, 1024, listeners);
  WC_ASSERT(failure.empty());
  port_ = listeners[0].port;
  std::vector<UdpListener> udp;
  if (config.udp) {
    WC_ASSERT(open_udp({host, 0}, config.workers, udp, skipped).empty());
    udp_port_ = udp[0].port;
  }
  acceptor_ = std::make_unique<Acceptor>(
      AcceptorConfig{config.connections_max, config.reject_when_full}, std::move(listeners));
  const SocketTransportConfig transport_config{config.idle_timeout_s, config.stall_timeout_s,
                                               config.input_bytes_max, config.output_bytes_max,
                                               config.unix_path};
  std::vector<ConnectionSink*> sinks;
  for (uint32_t i = 0; i < config.workers; ++i) {
    std::vector<UdpSocket> sockets;
    if (config.udp) sockets.push_back({std::move(udp[0].fds[i])});
    auto worker = std::make_unique<WorkerThread>();
    worker->transport =
        std::make_unique<SocketTransport>(transport_config, acceptor_->budget(), std::move(sockets),
                                          UdpGuard({}, config.udp_amplification_max));
    worker->loop = std::make_unique<LineWorker>(*worker->transport);
    worker->thread = std::thread([worker = worker->loop.get()] { worker->run(); });
    sinks.push_back(worker->transport.get());
    workers_.push_back(std::move(worker));
  }
  WC_ASSERT(acceptor_->listen().empty());
  if (config.tls != nullptr) {
    handshakes_ = std::make_unique<Handshakes>(config.handshakes, config.tls, acceptor_->budget());
    handshakes_->start(sinks);
  }
  acceptor_->start(std::move(sinks), handshakes_.get());
}

LineServer::~LineServer() {
  stop_now();
  for (const auto& worker : workers_) {
    WC_ASSERT(worker->loop->open_pins() == 0 && worker->loop->open_sessions() == 0);
  }
}

void LineServer::stop_accepting() {
  acceptor_->stop();
  if (handshakes_ != nullptr) handshakes_->stop();
}

void LineServer::stop_now() {
  stop_accepting();
  for (const auto& worker : workers_) worker->transport->stop_now();
  join();
}

void LineServer::drain() {
  stop_accepting();
  for (const auto& worker : workers_) worker->transport->drain();
  join();
}

void LineServer::join() {
  for (const auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
}

uint64_t LineServer::sum(Counter TransportCounters::*counter) const {
  uint64_t sum = 0;
  for (const auto& worker : workers_) sum += (worker->transport->counters().*counter).get();
  return sum;
}

namespace {

UniqueFd connect_to(int family, const sockaddr* address, socklen_t size) {
  UniqueFd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval timeout{Client::kTimeoutS, 0};
  (void)setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  const int on = 1;
  (void)setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fd.get(), address, size) != 0) fd.reset();
  return fd;
}

}  // namespace

Client::Client(uint16_t port, bool ipv6) {
  if (ipv6) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    address.sin6_port = htons(port);
    fd_ = connect_to(AF_INET6, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    fd_ = connect_to(AF_INET, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
}

Client::Client(const std::string& unix_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  WC_ASSERT(unix_path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, unix_path.data(), unix_path.size());
  fd_ = connect_to(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

void Client::send(std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    text.remove_prefix(static_cast<size_t>(sent));
  }
}

std::string Client::receive(size_t size) {
  std::string text(size, '\0');
  size_t have = 0;
  while (have < size) {
    const ssize_t got = recv(fd_.get(), text.data() + have, size - have, 0);
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  return text;
}

std::string Client::ask(std::string_view text, size_t reply_size) {
  send(text);
  return receive(reply_size);
}

bool Client::closed() {
  char byte;
  const ssize_t got = recv(fd_.get(), &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

void Client::shut_down_sending() { (void)shutdown(fd_.get(), SHUT_WR); }

void Client::reset() {
  const linger now{1, 0};
  (void)setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  fd_.reset();
}

}  // namespace warpcache::io
