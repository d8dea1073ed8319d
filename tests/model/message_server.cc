// SPDX-License-Identifier: Apache-2.0
#include "model/message_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/testing/patience.h"
#include "client/am_client.h"
#include "io/ucx/am_layout.h"

namespace warpcache::model {

namespace {

using client::AmClient;
using client::AmStream;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kPortsMax = 5;                // that another program may take before the server does
constexpr int kConnectTriesMax = 20;        // a busy machine may not greet in time
constexpr milliseconds kLook{100};          // between two looks at whether the run is to end
constexpr milliseconds kTurn{1};            // of waiting while there is more to send
constexpr milliseconds kSilentAgain{1000};  // of another stream, when one was silent for so long
constexpr const char* kHost = "127.0.0.1";

// 0: none.
uint16_t free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0) {
    (void)getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  }
  (void)close(fd);
  return ntohs(address.sin_port);
}

struct Range {
  size_t begin = 0;
  size_t end = 0;
};

// Where the body of a message may be, if the message is one of a store with a head of its kind.
Range body_of(std::string_view message) {
  constexpr size_t kHeadBytes = 24;
  size_t begin = 0;
  size_t end = message.size();
  const auto byte = [message](size_t at) { return static_cast<uint8_t>(message[at]); };
  if (end < kHeadBytes) return {};
  if (byte(0) == 0x80) {
    begin = kHeadBytes + byte(2) * 256u + byte(3) + byte(4);
  } else {
    begin = message.find('\n') + 1;  // 0: there is none
    end -= 2;
    if (begin == 0) return {};
  }
  return {begin, std::max(begin, end)};
}

class MessageServer final : public Server {
 public:
  MessageServer(const ProcessConfig& config, std::unique_ptr<ServerProcess> process, uint16_t port)
      : process_(std::move(process)),
        port_(port),
        stop_(config.stop),
        silence_(kPatienceMs),
        cuts_(config.cuts),
        random_(static_cast<uint32_t>(config.cuts + 1)) {}
  MessageServer(const MessageServer&) = delete;
  MessageServer& operator=(const MessageServer&) = delete;

  void send(int stream, const std::string& bytes) override;
  void send_datagram(const std::string&) override {}
  bool run() override;
  std::string take_output(int stream) override;
  std::vector<std::string> take_datagrams() override { return {}; }
  bool closed(int stream) override { return connections_[stream].stream == nullptr; }
  bool wait(int stream) override;
  bool runs_on() const override { return true; }
  void advance(uint32_t seconds) override { process_->advance(seconds); }
  std::map<std::string, uint64_t> counts() override;
  std::string finish() override;
  int64_t now() const override { return process_->now(); }
  int64_t unix_start() const override { return process_->unix_start(); }
  std::string version() const override { return process_->version(); }
  uint64_t first_cas() const override { return process_->first_cas(); }
  bool cas_follows_requests() const override { return false; }

 private:
  struct Connection {
    AmStream* stream = nullptr;  // the client's; null: none, or it has ended and all was read
    bool asked = false;          // something was sent in this round
    std::string output;
    std::string queued;             // for run()
    std::vector<Range> bodies;      // of `queued`: to go by rendezvous, in order
    std::deque<std::string> flown;  // bodies under way
  };

  bool stops() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }
  AmStream* connect();
  bool open(Connection& connection, Clock::time_point deadline);
  void write(Connection& connection);
  size_t send_piece(Connection& connection, std::string_view bytes, size_t at, Range body);
  bool drain(Connection& connection);
  void drain_all() {
    for (auto& [number, connection] : connections_) (void)drain(connection);
  }

  // In this order: what is under way outlives the client, which ends before the server.
  const std::unique_ptr<ServerProcess> process_;
  const uint16_t port_;
  const std::atomic<bool>* const stop_;
  milliseconds silence_;
  Cuts cuts_;
  std::minstd_rand random_;
  std::map<int, Connection> connections_;
  std::unique_ptr<AmClient> client_;
};

AmStream* MessageServer::connect() {
  std::string failure;
  // Half of them have large values by rendezvous over TCP, too.
  if (client_ == nullptr) failure = AmClient::open(&client_, false, random_() % 2 == 0);
  AmStream* stream = nullptr;
  if (failure.empty()) failure = client_->connect(kHost, port_, &stream);
  if (!failure.empty()) throw std::runtime_error("active messages: " + failure);
  return stream;
}

void MessageServer::send(int stream, const std::string& bytes) {
  Connection& connection = connections_[stream];
  if (connection.stream == nullptr && !connection.asked) connection.stream = connect();
  connection.asked = true;
  const Range body = body_of(bytes);
  const size_t before = connection.queued.size();
  if (body.end - body.begin > io::kAmEagerMax && random_() % 4 != 0) {
    connection.bodies.push_back({before + body.begin, before + body.end});
  }
  connection.queued += bytes;
}

// Moves what has come to the output. Whether something came, or the stream has ended.
bool MessageServer::drain(Connection& connection) {
  if (connection.stream == nullptr) return false;
  AmStream& stream = *connection.stream;
  bool came = false;
  while (true) {
    const Bytes bytes = stream.readable();
    if (bytes.size != 0) {
      connection.output.append(reinterpret_cast<const char*>(bytes.data), bytes.size);
      stream.consume(bytes.size);
      came = true;
      continue;
    }
    if (stream.is_fetching()) return came;
    if (stream.announced() == 0) break;
    stream.fetch_more();
  }
  if (stream.state() != AmStream::State::kEnded) return came;
  if (stream.is_sent()) {
    client_->close(&stream);
  } else {
    client_->close_and_wait(&stream);
  }
  connection.stream = nullptr;
  connection.flown.clear();
  return true;
}

