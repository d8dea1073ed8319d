// SPDX-License-Identifier: Apache-2.0
//
// The stream connections of one worker. Slots are allocated in blocks that are never freed, so an
// idle connection costs only its slot, and a pointer to a slot stays valid.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/assert.h"
#include "io/socket/stream/out_queue.h"
#include "io/socket/stream/stash_pool.h"
#include "io/transport.h"

namespace warpcache::io {

inline constexpr uint32_t kNotReady = 0xffffffffu;
inline constexpr uint32_t kNoConnection = 0xffffffffu;

// Owner's thread only, except the atomic members: any thread may read them under the table's lock.
struct Connection {
  SessionStorage session{};
  uint64_t id = 0;
  int fd = -1;              // -1: the slot is free
  uint32_t generation = 0;  // distinguishes events of an earlier connection in this slot
  Stash stash;              // unconsumed input
  MutableBytes body;        // where the next bytes go, if not empty
  std::unique_ptr<OutQueue> out;
  std::unique_ptr<TlsStream> tls;      // null: plain text
  BytePipe* long_reply = nullptr;      // sent after `out`
  uint32_t need = 0;                   // bytes that the stash must have before it is delivered
  uint32_t ready_at = kNotReady;       // place in the list of streams to deliver without new bytes
  uint32_t watched = 0;                // events that the system is asked for
  std::atomic<uint32_t> active_at{0};  // second of the last delivery
  std::atomic<bool> delivered{false};  // delivered, not completed
  std::atomic<bool> writing{false};    // has an OutQueue: nothing is read
  std::atomic<bool> answering{false};  // has a long reply: nothing is read
  std::atomic<bool> watching{false};   // with `answering`: the reply is endless
  std::atomic<bool> in_body{false};    // waits for the rest of a value
  uint32_t stalled_before = kNoConnection;  // in StallOrder
  uint32_t stalled_after = kNoConnection;
  CloseReason reason = CloseReason::kError;  // for the case that it closes now
  bool admin = true;                         // see RxChunk
  std::unique_ptr<sockaddr_storage> client;  // see NewStream
  bool body_ends = false;
  bool more_now = false;     // deliver the stash again as soon as nothing is unsent
  bool later = false;        // with more_now: not at once, see later.cc
  bool waits_later = false;  // is in the list of later.cc
  bool closing = false;      // close as soon as nothing is unsent
  bool tls_pending = false;  // is in the list of tls_pending.cc

  StreamSocket end() const { return {fd, tls.get()}; }
};

class ConnectionTable {
 public:
  ConnectionTable() = default;
  ConnectionTable(const ConnectionTable&) = delete;
  ConnectionTable& operator=(const ConnectionTable&) = delete;

  // Returns a cleared slot with a new generation; writes its index to `index`.
  Connection& take(uint32_t& index) {
    if (free_.empty()) add_block();
    index = free_.back();
    free_.pop_back();
    return (*this)[index];
  }

  // REQUIRES: the connection's fd is -1 and it holds no stash, no OutQueue, no TLS and no long
  // reply.
  void give(uint32_t index) {
    Connection& connection = (*this)[index];
    WC_ASSERT(connection.fd == -1 && connection.stash.data == nullptr && !connection.out &&
              !connection.tls && connection.long_reply == nullptr);
    ++connection.generation;
    connection.body = {};
    connection.reason = CloseReason::kError;
    connection.need = 0;
    connection.writing.store(false, std::memory_order_relaxed);
    connection.delivered.store(false, std::memory_order_relaxed);
    connection.answering.store(false, std::memory_order_relaxed);
    connection.watching.store(false, std::memory_order_relaxed);
    connection.in_body.store(false, std::memory_order_relaxed);
    connection.body_ends = connection.more_now = connection.later = connection.closing = false;
    free_.push_back(index);
  }

  Connection& operator[](uint32_t index) {
    WC_DASSERT(index < size());
    return blocks_[index / kBlock][index % kBlock];
  }
  const Connection& operator[](uint32_t index) const {
    return blocks_[index / kBlock][index % kBlock];
  }
  // Number of slots, free ones included.
  uint32_t size() const { return static_cast<uint32_t>(blocks_.size()) * kBlock; }

 private:
  static constexpr uint32_t kBlock = 256;

  void add_block() {
    const uint32_t first = size();
    free_.reserve(first + kBlock);  // for all slots, so that give() allocates nothing
    blocks_.push_back(std::make_unique<Connection[]>(kBlock));
    for (uint32_t i = kBlock; i > 0; --i) free_.push_back(first + i - 1);
  }

  std::vector<std::unique_ptr<Connection[]>> blocks_;
  std::vector<uint32_t> free_;
};

// The connections with copied unsent output, in the order of their last progress: the client of the
// first one has not read for the longest time.
class StallOrder {
 public:
  explicit StallOrder(ConnectionTable& connections) : connections_(connections) {}

  uint32_t first() const { return first_; }  // kNoConnection: none

  void add_last(uint32_t index) {
    Connection& connection = connections_[index];
    connection.stalled_before = last_;
    connection.stalled_after = kNoConnection;
    (last_ == kNoConnection ? first_ : connections_[last_].stalled_after) = index;
    last_ = index;
  }

  // REQUIRES: it was added.
  void remove(uint32_t index) {
    const Connection& connection = connections_[index];
    const uint32_t before = connection.stalled_before;
    const uint32_t after = connection.stalled_after;
    (before == kNoConnection ? first_ : connections_[before].stalled_after) = after;
    (after == kNoConnection ? last_ : connections_[after].stalled_before) = before;
  }

 private:
  ConnectionTable& connections_;
  uint32_t first_ = kNoConnection;
  uint32_t last_ = kNoConnection;
};

}  // namespace warpcache::io
