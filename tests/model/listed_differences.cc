// SPDX-License-Identifier: Apache-2.0
#include "model/listed_differences.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <set>

#include "model/numbers.h"
#include "model/sent.h"

namespace warpcache::model {

namespace {

bool sent_contains(const Parting& parting, std::string_view text) {
  return std::any_of(parting.sent.begin(), parting.sent.end(), [text](const std::string& bytes) {
    return bytes.find(text) != std::string::npos;
  });
}

bool says(const Side& side, std::string_view text) {
  return side.unit != nullptr && side.unit->shown == text;
}

bool says_value(const Side& side) {
  return side.unit != nullptr &&
         (side.unit->shown.starts_with("VALUE ") || side.unit->shown.starts_with("VA "));
}

bool is_statistic(const Side& side) { return side.unit != nullptr && !side.unit->names.empty(); }

// The value, or the body of a packet, without its blanks.
std::string value_of(const AnswerUnit& unit) {
  constexpr std::string_view kCasPlace = "<cas>";  // after the header of a packet
  const bool packet = unit.shown.starts_with('\x81');
  const size_t begin =
      packet ? unit.shown.find(kCasPlace) + kCasPlace.size() : unit.shown.find('\n') + 1;
  std::string value = unit.shown.substr(begin);
  std::erase(value, ' ');
  return value;
}

// `watch`: the connection is a log from here on, whose lines have times.
Effect watch(const Parting& parting) {
  const bool met = sent_contains(parting, "watch") && parting.theirs.standing == Standing::kWaits;
  return met ? Effect::kEndsScript : Effect::kNone;
}

constexpr uint8_t kLastKnownOpcode = 0x24;
constexpr size_t kLineSizeMax = 2048;
constexpr size_t kOpaqueSizeMax = 32;  // with its O

constexpr uint64_t kClockReachS = 86400;  // scripts move the clock by less

bool any_sent(const Parting& parting, bool (*holds)(const std::string& bytes)) {
  return std::any_of(parting.sent.begin(), parting.sent.end(), holds);
}

bool names_one_of(const Parting& parting, const std::set<std::string>& keys) {
  return std::any_of(parting.sent.begin(), parting.sent.end(), [&keys](const std::string& bytes) {
    const std::set<std::string> named = named_keys(bytes);
    return std::any_of(named.begin(), named.end(),
                       [&keys](const std::string& key) { return keys.contains(key); });
  });
}

// memcached ends the error with a second line end, and takes back one reply that went before for
// each key that was missed. Its gat has touched the keys before.
Effect long_key_in_get(const Parting& parting) {
  if (parting.binary) return Effect::kNone;
  if (!any_sent(parting, gets_long_key)) {
    return names_one_of(parting, parting.before.touched_by_refused_gat()) ? Effect::kEndsScript
                                                                          : Effect::kNone;
  }
  if (says(parting.theirs, "\r\n")) return Effect::kTheirsMore;
  // Also for a get that ends with `noreply`, which here silences the error.
  return parting.ours.unit != nullptr ? Effect::kOursMore : Effect::kTheirsMore;
}

// A text unit without the words that `own` tells.
std::string without_words(const AnswerUnit& unit, bool (*own)(const std::string& word)) {
  const size_t end = unit.shown.find('\r');
  std::string left;
  for (const std::string& word : split_words(unit.shown.substr(0, end))) {
    if (!own(word)) left += word + " ";
  }
  return left + (end == std::string::npos ? "" : unit.shown.substr(end));
}

bool is_time_of_access(const std::string& word) {
  return word.starts_with("l") || word.starts_with("la=");
}
bool is_key(const std::string& word) { return word.starts_with("k") || word == "b"; }

bool equal_without(const Parting& parting, bool (*own)(const std::string& word)) {
  if (parting.ours.unit == nullptr || parting.theirs.unit == nullptr || parting.binary)
    return false;
  return without_words(*parting.ours.unit, own) == without_words(*parting.theirs.unit, own);
}

// memcached counts the seconds since the last access from the last time that it moved the item
// within its lists, at most once a minute.
Effect time_of_access(const Parting& parting) {
  return equal_without(parting, is_time_of_access) ? Effect::kAsAnswered : Effect::kNone;
}

// memcached shows a time that is over as a number below 2^32.
bool is_time_left(const std::string& word) { return word.starts_with("t"); }
Effect time_over(const Parting& parting) {
  const auto own = [](const std::string& word) {
    return is_time_left(word) || is_time_of_access(word) || is_key(word);
  };
  const bool met = equal_without(parting, own) &&
                   parting.ours.unit->shown.find(" t0") != std::string::npos &&
                   parting.theirs.unit->shown.find(" t42949") != std::string::npos;
  return met ? Effect::kAsAnswered : Effect::kNone;
}

// The same times, read as 31 bits here and as 32 bits there: both are beyond 2038.
Effect time_beyond_2038(const Parting& parting) {
  const auto own = [](const std::string& word) {
    return is_time_left(word) || is_time_of_access(word) || is_key(word);
  };
  if (!equal_without(parting, own)) return Effect::kNone;
  const auto time_in = [](const AnswerUnit& unit) {
    const size_t at = unit.shown.find(" t");
    return at == std::string::npos ? 0 : std::strtoull(unit.shown.c_str() + at + 2, nullptr, 10);
  };
  const uint64_t until_2038 = (uint64_t{1} << 31) - static_cast<uint64_t>(time(nullptr));
  const uint64_t ours = time_in(*parting.ours.unit);
  const bool met = ours <= until_2038 + kClockReachS && ours + kClockReachS >= until_2038 &&
                   time_in(*parting.theirs.unit) > ours;
  return met ? Effect::kAsAnswered : Effect::kNone;
}

// memcached looks for the key that is spelled like the base64 of the one that is meant.
Effect debug_of_binary_key(const Parting& parting) {
  const bool met = any_sent(parting, [](const std::string& bytes) {
    return bytes.starts_with("me ") && bytes.find(" b") != std::string::npos;
  });
  const bool both = parting.ours.unit != nullptr && parting.theirs.unit != nullptr;
  return met && both && !parting.binary ? Effect::kAsAnswered : Effect::kNone;
}

// memcached writes a number in place only while no reply before it holds the item: else it makes a
// new one, without the blanks after the old number.
Effect count_behind_get(const Parting& parting) {
  const bool said = parting.binary ? parting.ours.unit != nullptr && parting.theirs.unit != nullptr
                                   : says_value(parting.ours) && says_value(parting.theirs);
  if (names_one_of(parting, parting.before.counted_and_extended())) return Effect::kEndsScript;
  if (!said || !names_one_of(parting, parting.before.counted())) return Effect::kNone;
  if (parting.ours.unit->shown == parting.theirs.unit->shown) return Effect::kNone;
  if (parting.binary && parting.ours.unit->shown.size() == parting.theirs.unit->shown.size()) {
    return Effect::kNone;
  }
  return value_of(*parting.ours.unit) == value_of(*parting.theirs.unit) ? Effect::kEndsScript
                                                                        : Effect::kNone;
}

bool is_size(const std::string& word) {
  return word.starts_with("s") && word.find_first_not_of("0123456789", 1) == std::string::npos;
}

// memcached makes a new item of a number that grows, and of the old one keeps the value alone.
Effect number_that_grew(const Parting& parting) {
  const auto own = [](const std::string& word) {
    return word == "W" || word == "X" || word == "Z" || is_time_left(word) || is_key(word) ||
           word == "h0" || word == "h1" || is_size(word) || is_time_of_access(word);
  };
  const bool met = names_one_of(parting, parting.before.counted_with_time()) ||
                   (equal_without(parting, own) && names_one_of(parting, parting.before.counted()));
  return met && !parting.binary ? Effect::kEndsScript : Effect::kNone;
}

// A line end in a reply of memcached ends the unit.
Effect line_end_in_key(const Parting& parting) {
  if (parting.ours.unit == nullptr || parting.theirs.unit == nullptr || parting.binary) {
    return Effect::kNone;
  }
  std::string bytes;
  for (const std::string& word : split_words(parting.ours.unit->shown)) {
    if (!word.starts_with("k") || !read_base64(word.substr(1), bytes)) continue;
    if (bytes.find('\n') == std::string::npos) continue;
    const size_t end = bytes.find_first_of(" \n");  // blanks are not shown
    const bool met =
        parting.theirs.unit->shown.find(" k" + bytes.substr(0, end)) != std::string::npos;
    if (met) return Effect::kEndsScript;
  }
  return Effect::kNone;
}

// The reply of `me` shows the key in front.
bool equal_but_for_key_of_me(const Parting& parting) {
  if (parting.ours.unit == nullptr || parting.theirs.unit == nullptr) return false;
  const std::string& ours = parting.ours.unit->shown;
  const std::string& theirs = parting.theirs.unit->shown;
  if (!ours.starts_with("ME ") || !theirs.starts_with("ME ")) return false;
  const size_t ours_end = ours.find(" exp=");
  const size_t theirs_end = theirs.find(" exp=");
  return ours_end != std::string::npos && theirs_end != std::string::npos &&
         ours.substr(ours_end) == theirs.substr(theirs_end);
}

// memcached forgets of an item that a command made by itself, or copied, that its key is binary.
Effect binary_key(const Parting& parting) {
  const auto own = [](const std::string& word) { return is_key(word) || is_time_of_access(word); };
  return equal_without(parting, own) || equal_but_for_key_of_me(parting) ? Effect::kAsAnswered
                                                                         : Effect::kNone;
}

bool has_long_line(const std::string& bytes) {
  size_t begin = 0;
  while (begin < bytes.size()) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    if (end - begin > kLineSizeMax) return true;
    begin = end + 1;
  }
  return false;
}

// memcached takes a long line if its end has come with it; where it closes the connection it loses
// the replies that it has not sent.
Effect long_line(const Parting& parting) {
  const bool closed =
      parting.ours.standing == Standing::kClosed || parting.theirs.standing == Standing::kClosed;
  // What is left of a value of a wrong size makes the next line longer.
  const std::string together =
      std::accumulate(parting.sent.begin(), parting.sent.end(), std::string());
  const bool met = !parting.binary && closed && has_long_line(together);
  return met ? Effect::kEndsScript : Effect::kNone;
}

bool has_long_opaque(const std::string& bytes) {
  const std::vector<std::string> words = split_words(bytes.substr(0, bytes.find_first_of("\r\n")));
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word[0] == 'O' && word.size() > kOpaqueSizeMax;
  });
}

