// SPDX-License-Identifier: Apache-2.0
//
// A thread that accepts connections and gives each to the worker with the fewest, or, if its
// listener has TLS or a proxy in front, to the handshakes first. The limit (-c) is exact.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "io/counters.h"
#include "io/socket/accept/connection_budget.h"
#include "io/socket/accept/listener.h"
#include "io/socket/accept/sinks.h"
#include "io/socket/epoll_set.h"
#include "io/wake_event.h"

namespace warpcache::io {

class Handshakes;

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
  // Starts to accept. `sinks` and `handshakes` outlive the acceptor's thread. REQUIRES: listen()
  // was successful; `handshakes` is given if a listener has TLS or is proxied.
  void start(std::vector<ConnectionSink*> sinks, Handshakes* handshakes = nullptr);

  // Leaves new connections to another process, and takes kHandOverMs for those that have begun: at
  // a shared port they are accepted; from an inherited one no more are taken, but those that have
  // been can send their first request. Returns at once where there is neither. REQUIRES: as stop().
  void hand_over();

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
  // A handshake that has begun ends within it, unless a packet is lost twice.
  static constexpr int kHandOverMs = 1000;
  static constexpr int kRetryMs = 10;  // pause after the system refused a descriptor or memory

  void run();
  void accept_from(const Listener& listener);
  void dispatch(const Listener& listener, UniqueFd fd);
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
  SinkChoice sinks_;
  Handshakes* handshakes_ = nullptr;
  bool refused_ = false;  // the system refused the last accept
  std::atomic<bool> accepting_{false};
  std::atomic<bool> stopping_{false};
  int64_t paused_since_us_ = 0;
  std::thread thread_;
};

}  // namespace warpcache::io
