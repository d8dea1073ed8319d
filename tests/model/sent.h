// SPDX-License-Identifier: Apache-2.0
//
// What matters of the messages that were sent, where answers differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace warpcache::model {

inline constexpr size_t kBinaryHeaderSize = 24;

// Of a binary request.
struct Header {
  uint8_t opcode = 0;
  size_t key_size = 0;
  size_t extras_size = 0;
  size_t body_size = 0;
};

// False: it does not begin with the header of a request.
bool read_header(const std::string& packet, Header& header);

// A line of the get family has a key that is too long.
bool gets_long_key(const std::string& bytes);

// Every word of a text and what it means as base64, or the key of a packet: the keys that it names,
// and others.
std::set<std::string> named_keys(const std::string& bytes);

// What was sent in this script that can make a later answer differ, by the keys that it concerns.
class History {
 public:
  // A clock that moves only when told to says to the second what happened at the same time.
  explicit History(bool clock_moves) : slack_s_(clock_moves ? 0 : 1) {}

  void add(const std::string& bytes, int64_t now);

  // Named by an add, a read or a count in the second of a flush behind it.
  const std::set<std::string>& flushed_after_use() const { return flushed_after_use_; }
  const std::set<std::string>& counted() const { return counted_; }  // by incr, decr, ma
  // By `ma` with a time or an id, which memcached loses where the number grows.
  const std::set<std::string>& counted_with_time() const { return counted_with_time_; }
  // By a `gat` that is refused for another key.
  const std::set<std::string>& touched_by_refused_gat() const { return touched_by_refused_gat_; }
  // By `append` or `prepend`, after a count: where one server has blanks behind a number, the other
  // may have none.
  const std::set<std::string>& counted_and_extended() const { return counted_and_extended_; }
  bool long_value() const { return long_value_; }
  // A delayed flush came after another flush.
  bool delayed_flush_after_flush() const { return delayed_flush_after_flush_; }
  // A delayed flush takes effect at the end of this second.
  bool last_second_of_delay(int64_t now) const;

 private:
  void add_packet(const Header& header, const std::string& bytes, int64_t now);
  void add_text(const std::string& bytes, int64_t now);
  void note_use(const std::string& bytes, int64_t now);
  void note_flush(int64_t now, int64_t delay_s);
  void note_extension(const std::string& bytes);

  const int64_t slack_s_;
  std::map<std::string, int64_t> used_;  // when last
  std::set<std::string> flushed_after_use_;
  std::set<std::string> counted_;
  std::set<std::string> counted_with_time_;
  std::set<std::string> counted_and_extended_;
  std::set<std::string> touched_by_refused_gat_;
  std::set<int64_t> delayed_flushes_;  // when they take effect
  bool long_value_ = false;
  bool flushed_ = false;
  bool delayed_flush_after_flush_ = false;
};

}  // namespace warpcache::model
