// SPDX-License-Identifier: Apache-2.0
#include "model/generator.h"

#include <algorithm>
#include <cstdint>

namespace warpcache::model {

namespace {

constexpr int kTextStreams = 2;  // streams 1 and 2 speak text, 3 and 4 binary
constexpr int kBinaryStreams = 2;
constexpr uint32_t kSharedClockRounds = 8;  // time passes in one of kSharedClockRounds rounds

}  // namespace

uint32_t ByteDice::roll(uint32_t sides) {
  uint32_t number = at_ < size_ ? data_[at_++] : 0;
  if (sides > 256 && at_ < size_) number = number << 8 | data_[at_++];
  return number % sides;
}

std::string Generator::pick(const std::vector<std::string>& choices) {
  return choices[dice_.roll(static_cast<uint32_t>(choices.size()))];
}

std::string Generator::key() {
  if (dice_.one_in(50))
    return prefix_ + std::string("{k*") + std::to_string(250 - prefix_.size()) + "}";
  if (!config_.common && dice_.one_in(300)) return "{k*251}";
  return short_key();
}

std::string Generator::short_key() {
  return prefix_ + pick({"a", "b", "c", "d", "key5", "n", "num"});
}

std::string Generator::cas(const std::string& key) {
  // An id after a command of a wrong size may become a value, which differs between two servers.
  const bool unframed = unframed_round_ == round_;
  if (unframed || key.find('{') != std::string::npos || dice_.one_in(8)) {
    return pick({"0", "1", "2", "9223372036854775999", "18446744073709551615"});
  }
  // The next number may be one that the server has given out and not told. Which key has it differs
  // between two servers.
  const bool guesses = !config_.shared && !config_.wide && dice_.one_in(20);
  const std::string near = guesses ? pick({"+1", "-1"}) : "";
  return "{cas:" + key + near + "}";
}

std::string Generator::flags() {
  if (dice_.roll(3) != 0) return "0";
  return pick({"1", "5", "77", "4294967295", "65536"});
}

// What one way of reading numbers takes and the other does not, or at the edge of its range.
std::string Generator::odd_number() {
  return pick({"+3",
               "-0",
               "-",
               "-1",
               "\\t1",
               "1\\t",
               "1\\x00",
               "00000000012",
               "000000000012",
               "0000000000000000000012",
               "00000000000000000000012",
               "2147483647",
               "2147483648",
               "4294967295",
               "4294967296",
               "4294967396",
               "-2147483648",
               "-2147483649",
               "9223372036854775807",
               "9223372036854775808",
               "-9223372036854775809",
               "18446744073709551616"});
}

std::string Generator::exptime() {
  if (!config_.common && !config_.clock && dice_.one_in(40)) return odd_number();
  if (dice_.roll(3) != 0) return "0";
  if (!config_.clock) return pick({"0", "1000", "-1", "2592000", "2592001", "{now+1000}"});
  return pick({"1", "2", "3", "5", "100", "-1", "2592000", "2592001", "{now+2}", "{now+50}"});
}

int32_t Generator::plain_time() {
  constexpr int32_t kTimes[] = {0, 1, 2, 5, 1000};
  constexpr int32_t kLongTimes[] = {0, 0, 1000, 2592001, 5000};
  return (config_.clock ? kTimes : kLongTimes)[dice_.roll(5)];
}

std::string Generator::number() {
  if (!config_.common && dice_.one_in(20)) return odd_number();
  return pick(
      {"1", "1", "5", "10", "0", "99", "18446744073709551615", "9223372036854775808", "007"});
}

std::string Generator::noreply() { return dice_.one_in(8) ? " noreply" : ""; }

std::string Generator::value(size_t& size) {
  const uint32_t kind = dice_.roll(200);
  if (kind < 80) {
    const std::string text = pick({"5", "9", "99", "10", "0", "18446744073709551615", "007", "12  ",
                                   " 7", "abc", "-1", "5 6", "18446744073709551616"});
    size = text.size();
    return text;
  }
  size = dice_.roll(30);
  if (kind >= 185) size = 30 + dice_.roll(3000);
  if (config_.large && kind >= 197) size = 16384 - 40 + dice_.roll(80);
  if (config_.large && kind == 198) size = 32768 - 100 + dice_.roll(200);
  if (config_.large && kind == 199)
    size = dice_.one_in(3) ? 61440 + dice_.roll(2000) : 60000 * dice_.roll(config_.wide ? 3 : 20);
  if (bytes_ + size > config_.bytes_max) size = 3;
  bytes_ += size;
  return "{val:" + std::to_string(dice_.roll(26)) + "*" + std::to_string(size) + "}";
}

std::string Generator::text_get() {
  const bool touches = dice_.one_in(4);
  std::string line = touches ? pick({"gat", "gats"}) : pick({"get", "gets"});
  if (touches) line += " " + std::to_string(plain_time() - (dice_.one_in(20) ? 1001 : 0));
  uint32_t keys = 1;
  if (dice_.one_in(4)) keys = 2 + dice_.roll(5);
  if (dice_.one_in(60)) keys = 200 + dice_.roll(700);
  // A single key that is too long would spoil nearly every long line.
  const bool short_alone = config_.wide && keys >= 200;
  for (uint32_t i = 0; i < keys; ++i) line += " " + (short_alone ? short_key() : key());
  return line + "\\r\\n";
}

std::string Generator::text_store() {
  const std::string command = pick({"set", "set", "add", "replace", "append", "prepend", "cas"});
  const std::string name = key();
  size_t size = 0;
  const std::string body = value(size);
  std::string line = command + " " + name + " " + flags() + " " + exptime() + " " +
                     std::to_string(size) + (command == "cas" ? " " + cas(name) : "") + noreply();
  return line + "\\r\\n" + body + "\\r\\n";
}

std::string Generator::text_change() {
  switch (dice_.roll(4)) {
    case 0:
      return "delete " + key() + noreply() + "\\r\\n";
    case 1:
      return "touch " + key() + " " + exptime() + noreply() + "\\r\\n";
    default:
      return pick({"incr ", "decr "}) + key() + " " + number() + noreply() + "\\r\\n";
  }
}

std::string Generator::text_command() {
  if (config_.wide && dice_.one_in(3)) return wide_command();
  uint32_t kind = dice_.roll(100);
  // A script of one protocol has the other's commands replaced.
  if (config_.protocol == Protocol::kText && kind >= 42 && kind < 90) kind %= 42;
  if (config_.protocol == Protocol::kMeta && kind < 42) kind += 43;
  if (kind < 16) return text_get();
  if (kind < 32) return text_store();
  if (kind < 42) return text_change();
  if (kind < 60) return meta_get();
  if (kind < 75) return meta_set();
  if (kind < 82) return meta_delete();
  if (kind < 90) return meta_count();
  if (kind < 97) return broken_command();
  if (kind == 97 && may_flush_) {
    return config_.clock ? pick({"flush_all\\r\\n", "flush_all noreply\\r\\n", "flush_all 2\\r\\n",
                                 "flush_all 1 noreply\\r\\n", "flush_all -1\\r\\n"})
                         : pick({"flush_all\\r\\n", "flush_all noreply\\r\\n"});
  }
  if (kind == 98 && !config_.common) return dice_.one_in(20) ? "quit\\r\\n" : "version\\r\\n";
  return "mn\\r\\n";
}

// A command whose bytes are not above the bound, if there is one.
std::string Generator::bounded_command(Language language) {
  constexpr int kTriesMax = 20;
  constexpr size_t kCasDigitsMax = 20;
  const Surroundings longest = {[](const std::string&) { return uint64_t{0}; }, INT32_MAX,
                                kCasDigitsMax};
  for (int i = 0; i < kTriesMax; ++i) {
    std::string text = language == Language::kText ? text_command() : binary_command();
    if (config_.message_bytes_max == 0) return text;
    if (render(text, longest).size() <= config_.message_bytes_max) return text;
  }
  return language == Language::kText ? "mn\\r\\n" : packet(0x0a, "", "", "", 0, "");
}

void Generator::add_message(Script& script, int stream, Language language, bool alone) {
  Step step;
  step.round = round_;
  step.stream = stream;
  prefix_ = config_.prefix + (alone ? "" : "s" + std::to_string(stream + 5));
  may_flush_ = alone && !config_.shared && flushes_;
  in_datagram_ = stream == kDatagram;
  step.text = bounded_command(language);
  script.steps.push_back(std::move(step));
}

// What is stored under the keys that are used most, and what is known of it.
void Generator::add_last_look(Script& script) {
  ++round_;
  for (const std::string prefix : {"", "s6", "s7", "s8", "s9"}) {
    for (const char* name : {"a", "b", "c", "d", "key5", "n", "num"}) {
      script.steps.push_back(
          {.round = round_, .stream = 1, .text = "mg " + prefix + name + " k f s h t c v\\r\\n"});
    }
  }
}

// Streams of one round do not disturb each other: either there is one alone, or each has its own
// keys.
void Generator::add_round(Script& script) {
  ++round_;
  if (config_.shared) {
    if (round_ % kSharedClockRounds == 0) return add_clock(script, 1 + round_ % 5);
  } else if (config_.clock && dice_.one_in(6)) {
    return add_clock(script, 1 + dice_.roll(4));
  }
  if (config_.only_datagrams) return add_datagrams(script);
  const uint32_t kind = dice_.roll(10);
  if (config_.datagrams && kind == 9) {
    for (uint32_t i = 1 + dice_.roll(2); i > 0; --i) {
      add_message(script, kDatagram, Language::kText, true);
    }
    return;
  }
  const bool many = kind == 8;
  const int lowest = config_.protocol == Protocol::kBinary ? kTextStreams + 1 : 1;
  const bool has_binary =
      config_.protocol == Protocol::kBinary || config_.protocol == Protocol::kAll;
  const int highest = kTextStreams + (has_binary ? kBinaryStreams : 0);
  const auto streams = static_cast<uint32_t>(highest - lowest + 1);
  const int first = many ? lowest : lowest + static_cast<int>(dice_.roll(streams));
  const int last = many ? highest : first;
  // memcached counts in another way while a reply holds the item: so one message at a time.
  const uint32_t most = config_.common ? 1 : dice_.one_in(20) ? 60 : config_.messages_max;
  for (int stream = first; stream <= last; ++stream) {
    const Language language = stream <= kTextStreams ? Language::kText : Language::kBinary;
    for (uint32_t i = 1 + dice_.roll(most); i > 0; --i) {
      add_message(script, stream, language, !many);
    }
  }
}

void Generator::add_datagrams(Script& script) {
  for (uint32_t i = 1 + dice_.roll(config_.messages_max); i > 0; --i) {
    const Language language = dice_.one_in(4) ? Language::kBinary : Language::kText;
    add_message(script, kDatagram, language, true);
  }
}

void Generator::add_clock(Script& script, uint32_t seconds) {
  Step step;
  step.round = round_;
  step.stream = kClock;
  step.seconds = seconds;
  script.steps.push_back(step);
}

Script Generator::generate() {
  Script script;
  if (config_.shared) {
    round_ = config_.first_round - 1;
    while (round_ < config_.last_round) add_round(script);
    return script;
  }
  if (!config_.common && dice_.one_in(4)) {
    script.item_size_max =
        config_.wide ? 8192 * (1 + dice_.roll(16)) : 1024 + dice_.roll(100) * 700;
  }
  if (!config_.common && dice_.roll(3) != 0) script.cuts = 1 + dice_.roll(1000);
  // memcached's flush spares some items, and the rest of a script cannot be compared then.
  if (config_.wide) flushes_ = dice_.one_in(4);
  while (script.steps.size() < config_.steps && !dice_.spent()) add_round(script);
  if (config_.wide) add_last_look(script);
  return script;
}

}  // namespace warpcache::model
