// SPDX-License-Identifier: Apache-2.0
//
// The state of one endpoint's stream in am_transport.h, and a message of it that is being sent.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/transport.h"
#include "io/ucx/am_input.h"
#include "io/ucx/am_port.h"

namespace warpcache::io {

inline constexpr uint32_t kNoChunk = 0xffffffffu;

// Data by rendezvous that waits to be fetched.
struct AmAnnounced {
  AmRemote data = nullptr;
  uint32_t size = 0;
  uint64_t at = 0;       // eager bytes of the stream that precede it
  bool offered = false;  // the worker knows of it (RxChunk::announced)
};

struct AmOut;

// Owner's thread only.
struct AmStream {
  enum class State : uint8_t {
    kFree,
    kOpen,
    kLeaving,  // its last message was sent; waits for the peer, or until `leave_at_s`
    kClosed,   // the port was told; waits for ended()
  };

  SessionStorage session{};
  uint64_t id = 0;
  State state = State::kFree;
  AmInput input;
  uint64_t not_eager = 0;  // of the input's first bytes: came by rendezvous
  std::vector<AmAnnounced> announced;
  std::unique_ptr<uint8_t[]> fetched;  // where data is fetched to; null: into the body
  uint32_t fetched_size = 0;           // of the fetch under way; 0: none
  uint32_t body_fetched = 0;           // bytes that were fetched into the body, not delivered yet
  bool on_device = false;              // the last fetch went into a device's memory
  bool session_open = false;           // SessionObserver::closed() was not called
  MutableBytes body;                   // where the next bytes go, if not empty
  bool body_ends = false;
  uint32_t need = 0;       // bytes that must be there before they are delivered
  uint32_t seen = 0;       // bytes that the worker left: with need 0 it wants more
  bool delivered = false;  // delivered, not completed
  bool direct = false;     // the delivered chunk is not in `input`
  bool more_now = false;
  bool later = false;                // waits in AmTransport::later_
  bool ready = false;                // is in AmTransport::ready_
  bool closing = false;              // ends as soon as nothing is unsent
  bool half_closed = false;          // its kBye has come: ends when its requests are answered
  bool greeted = false;              // its kHello has come
  bool has_slots = false;            // it knows where copies lie
  uint32_t eager_max = kAmEagerMax;  // bytes of a message, both ways
  const char* why = "";              // said with the last message
  bool ends = false;                 // broke the rules: nothing more is taken
  bool broken = false;               // is in AmTransport::broken_
  uint32_t chunk = 0;  // with `direct`: its number in the burst; kNoChunk: of an earlier receive()
  uint32_t next_in = 0;  // sequence numbers
  uint32_t next_out = 0;
  uint64_t received = 0;       // eager bytes
  uint64_t taken = 0;          // of these: consumed
  uint64_t reported = 0;       // of these: the client knows
  uint32_t under_way = 0;      // messages that are not sent yet
  std::vector<AmOut*> unsent;  // these
  uint32_t pinned = 0;         // of these messages: from the store
  uint64_t unread = 0;         // bytes of these messages
  std::vector<uint32_t> pins;  // to be released when `pinned` is 0
  BytePipe* long_reply = nullptr;
  uint32_t active_at = 0;  // second of the last progress
  uint32_t leave_at_s = 0;
  // Of AmTransport::attended_ms_: when it was opened; in State::kClosed, when the port was told.
  uint64_t since_ms = 0;

  bool is_open() const { return state == State::kOpen; }
};

// A stream and what other threads may read of it.
struct AmSlot {
  AmStream stream;
  std::string peer;                  // under the transport's lock
  std::atomic<uint64_t> open_id{0};  // 0: not open
  std::atomic<uint32_t> active_at{0};
  std::atomic<bool> has_request{false};
  std::atomic<bool> in_body{false};
};

// An eager message carries a copy of its bytes, one by rendezvous points to a pinned value.
struct AmOut : AmSend {
  uint32_t size = 0;
  uint32_t capacity = kAmEagerMax;
  std::unique_ptr<uint8_t[]> longer;  // of more than kAmEagerMax; null: `bytes`
  uint8_t bytes[kAmEagerMax];

  uint8_t* start() { return longer != nullptr ? longer.get() : bytes; }
  // What it takes of the server's memory.
  uint64_t held() const { return sizeof(AmOut) + (longer != nullptr ? capacity : 0); }
};

}  // namespace warpcache::io
