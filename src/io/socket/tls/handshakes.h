// SPDX-License-Identifier: Apache-2.0
//
// What new connections say before the first request, in threads of their own: the header of a proxy
// in front (accept/proxy_header.h), then TLS. Not in a worker: a handshake's public-key
// operations take as long as some hundred requests, and would delay the clients of a worker. A
// connection whose handshake has ended goes to a worker.
//
// Bounds: the connections under way, and the time of each. When more begin, those that began first
// are closed, of the source that has the most: a client needs a few round trips, who stalls is the
// oldest soon, and a source that begins many closes its own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "io/socket/accept/connection_budget.h"
#include "io/socket/accept/proxy_header.h"
#include "io/socket/accept/sinks.h"
#include "io/socket/epoll_set.h"
#include "io/socket/tls/tls.h"
#include "io/wake_event.h"

namespace warpcache::io {

struct HandshakesConfig {
  static constexpr uint32_t kUnderWayMax = 512;

  uint32_t threads = 1;
  uint32_t under_way_max = kUnderWayMax;  // of all threads; at most this
  uint32_t time_limit_ms = 10'000;
  // Called by the threads for each TLS handshake that fails, before its connection is closed.
  std::function<void(const NewStream& stream, std::string_view why)> on_failure = {};
};

class Handshakes {
 public:
  // `server` and `budget` outlive it. Throws std::system_error if the system refuses a descriptor.
  // `server` may be null where no listener has TLS.
  Handshakes(const HandshakesConfig& config, TlsServer* server, ConnectionBudget& budget);
  Handshakes(const Handshakes&) = delete;
  Handshakes& operator=(const Handshakes&) = delete;
  ~Handshakes();

  // `sinks` outlive the threads.
  void start(const std::vector<ConnectionSink*>& sinks);
  // Ends the threads and closes the connections under way. Idempotent. REQUIRES: no begin() after
  // it.
  void stop();

  // Takes over a connection that was counted in the budget. False: no memory; the connection has
  // been closed. One thread. REQUIRES: start() was called.
  bool begin(NewStream stream, TlsUse use, bool proxied);

  // Any thread.
  uint32_t under_way() const { return under_way_.load(std::memory_order_relaxed); }
  uint64_t failed() const { return failed_.load(std::memory_order_relaxed); }  // closed included
  // Of these, for the header of a proxy.
  uint64_t headers_refused() const { return headers_refused_.load(std::memory_order_relaxed); }
  uint64_t closed() const { return closed_.load(std::memory_order_relaxed); }  // by a bound

 private:
  using Clock = std::chrono::steady_clock;
  struct Arrival {
    NewStream stream;
    TlsUse use = TlsUse::kDefault;
    bool proxied = false;
  };
  struct Handshake {
    NewStream stream;
    TlsUse use = TlsUse::kNone;
    std::unique_ptr<ProxyHeader> header;  // null: none, or it has been received
    Clock::time_point ends_at;
    uint64_t source = 0;  // source_of() the client
    std::list<Handshake>::iterator self;
  };
  struct Worker {
    WakeEvent wake;
    EpollSet epoll;
    std::mutex mutex;
    std::vector<Arrival> arrived;  // guarded by it
    SinkChoice sinks;
    std::list<Handshake> under_way;  // in the order of their begin
    std::thread thread;
  };

  void run(Worker& worker);
  void take_arrived(Worker& worker);
  void open(Worker& worker, Arrival arrival);
  void go_on(Worker& worker, Handshake& handshake);
  bool finish_header(Worker& worker, Handshake& handshake);
  void finish(Worker& worker, Handshake& handshake);
  void tell_failure(const Handshake& handshake, std::string_view why) const;
  void close_late(Worker& worker);
  void close_one_of_too_many(Worker& worker);
  void end_failed(Worker& worker, std::list<Handshake>::iterator handshake);
  void give_back();

  HandshakesConfig config_;
  TlsServer* server_;
  ConnectionBudget& budget_;
  std::vector<std::unique_ptr<Worker>> workers_;
  uint32_t next_worker_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<uint32_t> under_way_{0};  // with those that have arrived
  std::atomic<uint64_t> failed_{0};
  std::atomic<uint64_t> closed_{0};
  std::atomic<uint64_t> headers_refused_{0};
};

}  // namespace warpcache::io