// memcached refuses it when the command has taken effect.
Effect long_opaque(const Parting& parting) {
  return !parting.binary && any_sent(parting, has_long_opaque) ? Effect::kEndsScript
                                                               : Effect::kNone;
}

bool has_unknown_opcode_with_body(const std::string& packet) {
  client::BinaryHeader header;
  if (!read_header(packet, header) || header.body_size == 0) return false;
  return header.opcode > kLastKnownOpcode || header.opcode == 0x1b ||
         (header.opcode >= 0x1f && header.opcode <= 0x22);
}

// memcached reads the body as the next request.
Effect unknown_opcode_with_body(const Parting& parting) {
  const bool met = parting.binary && any_sent(parting, has_unknown_opcode_with_body);
  return met ? Effect::kEndsScript : Effect::kNone;
}

bool has_useless_value(const std::string& packet) {
  client::BinaryHeader header;
  if (!read_header(packet, header)) return false;
  const bool touches = (header.opcode >= 0x1c && header.opcode <= 0x1e) || header.opcode == 0x23 ||
                       header.opcode == 0x24;
  return (touches || header.opcode == 0x10) &&
         header.body_size > header.key_size + header.extras_size;
}

// memcached carries the request out and reads the value as the next one.
Effect useless_value(const Parting& parting) {
  const bool met = parting.binary && any_sent(parting, has_useless_value);
  return met ? Effect::kEndsScript : Effect::kNone;
}

