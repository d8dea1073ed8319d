// SPDX-License-Identifier: Apache-2.0
#include "stress/filler.h"

#include <fmt/format.h>

#include <iterator>

#include "stress/command.h"

namespace warpcache::stress {

Filler::Filler(const Scenario& scenario, uint32_t thread, uint64_t seed)
    : scenario_(scenario),
      thread_(thread),
      random_(seed * 77 + thread),
      ids_(scenario.filler_keys, 0),
      sizes_(scenario.filler_keys, 0) {}

std::string Filler::key_text(uint32_t key) const { return fmt::format("f{}:{}", thread_, key); }

void Filler::make_set(uint32_t key, std::string* input) {
  const uint64_t id = uint64_t{thread_} << 48 | ++last_id_;
  const uint32_t size = static_cast<uint32_t>(random_() % scenario_.filler_value_max);
  const std::string value = make_value(id, size);
  fmt::format_to(std::back_inserter(*input), "set {} 0 0 {}\r\n{}\r\n", key_text(key), value.size(),
                 value);
  sent_.push_back({key, id, size});
}

void Filler::make(std::string* input) {
  sent_.clear();
  for (uint32_t i = 0; i < scenario_.filler_commands; ++i) {
    const uint32_t key = static_cast<uint32_t>(random_() % scenario_.filler_keys);
    if (random_() % 100 < scenario_.filler_set_percent) {
      make_set(key, input);
    } else {
      *input += "get " + key_text(key) + "\r\n";
      sent_.push_back({key, 0, 0});
    }
  }
  commands_ += sent_.size();
}

// A set without memory removes the old value too.
bool Filler::check_set(const Sent& sent, std::string_view* replies) {
  std::string_view line;
  if (!detail::take_line(replies, &line)) return false;
  const bool stored = line == "STORED";
  ids_[sent.key] = stored ? sent.id : 0;
  sizes_[sent.key] = sent.size;
  return stored || line.starts_with("SERVER_ERROR out of memory");
}

bool Filler::check_get(uint32_t key, std::string_view* replies) {
  std::string_view line;
  if (!detail::take_line(replies, &line)) return false;
  if (line == "END") return true;
  const std::string head = "VALUE " + key_text(key) + " 0 ";
  if (!line.starts_with(head)) return false;
  uint64_t size = 0;
  std::string_view value;
  if (!detail::parse_number(line.substr(head.size()), &size) ||
      !detail::take_block(replies, size, &value)) {
    return false;
  }
  const bool current = ids_[key] != 0 && value == make_value(ids_[key], sizes_[key]);
  return current && detail::take_line(replies, &line) && line == "END";
}

bool Filler::check(std::string_view* replies) {
  for (const Sent& sent : sent_) {
    if (!(sent.id != 0 ? check_set(sent, replies) : check_get(sent.key, replies))) return false;
  }
  return true;
}

}  // namespace warpcache::stress
