// SPDX-License-Identifier: Apache-2.0
//
// A server that scripts are played against.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace warpcache::model {

class Server {
 public:
  virtual ~Server() = default;

  // Queues bytes. Opens the stream if it is new or was closed.
  virtual void send(int stream, const std::string& bytes) = 0;
  virtual void send_datagram(const std::string& payload) = 0;
  // Sends all queued bytes and waits for the replies. False: the server is stuck.
  virtual bool run() = 0;

  // The replies since the last call.
  virtual std::string take_output(int stream) = 0;
  virtual std::vector<std::string> take_datagrams() = 0;
  virtual bool closed(int stream) = 0;
  // Waits until more replies have come, or the stream is closed. False: neither happens.
  virtual bool wait(int /*stream*/) { return false; }
  // Whether run() leaves requests unanswered, so that each round of a stream must end with a
  // request whose reply tells that the ones before are done.
  virtual bool runs_on() const { return false; }

  virtual void advance(uint32_t seconds) = 0;
  // Key and value of every live item; nothing if the server cannot list them.
  virtual std::optional<std::map<std::string, std::string>> contents() { return std::nullopt; }
  // What the server itself has counted, by name: to be told, not compared.
  virtual std::map<std::string, uint64_t> counts() { return {}; }
  // A broken invariant after all streams are closed; empty: none.
  virtual std::string finish() = 0;

  // The server's second, and the Unix time of second 0: dates up to that one are long ago.
  virtual int64_t now() const = 0;
  virtual int64_t unix_start() const = 0;
  int64_t unix_time() const { return unix_start() + now(); }
  virtual std::string version() const = 0;
  // The smallest CAS id that the server chooses.
  virtual uint64_t first_cas() const = 0;
  // Whether a later request always gets a larger id, whatever its key and stream.
  virtual bool cas_follows_requests() const { return true; }
};

}  // namespace warpcache::model