bool has_wrong_lengths(const std::string& packet) {
  client::BinaryHeader header;
  return read_header(packet, header) && header.key_size + header.extras_size > header.body_size;
}

// memcached waits for a key that cannot come.
Effect wrong_lengths(const Parting& parting) {
  const bool met = parting.binary && any_sent(parting, has_wrong_lengths);
  return met ? Effect::kEndsScript : Effect::kNone;
}

// What is stored in the last second of a delay is missed in memcached at once.
Effect delayed_flush(const Parting& parting) {
  return parting.before.last_second_of_delay(parting.now) ? Effect::kEndsScript : Effect::kNone;
}

// 1.6.18 reports a number that it makes, quiet or not.
Effect quiet_count(const Parting& parting) {
  const bool met = any_sent(parting, [](const std::string& bytes) {
    return bytes.starts_with("ma ") && bytes.find(" q") != std::string::npos &&
           bytes.find(" N") != std::string::npos;
  });
  const bool told = parting.theirs.unit != nullptr &&
                    (parting.theirs.unit->shown.starts_with("HD") || says_value(parting.theirs));
  return met && told ? Effect::kTheirsMore : Effect::kNone;
}

bool has_blank_word(const std::string& bytes) {
  const std::string line = bytes.substr(0, bytes.find('\n'));
  const std::vector<std::string> words =
      split_words(line.substr(0, line.find_last_not_of('\r') + 1));
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.find_first_not_of("\t\r\v\f") == std::string::npos;
  });
}

