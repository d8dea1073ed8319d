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

  // Makes ready to be sent. A stream that is new, or was closed, is opened.
  virtual void send(int stream, const std::string& bytes) = 0;
  virtual void send_datagram(const std::string& payload) = 0;
  // Sends it all and waits for what comes back. False: the server is stuck.
  virtual bool run() = 0;

  // What came back since the last call.
  virtual std::string take_output(int stream) = 0;
  virtual std::vector<std::string> take_datagrams() = 0;
  virtual bool closed(int stream) = 0;

  virtual void advance(uint32_t seconds) = 0;
  // Key and value of every living item; nothing where the server does not tell.
  virtual std::optional<std::map<std::string, std::string>> contents() { return std::nullopt; }
  // An invariant that is broken, once all streams are closed; empty: none.
  virtual std::string finish() = 0;

  virtual int64_t now() const = 0;
  virtual int64_t unix_start() const = 0;
  virtual std::string version() const = 0;
  // No CAS id that the server chooses is below.
  virtual uint64_t first_cas() const = 0;
  // Whether of the ids of two keys that of the later request is the larger, whatever the streams.
  virtual bool cas_follows_requests() const { return true; }
};

}  // namespace warpcache::model
