// SPDX-License-Identifier: Apache-2.0
//
// The client's side of memcached's text protocol, with its meta commands: writes requests, and
// reads replies as far as their bytes have come.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

namespace warpcache::client {

inline constexpr std::string_view kLineEnd = "\r\n";
// The line that refuses a store for lack of memory.
inline constexpr std::string_view kOutOfMemory = "SERVER_ERROR out of memory storing object";

// --- Requests

// Writes the line of a request, word by word. A key is a string_view, or a function that writes the
// key to where it is told and returns its size. REQUIRES: there is space; kWordMax bytes are enough
// for a number or a flag, with its blank.
class RequestLine {
 public:
  static constexpr size_t kWordMax = 24;

  RequestLine(char* out, std::string_view verb) : at_(out) { put(verb); }

  template <typename Key>
  RequestLine& key(const Key& key) {
    *at_++ = ' ';
    if constexpr (requires { std::string_view(key); }) {
      put(key);
    } else {
      at_ += key(at_);
    }
    return *this;
  }
  template <typename Number>
  RequestLine& number(Number number) {
    *at_++ = ' ';
    put_number(number);
    return *this;
  }
  // A flag of a meta command.
  RequestLine& flag(char name) {
    *at_++ = ' ';
    *at_++ = name;
    return *this;
  }
  template <typename Argument>
  RequestLine& flag(char name, Argument argument) {
    flag(name);
    if constexpr (std::is_same_v<Argument, char>) {
      *at_++ = argument;
    } else {
      put_number(argument);
    }
    return *this;
  }
  // Returns the end of the line.
  char* end() {
    put(kLineEnd);
    return at_;
  }

 private:
  void put(std::string_view text) {
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  template <typename Number>
  void put_number(Number number) {
    at_ = std::to_chars(at_, at_ + kWordMax, number).ptr;
  }

  char* at_;
};

struct StoreFields {
  uint32_t flags = 0;
  int64_t expiry = 0;             // as memcached reads it: seconds from now, or a date
  size_t size = 0;                // bytes of the value
  const uint64_t* cas = nullptr;  // `cas` alone
};

// The most bytes of a request's line with a key of `key_size` bytes, without further meta flags.
constexpr size_t line_bytes_max(size_t key_size) { return 5 * RequestLine::kWordMax + key_size; }

// Writes the line of `set` and of the commands that are like it. The value and kLineEnd follow it.
template <typename Key>
char* write_store(std::string_view verb, const Key& key, const StoreFields& fields, char* out) {
  RequestLine line(out, verb);
  line.key(key).number(fields.flags).number(fields.expiry).number(fields.size);
  if (fields.cas != nullptr) line.number(*fields.cas);
  return line.end();
}

// Appends what `write` writes, which takes a pointer and returns the end, `bytes_max` at most.
template <typename Write>
void append(size_t bytes_max, std::string* out, const Write& write) {
  const size_t before = out->size();
  out->resize(before + bytes_max);
  char* const at = out->data();
  out->resize(static_cast<size_t>(write(at + before) - at));
}

// --- Replies

enum class Taken : uint8_t {
  kWhole,
  kPart,  // the reply is incomplete: nothing was taken
  kBad,   // no reply: nothing was taken, and where the next one starts is unknown
};

enum class ReplyCode : uint8_t {
  kOther,  // any other line, such as the number that answers `incr`
  kValue,  // VALUE, with its value
  kEnd,
  kStored,
  kNotStored,
  kExists,
  kNotFound,
  kDeleted,
  kTouched,
  kOk,
  kError,      // ERROR, CLIENT_ERROR, SERVER_ERROR: the next reply can be read
  kMetaValue,  // VA, with its value
  kMetaDone,   // HD
  kMetaMiss,   // EN
  kMetaNotStored,
  kMetaExists,
  kMetaNotFound,
  kMetaNoop,  // MN
};

// What a line announces that a value follows.
struct ValueHead {
  std::string_view key;       // VALUE
  std::string_view flags;     // VA: the meta flags
  size_t size = 0;            // bytes of the value
  uint64_t cas = 0;           // VALUE, if has_cas
  uint32_t client_flags = 0;  // VALUE
  bool has_cas = false;
};

// One line, with its value if it has one. Points into the input.
struct TextReply {
  ReplyCode code = ReplyCode::kOther;
  std::string_view line;   // without its end
  std::string_view value;  // kValue, kMetaValue
  ValueHead head;          // likewise

  // The flags of a meta reply: all words after the first, or after the size.
  std::string_view meta_flags() const;
};

// REQUIRES: `line` is without its end.
ReplyCode code_of(std::string_view line);

// Reads a line of this code, kValue or kMetaValue. False: it is malformed.
bool read_value_head(ReplyCode code, std::string_view line, ValueHead* head);

// Takes the next line from the front of `in`, with its value. Values above `value_max` are kBad.
// Whatever it returns: line, code and head are set if the line is there.
Taken take_reply(std::string_view* in, TextReply* reply,
                 size_t value_max = std::numeric_limits<uint32_t>::max());

}  // namespace warpcache::client
