// SPDX-License-Identifier: Apache-2.0
#include "stress/filler.h"

#include <fmt/format.h>

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
  client::append(detail::kLineMax, input, [&](char* at) {
    return client::write_store("set", key_text(key), {0, 0, value.size()}, at);
  });
  input->append(value).append(client::kLineEnd);
  sent_.push_back({key, id, size});
}

void Filler::make(std::string* input) {
  sent_.clear();
  for (uint32_t i = 0; i < scenario_.filler_commands; ++i) {
    const uint32_t key = static_cast<uint32_t>(random_() % scenario_.filler_keys);
    if (random_() % 100 < scenario_.filler_set_percent) {
      make_set(key, input);
    } else {
      detail::append_line("get", input, [&](auto& line) { line.key(key_text(key)); });
      sent_.push_back({key, 0, 0});
    }
  }
  commands_ += sent_.size();
}

// A set without memory removes the old value too.
bool Filler::check_set(const Sent& sent, std::string_view* replies) {
  client::TextReply reply;
  if (!detail::take_text(replies, &reply)) return false;
  const bool stored = reply.code == client::ReplyCode::kStored;
  ids_[sent.key] = stored ? sent.id : 0;
  sizes_[sent.key] = sent.size;
  return stored || reply.line.starts_with("SERVER_ERROR out of memory");
}

bool Filler::check_get(uint32_t key, std::string_view* replies) {
  client::TextReply reply;
  if (!detail::take_text(replies, &reply)) return false;
  if (reply.code == client::ReplyCode::kEnd) return true;
  if (reply.code != client::ReplyCode::kValue || reply.head.key != key_text(key)) return false;
  const bool current = ids_[key] != 0 && reply.value == make_value(ids_[key], sizes_[key]) &&
                       reply.head.client_flags == 0 && !reply.head.has_cas;
  return current && detail::take_text(replies, &reply) && reply.code == client::ReplyCode::kEnd;
}

bool Filler::check(std::string_view* replies) {
  for (const Sent& sent : sent_) {
    if (!(sent.id != 0 ? check_set(sent, replies) : check_get(sent.key, replies))) return false;
  }
  return true;
}

}  // namespace warpcache::stress
