// SPDX-License-Identifier: Apache-2.0
//
// Where accepted connections go.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "io/socket/tls/tls.h"
#include "io/unique_fd.h"

namespace warpcache::io {

// A connection that has just been accepted, or whose handshake has ended.
struct NewStream {
  UniqueFd fd;
  bool admin = true;                    // see RxChunk
  std::unique_ptr<TlsStream> tls = {};  // null: plain text. Destroyed before the socket closes
  std::unique_ptr<sockaddr_storage> client = {};  // whom a proxy speaks for; null: the peer
};

// Receives accepted connections: a worker's transport. Any thread.
class ConnectionSink {
 public:
  virtual ~ConnectionSink() = default;
  // Takes the connection over. False: no memory; the connection has been closed.
  virtual bool adopt(NewStream stream) = 0;
  virtual uint32_t connection_count() const = 0;  // including those that are not yet opened
};

// Chooses among the workers for one thread that gives connections to them.
class SinkChoice {
 public:
  SinkChoice() = default;
  // The sinks outlive it. REQUIRES: at least one.
  explicit SinkChoice(std::vector<ConnectionSink*> sinks) : sinks_(std::move(sinks)) {}

  // The sink with the fewest connections; of several, they take turns. REQUIRES: has sinks.
  ConnectionSink& fewest() {
    const auto count = static_cast<uint32_t>(sinks_.size());
    uint32_t best = next_ % count;
    for (uint32_t i = 1; i < count; ++i) {
      const uint32_t candidate = (next_ + i) % count;
      if (sinks_[candidate]->connection_count() < sinks_[best]->connection_count()) {
        best = candidate;
      }
    }
    next_ = best + 1;
    return *sinks_[best];
  }

 private:
  std::vector<ConnectionSink*> sinks_;
  uint32_t next_ = 0;
};

}  // namespace warpcache::io
