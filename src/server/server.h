// SPDX-License-Identifier: Apache-2.0
//
// Assembles the server: store, engines, workers, transports, acceptor, administrative commands.
// Main thread only, unless a comment says otherwise. Functions that can fail return an empty string
// or one sentence.
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
#include "admin/sasl.h"
#include "admin/server_state.h"
#include "admin/watchers.h"
#include "engine/engine.h"
#include "io/frames/frame_port.h"
#include "io/socket/accept/acceptor.h"
#include "io/socket/accept/listener.h"
#include "io/socket/socket_transport.h"
#include "io/socket/tls/handshakes.h"
#include "io/socket/tls/tls.h"
#include "io/ucx/joined_transport.h"
#include "io/ucx/ucx_module.h"
#include "options/auth_file.h"
#include "options/options.h"
#include "options/process.h"
#include "server/backend.h"
#include "server/metrics.h"
#include "server/one_sided.h"
#include "server/open_nic_cache.h"
#include "server/stats_source.h"
#include "worker/frame_worker.h"
#include "worker/worker.h"

namespace warpcache::server {

class Server {
 public:
  // REQUIRES: `options` outlive the server and do not change.
  explicit Server(const Options& options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Stops immediately, unless it is stopped already.
  ~Server();

  // Loads TLS and its certificates (-Z), whose key a later user (-u) may not be allowed to read.
  [[nodiscard]] std::string open_tls();

  // Binds the TCP and UDP ports and opens those of frames, which may need privileges. Accepts
  // nothing yet.
  [[nodiscard]] std::string open_ports();

  // Creates everything else and listens: clients can connect, and wait. REQUIRES: open_ports() was
  // successful.
  [[nodiscard]] std::string start();
  // Accepts and answers clients. REQUIRES: start() was successful.
  void serve();

  // The engine's description for the banner, and the memory limit. REQUIRES: start() was
  // successful.
  std::string engine_text() const { return backend_->describe(); }
  uint64_t memory_bytes() const { return backend_->memory_bytes(); }

  // The bound ports.
  const std::vector<BoundPort>& ports() const { return ports_; }

  // The NIC cache, described; empty: none.
  std::string nic_cache_text() const { return nic_cache_ == nullptr ? "" : nic_cache_->describe(); }

  // Where active messages are served; empty: nowhere.
  std::string ucx_text() const;

  // The ports of Ethernet frames, described. REQUIRES: as memory_bytes().
  std::vector<std::string> frame_ports() const;

  // Readable when a command has asked for a stop.
  int stop_fd() const { return stop_request_.fd(); }
  admin::StopKind asked_to_stop() const { return stop_request_.kind(); }
  // Whether the server stops because of a failure.
  bool has_failed() const { return failed_.load(); }

  // Reads the password file and the certificates again (SIGHUP), and logs what fails.
  void reload();

  // Closes the listeners and makes the workers close the connections: immediately, or each when it
  // has no request in progress. Starts no thread and allocates nothing.
  void begin_stop(admin::StopKind kind);
  // Readable when all workers have ended. REQUIRES: serve() was called.
  int ended_fd() const { return ended_.fd(); }
  bool has_ended() const { return ended_.kind() != admin::StopKind::kNone; }
  // Turns a graceful stop into an immediate one.
  void hurry();
  // Keeps the items for the next process where -e asks for it. Returns one sentence, or "".
  // REQUIRES: finish_stop() was called. Nothing else is called afterwards.
  [[nodiscard]] std::string save_items();
  // Waits until all threads have ended. REQUIRES: begin_stop() was called.
  void finish_stop();

 private:
  // The parts of one worker. The engine is declared before the transport and so destroyed after it,
  // because pins outlive connections.
  struct WorkerThread {
    std::unique_ptr<engine::Engine> engine;
    std::unique_ptr<io::SocketTransport> transport;
    std::unique_ptr<io::AmTransport> messages;  // with --ucx; as the next one
    std::unique_ptr<io::JoinedTransport> joined;
    std::unique_ptr<worker::Worker> loop;
    std::thread thread;
  };

  // The parts of a port of Ethernet frames. The engine may use the port's memory, so it ends first.
  struct FrameThread {
    std::unique_ptr<io::FramePort> port;
    std::unique_ptr<engine::Engine> engine;
    std::unique_ptr<worker::FrameWorker> loop;
    std::optional<uint32_t> cpu;  // that the thread is bound to
    std::thread thread;
  };

  std::string refresh_certificates();
  std::string open_sockets();
  std::string open_backend();
  std::string make_workers();
  std::string open_messages();
  void join_messages(WorkerThread& worker, io::AmPort& port);
  std::string make_frame_worker(FrameThread& frames);
  uint16_t frames_udp_port() const;
  void log_listeners() const;
  std::unique_ptr<engine::Engine> settled(std::unique_ptr<engine::Engine> engine);
  void run_worker(const WorkerThread& worker);
  void run_frames(const FrameThread& frames);
  void worker_ended();
  static void stop_now(const WorkerThread& worker);
  worker::WorkerConfig worker_config() const;
  io::UdpGuard udp_guard() const;

  const Options& options_;
  admin::ServerState state_;
  admin::StopRequest stop_request_;
  std::atomic<bool> failed_{false};
  AuthFile auth_;
  std::unique_ptr<admin::Sasl> sasl_;  // with -S
  admin::Access access_;
  std::unique_ptr<admin::Inspection> inspection_;
  std::vector<io::Listener> listeners_;
  std::vector<io::UdpListener> udp_listeners_;
  std::vector<int> udp_fds_;  // of the workers, for the log
  std::vector<BoundPort> ports_;
  bool inherited_ = false;                     // the sockets were open when the process started
  std::unique_ptr<admin::Watchers> watchers_;  // the backend reports evictions to them
  std::unique_ptr<nic_cache::StoreAccess> nic_cache_store_;
  std::unique_ptr<nic_cache::NicCache> nic_cache_;  // null: none; outlives the store
  std::unique_ptr<OneSided> one_sided_;             // likewise
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<io::TlsServer> tls_;  // null without -Z
  std::unique_ptr<io::Acceptor> acceptor_;
  std::unique_ptr<io::Handshakes> handshakes_;  // null without -Z and proxies
  std::unique_ptr<ServerStats> stats_;
  Metrics metrics_;
  admin::LongReplies long_replies_;
  std::unique_ptr<admin::Admin> admin_;
  std::vector<WorkerThread> workers_;
  // Destroyed before the transports, which learn of what they cancel.
  std::vector<std::unique_ptr<io::AmPort>> message_ports_;
  std::vector<FrameThread> frames_;
  std::optional<std::latch> attached_;      // open when all threads are attached to their engines
  std::atomic<size_t> workers_running_{0};  // and ports of frames
  std::atomic<size_t> frames_running_{0};
  admin::StopRequest ended_;
};

}  // namespace warpcache::server