// memcached reads the number of the next word in its place.
Effect blank_word(const Parting& parting) {
  const bool met = !parting.binary && any_sent(parting, has_blank_word);
  return met ? Effect::kEndsScript : Effect::kNone;
}

// memcached counts in long values, whatever stands after the number.
Effect long_number(const Parting& parting) {
  const bool met = parting.before.long_value() && parting.ours.unit != nullptr &&
                   (parting.ours.unit->shown.find("Non-numeric") != std::string::npos ||
                    parting.ours.unit->shown.find("non-numeric") != std::string::npos);
  return met ? Effect::kEndsScript : Effect::kNone;
}

// memcached does not count a meta get that misses.
Effect prefixes(const Parting& parting) {
  const bool met = parting.ours.unit != nullptr && parting.ours.unit->shown.starts_with("PREFIX ");
  return met ? Effect::kEndsScript : Effect::kNone;
}

// memcached looks at the size of a value before it compares ids.
Effect count_with_id(const Parting& parting) {
  if (parting.ours.unit == nullptr || parting.theirs.unit == nullptr) return Effect::kNone;
  const std::string& ours = parting.ours.unit->shown;
  const std::string& theirs = parting.theirs.unit->shown;
  const bool exists = ours.ends_with("Data exists for key.") || ours.starts_with("EX");
  const bool met = exists && (theirs.find("Non-numeric") != std::string::npos ||
                              theirs.find("non-numeric") != std::string::npos);
  return met ? Effect::kAsAnswered : Effect::kNone;
}

// memcached shows what the first has ended again.
Effect delayed_flush_after_flush(const Parting& parting) {
  return parting.before.delayed_flush_after_flush() ? Effect::kEndsScript : Effect::kNone;
}

// memcached's flush spares some of what was used in the same second.
Effect spared_by_flush(const Parting& parting) {
  return names_one_of(parting, parting.before.flushed_after_use()) ? Effect::kEndsScript
                                                                   : Effect::kNone;
}

bool is_no_packet(const std::string& bytes) {
  client::BinaryHeader header;
  return !read_header(bytes, header) ||
         header.body_size + client::kBinaryHeaderSize != bytes.size();
}

// Ours closes at the first byte; memcached waits for a whole header, and then loses replies that it
// has not sent.
Effect wrong_magic(const Parting& parting) {
  const bool closed = parting.ours.standing == Standing::kClosed;
  const bool met = parting.binary && closed && any_sent(parting, is_no_packet);
  return met ? Effect::kEndsScript : Effect::kNone;
}

// memcached has statistics of these names in text alone.
Effect text_statistic(const Parting& parting) {
  const bool asked = parting.binary && any_sent(parting, [](const std::string& bytes) {
                       return bytes.ends_with("conns") || bytes.ends_with("extstore");
                     });
  const bool refused =
      parting.theirs.unit != nullptr && parting.theirs.unit->shown.ends_with("Not found");
  if (!asked || !refused || parting.ours.unit == nullptr) return Effect::kNone;
  return is_statistic(parting.ours) ? Effect::kOursMore : Effect::kAsAnswered;
}

// memcached is built with extstore and takes its settings.
Effect extstore(const Parting& parting) {
  const bool met = sent_contains(parting, "extstore ") && says(parting.ours, "ERROR\r\n") &&
                   says(parting.theirs, "OK\r\n");
  return met ? Effect::kAsAnswered : Effect::kNone;
}

// memcached starts and stops a thread, and refuses to use it where it does not run.
Effect crawler_thread(const Parting& parting) {
  if (parting.ours.unit == nullptr || parting.binary) return Effect::kNone;
  const bool met = says(parting.theirs, "ERROR failed to start lru crawler thread\r\n") ||
                   says(parting.theirs, "CLIENT_ERROR lru crawler disabled\r\n");
  return met ? Effect::kAsAnswered : Effect::kNone;
}

// memcached refuses a dump after another command of the same read.
Effect dump_in_pipeline(const Parting& parting) {
  const bool met = parting.theirs.unit != nullptr && parting.ours.unit != nullptr &&
                   parting.theirs.unit->shown.starts_with("ERROR cannot pipeline");
  return met ? Effect::kAsAnswered : Effect::kNone;
}

