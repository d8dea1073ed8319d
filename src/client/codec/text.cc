// SPDX-License-Identifier: Apache-2.0
#include "client/codec/text.h"

#include <utility>

#include "client/codec/words.h"

namespace warpcache::client {
namespace {

// The value after a line of `line_size` bytes, line end included.
Taken take_value(size_t line_size, size_t value_max, std::string_view* in, TextReply* reply) {
  if (!read_value_head(reply->code, reply->line, &reply->head)) return Taken::kBad;
  const size_t size = reply->head.size;
  if (size > value_max) return Taken::kBad;
  const size_t end = line_size + size + kLineEnd.size();
  if (in->size() < end) return Taken::kPart;
  if (in->substr(line_size + size, kLineEnd.size()) != kLineEnd) return Taken::kBad;
  reply->value = in->substr(line_size, size);
  in->remove_prefix(end);
  return Taken::kWhole;
}

}  // namespace

ReplyCode code_of(std::string_view line) {
  if (line.starts_with("VALUE ")) return ReplyCode::kValue;
  if (line.starts_with("VA ")) return ReplyCode::kMetaValue;
  if (line.size() == 2 || (line.size() > 2 && line[2] == ' ')) {
    constexpr std::pair<std::string_view, ReplyCode> kMeta[] = {
        {"HD", ReplyCode::kMetaDone},
        {"EN", ReplyCode::kMetaMiss},
        {"MN", ReplyCode::kMetaNoop},
        {"NF", ReplyCode::kMetaNotFound},
        {"NS", ReplyCode::kMetaNotStored},
        {"EX", ReplyCode::kMetaExists},
        {"OK", ReplyCode::kOk},
    };
    for (const auto& [word, code] : kMeta) {
      if (line.starts_with(word)) {
        return code == ReplyCode::kOk && line.size() > 2 ? ReplyCode::kOther : code;
      }
    }
    return ReplyCode::kOther;
  }
  constexpr std::pair<std::string_view, ReplyCode> kWords[] = {
      {"END", ReplyCode::kEnd},
      {"STORED", ReplyCode::kStored},
      {"NOT_STORED", ReplyCode::kNotStored},
      {"EXISTS", ReplyCode::kExists},
      {"NOT_FOUND", ReplyCode::kNotFound},
      {"DELETED", ReplyCode::kDeleted},
      {"TOUCHED", ReplyCode::kTouched},
      {"ERROR", ReplyCode::kError},
  };
  for (const auto& [word, code] : kWords) {
    if (line == word) return code;
  }
  return line.starts_with("SERVER_ERROR") || line.starts_with("CLIENT_ERROR") ? ReplyCode::kError
                                                                              : ReplyCode::kOther;
}

bool read_value_head(ReplyCode code, std::string_view line, ValueHead* head) {
  take_word(&line);
  if (code == ReplyCode::kMetaValue) {
    if (!take_number(&line, &head->size)) return false;
    head->flags = line;
    return true;
  }
  head->key = take_word(&line);
  if (!take_number(&line, &head->client_flags) || !take_number(&line, &head->size)) return false;
  head->has_cas = !line.empty();
  return !head->has_cas || read_number(line, &head->cas);
}

std::string_view TextReply::meta_flags() const {
  if (code == ReplyCode::kMetaValue) return head.flags;
  return line.substr(std::min<size_t>(line.size(), 3));
}

Taken take_reply(std::string_view* in, TextReply* reply, size_t value_max) {
  *reply = {};
  const size_t line_feed = in->find('\n');
  if (line_feed == std::string_view::npos) return Taken::kPart;
  reply->line = in->substr(0, line_feed);
  if (!reply->line.ends_with('\r')) return Taken::kBad;
  reply->line.remove_suffix(1);
  reply->code = code_of(reply->line);
  if (reply->code == ReplyCode::kValue || reply->code == ReplyCode::kMetaValue) {
    return take_value(line_feed + 1, value_max, in, reply);
  }
  in->remove_prefix(line_feed + 1);
  return Taken::kWhole;
}

}  // namespace warpcache::client
