// SPDX-License-Identifier: Apache-2.0
//
// The server's metrics and its live page over HTTP (--metrics).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "admin/inspection.h"
#include "admin/stats_command.h"
#include "io/http/http_server.h"
#include "io/socket/accept/listener.h"
#include "options/options.h"

namespace warpcache::server {

class Metrics {
 public:
  // REQUIRES: `options` outlive this object.
  explicit Metrics(const Options& options) : options_(options) {}

  // Binds the address, if one is given. Returns one sentence, or "".
  [[nodiscard]] std::string open();
  // Serves from here on. REQUIRES: open() was successful; both sources outlive stop().
  [[nodiscard]] std::string start(admin::StatsSource& stats, admin::Inspection& inspection,
                                  std::string engine);
  // Closes the port and ends the thread. Idempotent.
  void stop() { http_.reset(); }

 private:
  const Options& options_;
  std::vector<io::Listener> listeners_;
  std::unique_ptr<io::HttpServer> http_;
};

}  // namespace warpcache::server
