// SPDX-License-Identifier: Apache-2.0
#include "model/listed_differences.h"

#include <algorithm>

#include "model/numbers.h"

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

// `watch`: memcached makes the connection a log from here on.
Effect watch(const Parting& parting) {
  const bool met = sent_contains(parting, "watch") && says(parting.ours, "ERROR\r\n");
  return met ? Effect::kEndsScript : Effect::kNone;
}

constexpr size_t kBinaryHeaderSize = 24;
constexpr uint8_t kLastKnownOpcode = 0x24;
constexpr size_t kLineSizeMax = 2048;
constexpr size_t kOpaqueSizeMax = 31;  // without its O

constexpr size_t kKeySizeMax = 250;

bool any_sent(const Parting& parting, bool (*holds)(const std::string& bytes)) {
  return std::any_of(parting.sent.begin(), parting.sent.end(), holds);
}

// A line of the get family has a key that is too long.
bool gets_long_key(const std::string& bytes) {
  size_t word = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    word = bytes[at] == ' ' || bytes[at] == '\n' ? 0 : word + 1;
    if (word > kKeySizeMax && (bytes.starts_with("get") || bytes.starts_with("gat"))) return true;
  }
  return false;
}

// memcached ends the error with a second line end, and takes back one reply that went before for
// each key that was missed.
Effect long_key_in_get(const Parting& parting) {
  if (parting.binary || !any_sent(parting, gets_long_key)) return Effect::kNone;
  if (says(parting.theirs, "\r\n")) return Effect::kTheirsMore;
  return parting.ours.unit != nullptr ? Effect::kOursMore : Effect::kNone;
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

// memcached forgets of an item that a command made by itself, or copied, that its key is binary.
Effect binary_key(const Parting& parting) {
  const auto own = [](const std::string& word) { return is_key(word) || is_time_of_access(word); };
  return equal_without(parting, own) ? Effect::kAsAnswered : Effect::kNone;
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
  const bool met = !parting.binary && closed && any_sent(parting, has_long_line);
  return met ? Effect::kEndsScript : Effect::kNone;
}

bool has_long_opaque(const std::string& bytes) {
  const std::vector<std::string> words = split_words(bytes.substr(0, bytes.find('\n')));
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word[0] == 'O' && word.size() > kOpaqueSizeMax;
  });
}

// memcached refuses it when the command has taken effect.
Effect long_opaque(const Parting& parting) {
  return !parting.binary && any_sent(parting, has_long_opaque) ? Effect::kEndsScript
                                                               : Effect::kNone;
}

struct Header {
  uint8_t opcode = 0;
  size_t key_size = 0;
  size_t extras_size = 0;
  size_t body_size = 0;
};

bool read_header(const std::string& packet, Header& header) {
  if (packet.size() < kBinaryHeaderSize || packet[0] != '\x80') return false;
  const auto byte = [&packet](size_t at) { return size_t{static_cast<uint8_t>(packet[at])}; };
  header.opcode = static_cast<uint8_t>(packet[1]);
  header.key_size = byte(2) << 8 | byte(3);
  header.extras_size = byte(4);
  header.body_size = byte(8) << 24 | byte(9) << 16 | byte(10) << 8 | byte(11);
  return true;
}

bool has_unknown_opcode_with_body(const std::string& packet) {
  Header header;
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
  Header header;
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
  Header header;
  return read_header(packet, header) && header.key_size + header.extras_size > header.body_size;
}

// memcached waits for a key that cannot come.
Effect wrong_lengths(const Parting& parting) {
  const bool met = parting.binary && any_sent(parting, has_wrong_lengths);
  return met ? Effect::kEndsScript : Effect::kNone;
}

// memcached keeps its replies back until it has read the whole body of the next request.
Effect reply_ahead_of_body(const Parting& parting) {
  const bool met = parting.theirs.unit == nullptr && parting.ours.unit != nullptr &&
                   parting.theirs.standing == Standing::kWaits &&
                   parting.ours.standing == Standing::kWaits;
  return met ? Effect::kOursMore : Effect::kNone;
}

Effect statistic_names(const Parting& parting) {
  const bool met = parting.ours.unit != nullptr && parting.theirs.unit != nullptr &&
                   !parting.ours.unit->names.empty() && !parting.theirs.unit->names.empty();
  return met ? Effect::kAsAnswered : Effect::kNone;
}

constexpr ListedDifference kListed[] = {
    {"watch", "| `watch ...` | absent |", watch},
    {"key of 251 bytes in a get", "a key of more than 250 bytes in a `get`", long_key_in_get},
    {"replies ahead of an unfinished body", "ahead of an unfinished body", reply_ahead_of_body},
    {"time of access", "`l`", time_of_access},
    {"binary key of an item made by a command", "`mg` with `N` on a binary key", binary_key},
    {"long line", "a line of more than 2048 bytes", long_line},
    {"long opaque", "opaque too long", long_opaque, true},
    {"unknown opcode with a body", "unknown opcodes with a body", unknown_opcode_with_body},
    {"value of stat and touch", "leaves the value of `stat` and `touch` in the stream",
     useless_value},
    {"lengths that do not add up", "lengths that do not add up", wrong_lengths},
    {"names of statistics", "| `stats` | differs |", statistic_names},
};

}  // namespace

std::span<const ListedDifference> listed_differences() { return kListed; }

}  // namespace warpcache::model
