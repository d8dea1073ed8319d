// SPDX-License-Identifier: Apache-2.0
//
// Facts about the sent messages that explain different answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "client/codec/binary.h"

namespace warpcache::model {

// False: `packet` does not start with the header of a request.
bool read_header(const std::string& packet, client::BinaryHeader& header);

// Whether a line of the get family has a key that is too long.
bool gets_long_key(const std::string& bytes);

// Every word of a text and its base64 decoding, or the key of a packet: contains all keys of the
// message, and other words.
std::set<std::string> named_keys(const std::string& bytes);

// The earlier messages of a script that can cause a difference later, by their keys.
class History {
 public:
  // If the clock moves only by command, it is known to the second when a message ran.
  explicit History(bool clock_moves) : slack_s_(clock_moves ? 0 : 1) {}

  void add(const std::string& bytes, int64_t now);

  // Keys of an add, a read or a count in the same second as a later flush.
  const std::set<std::string>& flushed_after_use() const { return flushed_after_use_; }
  const std::set<std::string>& counted() const { return counted_; }  // by incr, decr, ma
  // Keys of `ma` with a time or an id, which memcached loses if the number gets longer.
  const std::set<std::string>& counted_with_time() const { return counted_with_time_; }
  // Keys of a `gat` that is refused because of another key.
  const std::set<std::string>& touched_by_refused_gat() const { return touched_by_refused_gat_; }
  // Keys of `append` or `prepend` after a count: one server may have blanks after the number, the
  // other none.
  const std::set<std::string>& counted_and_extended() const { return counted_and_extended_; }
  bool long_value() const { return long_value_; }
  // Whether a delayed flush came after another flush.
  bool delayed_flush_after_flush() const { return delayed_flush_after_flush_; }
  // Whether a delayed flush takes effect at the end of this second.
  bool last_second_of_delay(int64_t now) const;

 private:
  void add_packet(const client::BinaryHeader& header, const std::string& bytes, int64_t now);
  void add_text(const std::string& bytes, int64_t now);
  void note_use(const std::string& bytes, int64_t now);
  void note_flush(int64_t now, int64_t delay_s);
  void note_extension(const std::string& bytes);

  const int64_t slack_s_;
  std::map<std::string, int64_t> used_;  // second of the last use
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
