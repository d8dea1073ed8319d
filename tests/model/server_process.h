// SPDX-License-Identifier: Apache-2.0
//
// A program with memcached's protocol (memcached itself, or warpcached) as the server of a script:
// a separate process behind a Unix socket.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/cuts.h"
#include "model/server.h"

namespace warpcache::model {

// The state of a connection after all sent requests have been processed.
enum class Standing : uint8_t {
  kInStep,  // the request at the end was answered
  kClosed,  // the server has closed it
  kWaits,   // the request at the end became a part of an unfinished request
};

struct ProcessConfig {
  std::string program;
  std::vector<std::string> options;  // in addition to socket, user and one thread
  uint64_t cuts = 0;
  // A connection without output for this time counts as kWaits and is closed. A slow server still
  // sends all its output; kWaits is wrong only if it would have closed the connection later.
  int patience_ms = 5000;
  // run() waits for nothing (Server::runs_on()): for many streams that wait for their replies
  // themselves. Then kWaits is not known.
  bool runs_on = false;
  // The kernel ends it when the thread that has started it ends.
  bool ends_with_parent = false;
  // Set when the caller is to end: then nothing is waited for any more, so silence is borne for as
  // long as a busy machine may need. With it the program has a process group of its own, so that a
  // signal to the caller's group does not end it first.
  const std::atomic<bool>* stop = nullptr;
};

// A new folder in $TMPDIR, or in /tmp, whose name begins so; "": there is none.
std::string temporary_folder(const char* name);

class ServerProcess final : public Server {
 public:
  // Starts the program; ok() reports whether it answers.
  explicit ServerProcess(const ProcessConfig& config);
  ~ServerProcess() override;
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  bool ok() const { return ok_; }
  // Whether its clock is stopped and can be moved: the program has `debugtime`.
  bool clock_moves() const { return clock_moves_; }
  Standing standing(int stream) { return connections_[stream].standing; }
  // The answer to a line of text, up to `end`, over a separate connection.
  std::string ask(const std::string& line, const std::string& end = "\r\n");
  // A number of `stats`, over the same connection; 0: there is none of this name.
  uint64_t stat(const std::string& name);

  void send(int stream, const std::string& bytes) override;
  void send_datagram(const std::string&) override {}
  bool run() override;
  std::string take_output(int stream) override;
  std::vector<std::string> take_datagrams() override { return {}; }
  // True for kWaits too, because its connection has been closed.
  bool closed(int stream) override;
  bool wait(int stream) override;
  bool runs_on() const override { return runs_on_; }
  void advance(uint32_t seconds) override;
  // Removes its files, when it is no longer needed.
  void remove_files();
  // Reports if the process has ended by itself.
  std::string finish() override;
  int64_t now() const override;
  int64_t unix_start() const override { return unix_start_; }
  std::string version() const override { return version_; }
  uint64_t first_cas() const override { return 1; }
  // Streams that do not wait for each other are served in any order.
  bool cas_follows_requests() const override { return !runs_on_; }

 private:
  struct Connection {
    int fd = -1;
    bool binary = false;
    bool asked = false;  // something was sent in this round
    Standing standing = Standing::kInStep;
    std::string output;
    std::string queued;  // with runs_on_: for run()
  };

  void start(const ProcessConfig& config);
  void read_clock();
  int connect_once() const;
  // True once, with its status as waitpid() gives it, if that is asked for.
  bool has_ended(int* status = nullptr);
  bool barrier_seen(const Connection& connection) const;
  bool read_some(Connection& connection, int wait_ms) const;
  bool stops() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }
  // False: it neither answers nor closes.
  bool read_to_barrier(Connection& connection) const;
  void write_all(Connection& connection, const std::string& bytes) const;
  void write_queued(Connection& connection);

  const int patience_ms_;
  const bool runs_on_;
  const std::atomic<bool>* const stop_;
  int silence_ms_;  // of wait()
  Cuts cuts_;
  std::string folder_;
  std::string version_;
  pid_t pid_ = -1;
  bool ok_ = false;
  bool clock_moves_ = false;
  int64_t unix_start_ = 0;     // of the process
  int64_t stopped_at_ = 0;     // Unix time at which the clock was stopped
  int64_t moved_seconds_ = 0;  // since then
  int64_t last_step_ = 0;
  int control_ = -1;
  std::map<int, Connection> connections_;
};

// Starts a server for scripts that move its clock. Throws std::runtime_error: it does not start, or
// has no `debugtime`.
using StartProcess = std::unique_ptr<Server> (*)(const ProcessConfig& config);
std::unique_ptr<Server> start_process(const ProcessConfig& config);

}  // namespace warpcache::model
