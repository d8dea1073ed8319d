// SPDX-License-Identifier: Apache-2.0
//
// Test support: an acceptor and workers with real sockets on loopback that answer a small protocol
// of lines, so that the transport is tested without an engine:
//
//   echo TEXT     TEXT and a line end
//   big N         N bytes 'x', not pinned
//   pin N         N bytes 'p', in two pinned pieces
//   need N        asks for the next N bytes in one piece; answers their number and sum
//   body N        the same, but receives them in pieces into a buffer of the server; if it is
//                 cancelled, the rest is lines
//   refuse        counts a body for which there is no space
//   long N        N bytes 'l', as a long reply that another thread writes
//   cut N         the same, but broken off after N bytes
//   slow          nothing now; is delivered again once, then "slow"
//   quit          "bye", then the connection is closed
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/byte_pipe.h"
#include "io/socket/accept/acceptor.h"
#include "io/socket/accept/listener.h"
#include "io/socket/socket_transport.h"
#include "io/socket/tls/handshakes.h"

namespace warpcache::io {

// A long reply and the thread that writes it.
class LongWriter {
 public:
  static constexpr size_t kPipeBytes = 64 * 1024;

  LongWriter(size_t size, bool whole);
  ~LongWriter();  // REQUIRES: the reader has left

  BytePipe* pipe() { return &pipe_; }

 private:
  void run(size_t size, bool whole);

  std::mutex mutex_;
  std::condition_variable condition_;
  bool awake_ = false;
  BytePipe pipe_;
  std::thread thread_;
};

class LineWorker final : private SessionObserver, private PinReleaser {
 public:
  explicit LineWorker(SocketTransport& transport);
  void run();

  uint64_t iterations() const { return iterations_; }
  uint64_t chunks() const { return chunk_count_; }
  size_t open_pins() const { return pins_.size(); }
  size_t open_sessions() const { return sessions_; }

 private:
  struct Session {
    uint32_t number;     // 0: not known yet
    uint32_t body_size;  // of an unfinished body
    uint32_t body_received;
    uint32_t body_sum;
    uint32_t laters;
    uint8_t slow;
    uint8_t* buffer;
  };

  void opened(SessionStorage&, int) override {}
  void closed(SessionStorage& storage, CloseReason reason) override;
  bool holds_body(const SessionStorage& storage) const override;
  void cancel_body(SessionStorage& storage) override;
  MutableBytes body_window(const SessionStorage&, uint32_t) override { return {}; }
  void release(uint32_t pin) override;
  void serve(const RxChunk& chunk);
  bool serve_body(const RxChunk& chunk, Session& session, RxNext& next);
  bool serve_line(Session& session, std::string_view line, std::string_view rest, RxNext& next);
  void add(std::string text);
  void add_pinned(size_t size);

  SocketTransport& transport_;
  std::vector<uint8_t> memory_;
  RxBurst burst_;
  std::vector<std::unique_ptr<std::string>> replies_;
  std::vector<ReplySpan> spans_;
  std::set<uint32_t> pins_;
  std::vector<std::unique_ptr<std::string>> pinned_;
  uint32_t next_pin_ = 1;
  std::vector<std::unique_ptr<LongWriter>> long_replies_;
  std::atomic<uint64_t> iterations_{0};
  std::atomic<uint64_t> chunk_count_{0};
  size_t sessions_ = 0;
};

struct LineServerConfig {
  uint32_t workers = 2;
  uint32_t connections_max = 2000;
  bool reject_when_full = true;
  bool ipv6 = false;
  bool udp = false;
  std::string unix_path = "";  // instead of TCP
  uint32_t idle_timeout_s = 0;
  uint32_t stall_timeout_s = 0;
  uint64_t input_bytes_max = 0;
  uint64_t output_bytes_max = uint64_t{64} << 20;
  uint32_t udp_amplification_max = UINT32_MAX;
  TlsServer* tls = nullptr;  // of all streams; outlives the server
  TlsUse tls_use = TlsUse::kDefault;
  HandshakesConfig handshakes = {};
};

class LineServer {
 public:
  explicit LineServer(const LineServerConfig& config);
  ~LineServer();  // stops at once if it runs

  uint16_t port() const { return port_; }
  uint16_t udp_port() const { return udp_port_; }
  Acceptor& acceptor() { return *acceptor_; }
  Handshakes& handshakes() { return *handshakes_; }  // REQUIRES: LineServerConfig::tls
  SocketTransport& transport(size_t worker) { return *workers_[worker]->transport; }
  LineWorker& worker(size_t worker) { return *workers_[worker]->loop; }
  uint64_t sum(Counter TransportCounters::*counter) const;

  void stop_now();
  // Stops accepting and lets connections finish; returns when all threads have ended.
  void drain();

 private:
  struct WorkerThread {
    std::unique_ptr<SocketTransport> transport;
    std::unique_ptr<LineWorker> loop;
    std::thread thread;
  };

  void stop_accepting();
  void join();

  uint16_t port_ = 0;
  uint16_t udp_port_ = 0;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<Handshakes> handshakes_;
  std::vector<std::unique_ptr<WorkerThread>> workers_;
};

// Whether the condition becomes true within ten seconds.
bool eventually(const std::function<bool()>& condition);

// The client side of a stream: blocking, with a time limit for each receive.
class Client {
 public:
  static constexpr int kTimeoutS = 10;

  explicit Client(uint16_t port, bool ipv6 = false);
  explicit Client(const std::string& unix_path);
  Client(Client&&) = default;

  bool connected() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  void send(std::string_view text);
  // Returns `size` bytes; fewer at the end of the stream or after the time limit.
  std::string receive(size_t size);
  std::string ask(std::string_view text, size_t reply_size);
  // Whether the server closes within the time limit without another byte.
  bool closed();
  void shut_down_sending();
  void reset();  // closes with a TCP reset
  void close() { fd_.reset(); }

 private:
  UniqueFd fd_;
};

}  // namespace warpcache::io
