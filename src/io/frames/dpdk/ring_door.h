// SPDX-License-Identifier: Apache-2.0
//
// How the sides of --frames=ring find each other: by a Unix socket with an abstract name, which the
// kernel forgets with its process. By the connection each side notices that the other one has
// ended, however that happened.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "io/unique_fd.h"

namespace warpcache::io {

// What the server sends to a peer that connects.
struct RingHello {
  uint64_t peer;  // its number, from 1; 0: there is another peer
  uint32_t queues;
  uint32_t ports;
};

// The server's side. One peer may be there at a time.
class RingDoor {
 public:
  // Takes the name. Nobody can come in before open(). Returns the error as text, or "".
  std::string take(const std::string& name);
  std::string open(uint32_t queues, uint32_t ports);

  // By one thread, now and then: lets a peer in, or notices that it has gone, and returns its
  // process then; else 0. Only a process of the same user or of root comes in.
  pid_t look();
  // The number of the peer that is there; 0: none. Any thread.
  uint64_t peer() const { return peer_.load(std::memory_order_acquire); }

 private:
  void let_in(UniqueFd peer);

  UniqueFd door_;
  UniqueFd inside_;
  pid_t process_ = 0;
  uid_t owner_ = 0;
  RingHello hello_ = {};
  uint64_t peers_ = 0;  // so far
  std::atomic<uint64_t> peer_{0};
};

// A peer's side.
class RingVisit {
 public:
  // Waits at most wait_ms for the server, and until no other peer is there. As RingDoor::take().
  std::string enter(const std::string& name, uint32_t wait_ms);
  const RingHello& hello() const { return hello_; }
  bool server_is_there() const;

 private:
  // 0, or an error's number.
  int try_to_enter(const std::string& name);

  UniqueFd socket_;
  RingHello hello_ = {};
};

}  // namespace warpcache::io
