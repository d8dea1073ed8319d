// SPDX-License-Identifier: Apache-2.0
//
// A thread that accepts connections and gives each to the worker with the fewest. The limit (-c) is
// exact.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "io/counters.h"
#include "io/socket/accept/listener.h"
#include "io/socket/epoll_set.h"
#include "io/wake_event.h"

namespace warpcache::io {

// Shared by the workers' transports: the number of connections (the acceptor adds, workers
// subtract) and how often the store had no space for a body. Any thread.
class ConnectionBudget {
 public:
  ConnectionBudget(uint32_t max, const WakeEvent& freed) : max_(max), freed_(freed) {}

  uint32_t max() const { return max_; }
  uint32_t current() const { return current_.load(std::memory_order_relaxed); }
  bool full() const { return current_.load() >= max_; }

  // An id that is unique in the process; never 0.
  uint64_t next_id() { return next_id_.fetch_add(1, std::memory_order_relaxed); }

  // False: full. Ports of active messages take from it too, on other threads.
  bool try_take() {
    uint32_t current = current_.load();
    while (current < max_) {
      if (current_.compare_exchange_weak(current, current + 1)) return true;
    }
    return false;
  }
  void give_back() {
    current_.fetch_sub(1);
    if (waiting_.load()) freed_.raise();
  }
  void count_refused_body() { bodies_refused_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t bodies_refused() const { return bodies_refused_.load(std::memory_order_relaxed); }

  // Whether the acceptor waits for the next give_back(), after which it checks full() again.
  void set_waiting(bool waiting) { waiting_.store(waiting); }

 private:
  uint32_t max_;
  const WakeEvent& freed_;
  std::atomic<uint32_t> current_{0};
  std::atomic<bool> waiting_{false};
  std::atomic<uint64_t> next_id_{1};
  std::atomic<uint64_t> bodies_refused_{0};
};

// Receives accepted connections: a worker's transport. Any thread.
class ConnectionSink {
 public:
  virtual ~ConnectionSink() = default;
  // Takes the connection over. False: no memory; the connection has been closed. `admin`: see
  // RxChunk.
  virtual bool adopt(UniqueFd fd, bool admin) = 0;
  virtual uint32_t connection_count() const = 0;  // including those that are not yet opened
};

struct AcceptorConfig {
  uint32_t connections_max = 1024;
  bool reject_when_full = true;  // false: accepting waits until a connection closes
};

// A listener, for `stats conns`.
struct ListenerInfo {
  int fd = -1;
  std::string address;
};

class Acceptor {
 public:
  // Owns the listeners. Throws std::system_error if the system refuses a descriptor or memory.
  Acceptor(const AcceptorConfig& config, std::vector<Listener> listeners);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  ~Acceptor();

  // From here on clients can connect; they are accepted after start(). Returns an error message, or
  // "".
  [[nodiscard]] std::string listen();
  // Starts to accept. `sinks` outlive the acceptor's thread. REQUIRES: listen() was successful.
  void start(std::vector<ConnectionSink*> sinks);

  // Ends the thread and closes the listeners (removes socket files). Idempotent. REQUIRES: not
  // called by the acceptor's thread.
  void stop();

  ConnectionBudget& budget() { return budget_; }
  // Any thread. Does not change when the listeners are closed.
  const std::vector<ListenerInfo>& listener_infos() const { return listener_infos_; }
  const AcceptCounters& counters() const { return counters_; }
  bool accepting() const { return accepting_.load(std::memory_order_relaxed); }

 private:
  static constexpr int kAcceptsPerIterationMax = 64;
  static constexpr int kRetryMs = 10;  // pause after the system refused a descriptor or memory

  void run();
  void accept_from(const Listener& listener);
  void dispatch(UniqueFd fd, bool admin);
  void reject(UniqueFd fd);
  void pause();
  void resume();

  AcceptorConfig config_;
  std::vector<Listener> listeners_;
  std::vector<ListenerInfo> listener_infos_;
  WakeEvent wake_;
  ConnectionBudget budget_;
  AcceptCounters counters_;
  EpollSet epoll_;
  std::vector<ConnectionSink*> sinks_;
  uint32_t next_sink_ = 0;
  bool refused_ = false;  // the system refused the last accept
  std::atomic<bool> accepting_{false};
  std::atomic<bool> stopping_{false};
  int64_t paused_since_us_ = 0;
  std::thread thread_;
};

}  // namespace warpcache::io
