// SPDX-License-Identifier: Apache-2.0
// A pipelined connection to a memcached server with the text protocol.
#ifndef WARPCACHE_BENCH_MEMORY_TEXT_SESSION_H_
#define WARPCACHE_BENCH_MEMORY_TEXT_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "client/codec/text.h"
#include "workload/item_maker.h"
#include "workload/operation.h"
#include "workload/sizes.h"

namespace warpcache::bench {

enum class Outcome : uint8_t {
  kHit,          // get: value, key and flags are correct
  kMiss,         // get
  kWrong,        // get: a wrong value, key or flags
  kStored,       // set
  kOutOfMemory,  // set: "SERVER_ERROR out of memory storing object"
  kRemoved,      // remove
  kNotFound,     // remove
  kRefused,      // any other line; first_refusal() keeps the first
};

struct Request {
  Operation operation;
  bool counted;  // the caller's mark, returned with the reply
  uint32_t id;
  uint32_t version;  // the version to store, or the version that a hit must have
  ItemSizes sizes;
};

struct Reply {
  Request request;
  Outcome outcome;
};

// Not thread-safe. Requests are queued until flush(); replies come in the order of the requests.
// Consecutive gets share a `get` line, which costs the servers less. If a function returns false,
// the connection is broken: failure() has the reason, and the session cannot be used any more.
class TextSession {
 public:
  explicit TextSession(const ItemMaker& maker) : maker_(maker) {}
  ~TextSession();
  TextSession(const TextSession&) = delete;
  TextSession& operator=(const TextSession&) = delete;

  // Connects over IPv4.
  [[nodiscard]] bool connect(const std::string& address, uint16_t port);

  // Takes over a connected stream socket and closes it at the end.
  void attach(int socket);

  // `expiry_s` is for sets: 0 is never.
  void queue(const Request& request, uint32_t expiry_s = 0);

  // Sends the queued requests. Reads at the same time, so that neither side can block the other.
  [[nodiscard]] bool flush();

  // Waits for the reply to the oldest request. REQUIRES: outstanding() > 0; flush() was called.
  [[nodiscard]] bool next_reply(Reply* reply);

  size_t outstanding() const { return pending_.size(); }

  // The server's `stats`, name to value. REQUIRES: outstanding() == 0.
  [[nodiscard]] bool ask_stats(std::map<std::string, std::string>* stats);

  const std::string& failure() const { return failure_; }
  const std::string& first_refusal() const { return first_refusal_; }

 private:
  struct Pending {
    Request request;
    bool ends_line;  // the last key of its `get` line: the END belongs to it
  };

  bool fail(const std::string& what);
  bool wait(short events);
  bool receive_some();
  bool peek(client::TextReply* reply);
  void consume() { in_begin_ += reply_size_; }
  bool read_get(const Pending& pending, Outcome* outcome);
  bool value_fits(const Request& request, const client::TextReply& reply) const;
  bool read_change(const Request& request, Outcome* outcome);
  void refuse(std::string_view line);

  const ItemMaker& maker_;
  int socket_ = -1;
  std::string out_;
  std::vector<char> in_;
  size_t in_begin_ = 0;
  size_t in_end_ = 0;
  size_t reply_size_ = 0;   // bytes of the reply from peek()
  uint32_t line_keys_ = 0;  // keys of the `get` line at the end of out_; 0: there is none
  std::deque<Pending> pending_;
  std::string failure_;
  std::string first_refusal_;
};

}  // namespace warpcache::bench

#endif  // WARPCACHE_BENCH_MEMORY_TEXT_SESSION_H_
