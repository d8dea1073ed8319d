// SPDX-License-Identifier: Apache-2.0
//
// memcached itself as the server of a script: a process of its own, spoken to over a Unix socket.
// Its clock cannot be moved, so scripts for it have no clock steps.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "model/server.h"

namespace warpcache::model {

class Reference final : public Server {
 public:
  // Starts `program`; ok() says whether it answers.
  explicit Reference(const std::string& program);
  ~Reference() override;

  bool ok() const { return ok_; }

  void send(int stream, const std::string& bytes) override;
  void send_datagram(const std::string&) override {}
  bool run() override;
  std::string take_output(int stream) override;
  std::vector<std::string> take_datagrams() override { return {}; }
  bool closed(int stream) override { return connections_[stream].fd < 0; }
  void advance(uint32_t) override {}
  std::string finish() override { return {}; }
  int64_t now() const override;
  int64_t unix_start() const override { return 0; }
  std::string version() const override { return "1.6.18"; }
  uint64_t first_cas() const override { return 1; }

 private:
  struct Connection {
    int fd = -1;
    bool binary = false;
    bool asked = false;  // a barrier has been sent
    std::string output;
  };

  int connect_once() const;
  bool barrier_seen(const Connection& connection) const;
  bool read_some(Connection& connection);
  static void write_all(Connection& connection, const std::string& bytes);

  std::string folder_;
  pid_t pid_ = -1;
  bool ok_ = false;
  std::map<int, Connection> connections_;
};

}  // namespace warpcache::model
