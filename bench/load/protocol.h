// SPDX-License-Identifier: Apache-2.0
// The requests and replies of a run, in the text protocol and its meta commands.
#ifndef WARPCACHE_BENCH_LOAD_PROTOCOL_H_
#define WARPCACHE_BENCH_LOAD_PROTOCOL_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "client/codec/text.h"
#include "load/keyspace.h"
#include "load/types.h"

namespace warpcache::load {

// An unanswered request. It does not own `ids`.
struct Pending {
  Operation operation;
  uint32_t count;  // number of keys
  uint32_t next;   // the first key that is not counted as hit or miss yet
  const uint32_t* ids;
};

// The results of replies.
struct Findings {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t wrong = 0;
  uint64_t refused = 0;
  uint64_t out_of_memory = 0;
  bool keep_missed = false;
  std::vector<uint32_t> missed;  // with keep_missed: the keys
  std::string first_refusal;
  std::string first_wrong;
};

enum class Progress {
  kAwaited,    // the reply is incomplete
  kDone,       // the reply is complete
  kOutOfStep,  // not a valid reply: the start of the next one is unknown
};

class Codec {
 public:
  Codec(const Options& options, const Keyspace& keys)
      : keys_(keys), meta_(options.meta), verify_(options.verify), expiry_s_(options.expiry_s) {}

  // The most bytes that write() needs for a request of `count` keys.
  size_t bytes_max(Operation operation, uint32_t count) const;

  // Writes a request for keys that pending.ids names. Returns its end.
  char* write(const Pending& pending, uint32_t version, char* out) const;

  // Reads the reply to *pending from the front of *in, as far as it has come, and removes what it
  // has read. An error line counts as refused and ends the reply.
  Progress read(Pending* pending, std::string_view* in, Findings* findings) const;

  // What the line before a value says.
  struct Head {
    uint32_t place;  // the key's place in the request; the number of keys if it is none of them
    uint32_t flags;
    std::string_view key;  // if the line has one
  };

  // Counts the values of a reply to a text get, and looks at nothing else of them. False: it is not
  // such a reply from VALUE to END, and nothing was counted.
  [[nodiscard]] static bool count_values(std::string_view reply, uint32_t* count);

 private:
  // A function that writes the key.
  auto key_of(uint32_t id) const {
    return [this, id](char* out) { return keys_.write_key(id, out); };
  }
  char* write_other(const Pending& pending, uint32_t version, char* out) const;
  char* write_set(uint32_t id, uint32_t version, char* out) const;
  char* write_meta_gets(const Pending& pending, char* out) const;
  Progress read_text_get(Pending* pending, std::string_view* in, Findings* findings) const;
  Progress read_meta_get(Pending* pending, std::string_view* in, Findings* findings) const;
  Progress read_change(const Pending& pending, std::string_view* in, Findings* findings) const;
  bool answers_change(client::ReplyCode code, bool is_set) const;
  uint32_t place_of(std::string_view key, const Pending& pending) const;
  void note_value(const Head& head, std::string_view value, Pending* pending,
                  Findings* findings) const;
  void miss_up_to(uint32_t end, Pending* pending, Findings* findings) const;
  void check_value(const Pending& pending, const Head& head, std::string_view value,
                   Findings* findings) const;

  const Keyspace& keys_;
  bool meta_;
  bool verify_;
  uint32_t expiry_s_;
};

__attribute__((always_inline)) inline char* Codec::write(const Pending& pending, uint32_t version,
                                                         char* out) const {
  if (meta_ || pending.operation != Operation::kGet) return write_other(pending, version, out);
  std::memcpy(out, "get ", 4);
  out += 3;
  for (uint32_t i = 0; i < pending.count; ++i) {
    *out++ = ' ';
    out += keys_.write_key(pending.ids[i], out);
  }
  std::memcpy(out, client::kLineEnd.data(), client::kLineEnd.size());
  return out + client::kLineEnd.size();
}

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_PROTOCOL_H_