// memcached keeps its replies back until it has read the whole body of the next request.
Effect reply_ahead_of_body(const Parting& parting) {
  const bool met = parting.theirs.unit == nullptr && parting.ours.unit != nullptr &&
                   parting.theirs.standing == Standing::kWaits &&
                   parting.ours.standing == Standing::kWaits;
  return met ? Effect::kOursMore : Effect::kNone;
}

bool is_name_of_ours(const std::string& name) {
  constexpr std::string_view kNames[] = {"segments_",           "items_moved",
                                         "replies_deferred",    "connections_refused",
                                         "connections_stalled", "connections_stall_timeouts",
                                         "large_values_",       "udp_",
                                         "index_splits",        "slab_reassign_evictions_nomem"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&name](std::string_view ours) { return name.starts_with(ours); });
}

// `stats` has names of our own beside memcached's, which stand in memcached's order.
Effect names_of_ours(const Parting& parting) {
  if (!is_statistic(parting.ours) || !is_statistic(parting.theirs)) return Effect::kNone;
  std::vector<std::string> names = parting.ours.unit->names;
  std::erase_if(names, is_name_of_ours);
  return names == parting.theirs.unit->names ? Effect::kAsAnswered : Effect::kNone;
}

// Names that begin with a class or a connection, as 1:chunk_size.
Effect numbered_names(const Parting& parting) {
  const auto numbered = [](const Side& side) {
    return is_statistic(side) && (side.unit->names[0].find(':') != std::string::npos ||
                                  side.unit->names[0] == "active_slabs");
  };
  const bool ours = numbered(parting.ours);
  const bool theirs = numbered(parting.theirs);
  if (ours && theirs) return Effect::kAsAnswered;
  if (ours && !is_statistic(parting.theirs)) return Effect::kOursMore;
  if (theirs && !is_statistic(parting.ours)) return Effect::kTheirsMore;
  return Effect::kNone;
}

constexpr ListedDifference kListed[] = {
    {"watch", "| `watch` kinds | differs |", watch},
    {"replies before an unfinished body", "replies before an unfinished body", reply_ahead_of_body},
    {"time of access", "| `l` | **differs**", time_of_access},
    {"binary key of an item made by a command",
     "`mg` with `N` on a binary key, `append` and `prepend`", binary_key},
    {"line end in a binary key", "`mg` with `N` on a binary key, `append` and `prepend`",
     line_end_in_key},
    {"time that is over", "`t` of an expired item", time_over},
    {"time beyond 2038", "times after 2038", time_beyond_2038},
    {"me with a binary key", "`me` with `b`", debug_of_binary_key},
    {"delayed flush", "an item stored during the last second of a delay ends with it",
     delayed_flush},
    {"delayed flush after a flush", "a delayed flush restores items", delayed_flush_after_flush,
     true},
    {"item that a flush spares", "flush spares an item that in the same second", spared_by_flush},
    {"first byte of no packet", "a first byte that is not 0x80", wrong_magic},
    {"statistics in text alone", "`stat` with key `conns`, `extstore`", text_statistic},
    {"number that grew", "`ma` that makes the number longer", number_that_grew},
    {"number after a get", "drops the blanks after it if the item was read before",
     count_behind_get},
    {"extstore", "| `extstore ...`, `misbehave` | absent |", extstore},
    {"crawler thread", "`failed to start lru crawler thread`", crawler_thread},
    {"dump in a pipeline", "cannot pipeline", dump_in_pipeline},
    {"number made quietly", "`ma` with `N` and `q` that creates a number", quiet_count, false,
     true},
    {"word of white space", "flags or time that consist only of tabs or carriage returns",
     blank_word, true},
    {"count with an id of an empty or long value",
     "id that does not fit, on an empty or long value", count_with_id},
    {"number in a long value", "`incr`, `decr` on a long value", long_number},
    {"counted prefixes", "a meta get that misses is counted", prefixes},
    {"long line", "a line of more than 2048 bytes", long_line},
    {"long opaque", "opaque too long", long_opaque, true},
    {"unknown opcode with a body", "skips extras and key twice after an unknown opcode",
     unknown_opcode_with_body},
    {"value of stat and touch", "leaves the value of `stat` and `touch` in the stream",
     useless_value},
    {"lengths that contradict each other", "lengths that contradict each other", wrong_lengths},
    {"statistics of ours", "This server's own, after them: `segments_*`", names_of_ours},
    {"classes and connections", "class 1 is the whole log", numbered_names},
    {"key of 251 bytes in a get", "a key of more than 250 bytes in a `get`", long_key_in_get},
};

}  // namespace

std::span<const ListedDifference> listed_differences() { return kListed; }

}  // namespace warpcache::model
