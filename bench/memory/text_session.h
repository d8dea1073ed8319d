// SPDX-License-Identifier: Apache-2.0
// One pipelined connection to a memcached server, speaking the text protocol.
#ifndef WARPCACHE_BENCH_MEMORY_TEXT_SESSION_H_
#define WARPCACHE_BENCH_MEMORY_TEXT_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "workload/item_maker.h"
#include "workload/sizes.h"

namespace warpcache::bench {

enum class Operation : uint8_t { kGet, kSet, kRemove };

enum class Outcome : uint8_t {
  kHit,          // get: the whole expected value, key and flags came back
  kMiss,         // get
  kWrong,        // get: something else came back, perhaps another key
  kStored,       // set
  kOutOfMemory,  // set: "SERVER_ERROR out of memory storing object"
  kRemoved,      // remove
  kNotFound,     // remove
  kRefused,      // any other line; first_refusal() keeps the first
};

struct Request {
  Operation operation;
  bool counted;  // the caller's mark, handed back with the reply
  uint32_t id;
  uint32_t version;  // the one to store, or the one that a hit must show
  ItemSizes sizes;
};

struct Reply {
  Request request;
  Outcome outcome;
};

// Not thread-safe. Requests queue up until flush(); replies come in the order of the requests. Gets
// queued one after the other share a `get` line, which costs the servers less.
// A function that returns false has met a broken connection: failure() says how, and the session is
// of no more use.
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

  // Sends what is queued. Reads meanwhile, so that neither side can block the other.
  [[nodiscard]] bool flush();

  // Takes the reply to the oldest request, waiting for it. REQUIRES: outstanding() > 0, flushed.
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
  bool peek_line(std::string_view* line);
  void consume_line() { in_begin_ += line_size_; }
  bool read_get(const Pending& pending, Outcome* outcome);
  bool read_value(const Request& request, std::string_view words, Outcome* outcome);
  bool read_change(const Request& request, Outcome* outcome);
  void refuse(std::string_view line);

  const ItemMaker& maker_;
  int socket_ = -1;
  std::vector<char> out_;
  std::vector<char> in_;
  size_t in_begin_ = 0;
  size_t in_end_ = 0;
  size_t line_size_ = 0;    // of the line that peek_line() showed, with its end
  uint32_t line_keys_ = 0;  // keys of the `get` line at the end of out_; 0: none is there
  std::deque<Pending> pending_;
  std::string failure_;
  std::string first_refusal_;
};

}  // namespace warpcache::bench

#endif  // WARPCACHE_BENCH_MEMORY_TEXT_SESSION_H_
