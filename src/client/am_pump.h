// SPDX-License-Identifier: Apache-2.0
//
// Carries the bytes of sockets over streams of active messages, so that programs which know only
// sockets reach a server by UCX. One thread uses a pump, its client and its streams.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "client/am_client.h"

namespace warpcache::client {

class AmPump {
 public:
  explicit AmPump(AmClient& client) : client_(client) {}
  AmPump(const AmPump&) = delete;
  AmPump& operator=(const AmPump&) = delete;
  ~AmPump();

  // Takes a socket that does not block, and closes it when one side has ended and the other has all
  // that was said. The stream may still be connecting. `again`: makes another stream if this one
  // ends before the server has answered, which has then seen nothing of the socket; null from it,
  // or the kTriesMax-th end, ends the socket, too.
  void add(int fd, AmStream* stream, std::function<AmStream*()> again = {});

  // Moves what can be moved. When there is nothing, sleeps until there is, until `wake_fd` is
  // readable, or for `timeout_ms`. Returns whether `wake_fd` is readable, where it has looked.
  bool run_once(int wake_fd, int timeout_ms);

  bool is_empty() const { return connections_.empty(); }

 private:
  static constexpr size_t kBufferMax = 256 * 1024;
  // What waits goes by rendezvous from this size on, in pieces of at most kInPlaceMax: the server
  // fetches those that have only bytes of one value straight into its store.
  static constexpr size_t kInPlaceMin = 32 * 1024;
  static constexpr size_t kInPlaceMax = 64 * 1024;
  static constexpr int kTriesMax = 20;

  struct Connection {
    int fd = -1;
    AmStream* stream = nullptr;
    std::vector<uint8_t> out;    // from the socket, not sent yet
    std::vector<uint8_t> flown;  // sent by rendezvous: stays in place until the stream is_sent()
    bool input_ended = false;
    bool opened = false;  // the server has answered: `again` is over
    int tries = 1;        // to connect
    std::function<AmStream*()> again;

    bool wants_input() const { return !input_ended && out.size() < kBufferMax; }
    bool wants_output() const {
      return stream->readable().size > 0 || (stream->announced() > 0 && !stream->is_fetching());
    }
  };

  bool serve(Connection& one);
  bool connect_again(Connection& one);
  bool receive(Connection& one);
  bool send(Connection& one);
  void end(const Connection& one);
  bool sleep(int wake_fd, int timeout_ms);

  AmClient& client_;
  std::vector<Connection> connections_;
  bool moved_ = false;  // bytes, in this round
};

}  // namespace warpcache::client
