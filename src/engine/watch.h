// SPDX-License-Identifier: Apache-2.0
//
// What the command `watch` shows, as the threads that serve requests report it. The layers above
// the engine implement the interface; see admin/watchers.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "protocol/message.h"
#include "request/key_state.h"

namespace warpcache::engine {

// Bits of Watch::wanted().
enum WatchKind : uint32_t {
  kWatchFetchers = 1u << 0,
  kWatchMutations = 1u << 1,
  kWatchDeletions = 1u << 2,
  kWatchEvictions = 1u << 3,
  kWatchConnections = 1u << 4,
  kWatchCommands = 1u << 5,
};
// What is reported of each request.
inline constexpr uint32_t kWatchRequests = kWatchFetchers | kWatchMutations | kWatchDeletions;

using request::KeyState;

// A request on a key that has run. Valid during the call that passes it.
struct SeenRequest {
  const protocol::Request& request;
  const protocol::Result& result;
  Bytes key;
  bool hit = false;                       // see counts_as_hit()
  int fd = -1;                            // of the connection, or of the UDP socket
  KeyState before = KeyState::kNotFound;  // by a look-up of its own: another thread may have
                                          // changed the key since
  uint32_t value_size_before = 0;         // bytes, with kFound
  uint32_t ttl = 0;  // seconds, of an item that was stored; 0: never expires. Wraps below 0
};

// The client of a connection.
struct PeerAddress {
  enum class Kind : uint8_t { kUnknown, kUnix, kIpv4, kIpv6 };

  Kind kind = Kind::kUnknown;
  uint16_t port = 0;
  uint8_t bytes[16] = {};  // the first four: kIpv4
};

// Any thread may call all functions. A function of a kind is called only while that is wanted.
class Watch {
 public:
  virtual ~Watch() = default;

  // The kinds that somebody watches.
  uint32_t wanted() const { return wanted_.load(std::memory_order_relaxed); }

  virtual void connection_opened(int fd, const PeerAddress& peer) = 0;
  virtual void connection_closed(int fd, const PeerAddress& peer, std::string_view reason) = 0;
  // Lines of commands, each with its line end.
  virtual void saw_commands(std::string_view lines) = 0;

 protected:
  void set_wanted(uint32_t kinds) { wanted_.store(kinds, std::memory_order_relaxed); }

 private:
  std::atomic<uint32_t> wanted_{0};
};

}  // namespace warpcache::engine
