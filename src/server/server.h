// SPDX-License-Identifier: Apache-2.0
//
// The server put together: store, engines, workers, transports, acceptor, administrative commands.
// Main thread only, unless said otherwise. Functions that can fail return an empty string or one
// sentence.
#pragma once

#include <atomic>
#include <cstdint>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "admin/admin.h"
#include "admin/long_replies.h"
#include "admin/prefix_stats.h"
#include "admin/server_state.h"
#include "engine/engine.h"
#include "io/socket/accept/acceptor.h"
#include "io/socket/accept/listener.h"
#include "io/socket/socket_transport.h"
#include "options/auth_file.h"
#include "options/options.h"
#include "options/process.h"
#include "server/backend.h"
#include "server/stats_source.h"
#include "worker/worker.h"

namespace warpcache::server {

class Server {
 public:
  // `options` outlive the server and do not change.
  explicit Server(const Options& options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Stops at once, unless stopped before.
  ~Server();

  // Binds what may need privileges: TCP and UDP. Nothing is accepted yet.
  [[nodiscard]] std::string open_ports();

  // Makes the rest, and listens: clients can connect and wait. REQUIRES: open_ports() was
  // successful.
  [[nodiscard]] std::string start();
  // Clients are accepted and answered. REQUIRES: started.
  void serve();

  // What requests run on, for the banner; and what it uses as -m. REQUIRES: started.
  std::string engine_text() const { return backend_->describe(); }
  uint64_t memory_bytes() const { return backend_->memory_bytes(); }

  // As bound.
  const std::vector<BoundPort>& ports() const { return ports_; }

  // Readable when a command has asked for the end.
  int stop_fd() const { return stop_request_.fd(); }
  admin::StopKind asked_to_stop() const { return stop_request_.kind(); }
  // Whether it ends because something has failed.
  bool has_failed() const { return failed_.load(); }

  // Reads the password file again (SIGHUP).
  [[nodiscard]] std::string reload_auth();

  // Closes the listeners, and has the workers close the connections: at once, or as soon as each is
  // between requests. Starts no thread and takes no memory.
  void begin_stop(admin::StopKind kind);
  // Readable once all workers have ended. REQUIRES: serving.
  int ended_fd() const { return ended_.fd(); }
  bool has_ended() const { return ended_.kind() != admin::StopKind::kNone; }
  // Turns a graceful stop under way into one at once.
  void hurry();
  // Waits until all threads have ended. REQUIRES: begin_stop() was called.
  void finish_stop();

 private:
  // What one thread needs; the engine is above the transport, since pins outlive connections.
  struct WorkerThread {
    std::unique_ptr<engine::Engine> engine;
    std::unique_ptr<io::SocketTransport> transport;
    std::unique_ptr<worker::Worker> loop;
    std::thread thread;
  };

  std::string open_backend();
  std::string make_workers();
  void log_listeners() const;
  void run_worker(const WorkerThread& worker);
  worker::WorkerConfig worker_config() const;
  io::UdpGuard udp_guard() const;

  const Options& options_;
  admin::ServerState state_;
  admin::StopRequest stop_request_;
  std::atomic<bool> failed_{false};
  AuthFile auth_;
  admin::PrefixStats prefixes_;
  std::vector<io::Listener> listeners_;
  std::vector<io::UdpListener> udp_listeners_;
  std::vector<int> udp_fds_;  // of the workers, for the log
  std::vector<BoundPort> ports_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<io::Acceptor> acceptor_;
  std::unique_ptr<ServerStats> stats_;
  admin::LongReplies long_replies_;
  std::unique_ptr<admin::Admin> admin_;
  std::vector<WorkerThread> workers_;
  std::optional<std::latch> attached_;  // their threads
  std::atomic<size_t> workers_running_{0};
  admin::StopRequest ended_;
};

}  // namespace warpcache::server