// A server closes an endpoint whose client does not greet in time, as a client on a busy machine.
bool MessageServer::open(Connection& connection, Clock::time_point deadline) {
  int tries = 1;
  while (connection.stream != nullptr && !stops() && Clock::now() < deadline) {
    AmStream& stream = *connection.stream;
    if (stream.state() == AmStream::State::kOpen) return true;
    if (stream.state() == AmStream::State::kEnded) {
      client_->close(std::exchange(connection.stream, nullptr));
      if (tries++ < kConnectTriesMax) connection.stream = connect();
    } else {
      client_->wait(Clock::now() + kLook);
    }
  }
  return false;
}

// Sends a piece of what is left from `at` on, whose next body is `body`. Returns its size; 0: not
// now.
size_t MessageServer::send_piece(Connection& connection, std::string_view bytes, size_t at,
                                 Range body) {
  AmStream& stream = *connection.stream;
  if (at < body.begin) {
    const size_t size = cuts_.next(body.begin - at);
    return stream.send(bytes_of(bytes.substr(at, size)));
  }
  if (!stream.rendezvous_free()) return 0;
  if (stream.is_sent()) connection.flown.clear();
  size_t size = std::min<size_t>(body.end - at, stream.rendezvous_max());
  if (cuts_.active() && random_() % 2 == 0) size = 1 + random_() % size;
  connection.flown.emplace_back(bytes.substr(at, size));
  stream.send_in_place(bytes_of(connection.flown.back()));
  return size;
}

void MessageServer::write(Connection& connection) {
  connection.asked = false;
  const std::string bytes = std::exchange(connection.queued, {});
  std::vector<Range> bodies = std::exchange(connection.bodies, {});
  bodies.push_back({bytes.size(), bytes.size()});
  Clock::time_point deadline = Clock::now() + silence_;
  if (!open(connection, deadline)) return;
  const auto goes_on = [&] { return connection.stream != nullptr && !stops(); };
  size_t body = 0;
  for (size_t at = 0; at < bytes.size() && goes_on() && Clock::now() < deadline;) {
    if (bodies[body].end == at) ++body;
    const bool is_open = connection.stream->state() == AmStream::State::kOpen;
    const size_t sent = is_open ? send_piece(connection, bytes, at, bodies[body]) : 0;
    at += sent;
    if (sent != 0) {
      deadline = Clock::now() + silence_;
      continue;
    }
    // Replies may have to be read first, of any stream.
    client_->wait(Clock::now() + kTurn);
    drain_all();
  }
}

bool MessageServer::run() {
  for (auto& [number, connection] : connections_) {
    if (connection.asked) write(connection);
  }
  return true;
}

std::string MessageServer::take_output(int stream) {
  Connection& connection = connections_[stream];
  (void)drain(connection);
  return std::exchange(connection.output, {});
}

bool MessageServer::wait(int stream) {
  Connection& connection = connections_[stream];
  if (connection.stream == nullptr || stops()) return false;
  const Clock::time_point deadline = Clock::now() + silence_;
  while (!stops() && Clock::now() < deadline) {
    if (drain(connection)) return true;
    client_->wait(std::min(deadline, Clock::now() + kLook));
  }
  silence_ = std::min(silence_, kSilentAgain);
  return false;
}

std::map<std::string, uint64_t> MessageServer::counts() {
  std::map<std::string, uint64_t> counts;
  for (const char* const name :
       {"ucx_opened", "ucx_messages_received", "ucx_messages_sent", "ucx_fetched_bytes",
        "ucx_copied_bytes", "ucx_pinned_bytes", "ucx_restarts"}) {
    counts[name] = process_->stat(name);
  }
  return counts;
}

// All endpoints end with the client, and whatever they held.
std::string MessageServer::finish() {
  connections_.clear();
  client_.reset();
  const Clock::time_point deadline = Clock::now() + kPatience;
  while (!stops() && process_->stat("ucx_endpoints") != 0) {
    if (Clock::now() >= deadline)
      return "the server still has endpoints, all of whose clients have gone";
    usleep(1000);
  }
  return process_->finish();
}

}  // namespace

std::unique_ptr<Server> start_message_server(const ProcessConfig& config) {
  ProcessConfig with_port = config;
  with_port.options.insert(with_port.options.end(), {"-c", "8192"});
  // UCX shares memory with processes of the same user.
  if (geteuid() == 0) with_port.options.insert(with_port.options.end(), {"-u", "root"});
  with_port.options.emplace_back();
  for (int i = 0; i < kPortsMax; ++i) {
    const uint16_t port = free_port();
    with_port.options.back() = std::string("--ucx=") + kHost + ":" + std::to_string(port);
    auto process = std::make_unique<ServerProcess>(with_port);
    if (!process->ok()) continue;
    if (!process->clock_moves()) throw std::runtime_error(config.program + " has no debugtime");
    return std::make_unique<MessageServer>(config, std::move(process), port);
  }
  throw std::runtime_error(config.program + " does not start with --ucx");
}

}  // namespace warpcache::model
