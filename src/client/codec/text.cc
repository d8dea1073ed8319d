// SPDX-License-Identifier: Apache-2.0
#include "client/codec/text.h"

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
  const auto is = [line](std::string_view word, ReplyCode code) {
    return line == word ? code : ReplyCode::kOther;
  };
  // A meta reply may have flags after its two letters.
  if (line.size() == 2 || (line.size() > 2 && line[2] == ' ')) {
    const std::string_view word = line.substr(0, 2);
    if (word == "VA") return line.size() > 2 ? ReplyCode::kMetaValue : ReplyCode::kOther;
    if (word == "HD") return ReplyCode::kMetaDone;
    if (word == "EN") return ReplyCode::kMetaMiss;
    if (word == "MN") return ReplyCode::kMetaNoop;
    if (word == "NF") return ReplyCode::kMetaNotFound;
    if (word == "NS") return ReplyCode::kMetaNotStored;
    if (word == "EX") return ReplyCode::kMetaExists;
    return is("OK", ReplyCode::kOk);
  }
  if (line.empty()) return ReplyCode::kOther;
  switch (line[0]) {
    case 'V':
      return line.starts_with("VALUE ") ? ReplyCode::kValue : ReplyCode::kOther;
    case 'E':
      if (line == "END") return ReplyCode::kEnd;
      return line == "ERROR" ? ReplyCode::kError : is("EXISTS", ReplyCode::kExists);
    case 'S':
      if (line == "STORED") return ReplyCode::kStored;
      return line.starts_with("SERVER_ERROR") ? ReplyCode::kError : ReplyCode::kOther;
    case 'N':
      if (line == "NOT_FOUND") return ReplyCode::kNotFound;
      return is("NOT_STORED", ReplyCode::kNotStored);
    case 'D':
      return is("DELETED", ReplyCode::kDeleted);
    case 'T':
      return is("TOUCHED", ReplyCode::kTouched);
    case 'C':
      return line.starts_with("CLIENT_ERROR") ? ReplyCode::kError : ReplyCode::kOther;
    default:
      return ReplyCode::kOther;
  }
}

bool read_value_head(ReplyCode code, std::string_view line, ValueHead* head) {
  const bool meta = code == ReplyCode::kMetaValue;
  line.remove_prefix(meta ? std::string_view("VA ").size() : std::string_view("VALUE ").size());
  if (meta) {
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
