// SPDX-License-Identifier: Apache-2.0
//
// The meta commands, with the errors of memcached 1.6.45.
#include <utility>

#include "model/model.h"
#include "model/numbers.h"

namespace warpcache::model {

namespace {

constexpr char kBadLine[] = "CLIENT_ERROR bad command line format";
constexpr size_t kTokensMax = 20;
constexpr size_t kOpaqueMax = 32;  // with its letter

using Words = std::vector<std::string>;

bool may_be_flag(char c) { return (c >= 'A' && c <= 'z') || (c >= '0' && c <= '9'); }

bool are_flags(const Words& words, size_t first) {
  for (size_t i = first; i < words.size(); ++i) {
    if (!may_be_flag(words[i][0])) return false;
  }
  return true;
}

}  // namespace

// A line, its flags read. With an error nothing but the error counts.
struct Model::MetaLine {
  std::string command;
  std::string key;       // decoded
  std::string key_word;  // as it was given
  Words flags;
  std::string error;
  bool base64 = false;
  bool value = false, quiet = false, no_bump = false, invalidate = false, drop_value = false;
  bool touches = false, vivifies = false, recaches = false, compares = false, sets_cas = false;
  int32_t exptime = 0, vivify_exptime = 0, recache = 0;
  uint32_t client_flags = 0;
  uint64_t cas = 0, new_cas = 0, initial = 0, delta = 1;
  char mode = 0;
  bool opaque_too_long = false;

  MetaLine(const Words& words, size_t first_flag);

  bool read_flag(const std::string& flag);
  void read_number(bool valid, const char* text) {
    if (!valid) error = text;
  }
  void judge_mode();

  // The flags that every answer repeats.
  void show_common(char flag, const std::string& word, bool key_is_base64, Reply& reply) const {
    if (flag == 'O') reply.add(" " + word);
    if (flag == 'k') reply.add(key_is_base64 ? " k" + base64_key() + " b" : " k" + key);
  }
  std::string base64_key() const { return warpcache::model::base64(key); }
  void answer(const std::string& code, Reply& reply) const {
    reply.add(code);
    for (const std::string& word : flags) show_common(word[0], word, base64, reply);
    reply.add("\r\n");
  }
};

Model::MetaLine::MetaLine(const Words& words, size_t first_flag) : command(words[0]) {
  if (words.size() < first_flag || !are_flags(words, first_flag)) {
    error = kBadLine;
    return;
  }
  key_word = key = words[1];
  flags.assign(words.begin() + static_cast<ptrdiff_t>(first_flag), words.end());
  bool wrong = key_word.size() > kKeyMax;
  if (wrong) {
    error = kBadLine;
  } else {
    std::string seen;
    for (const std::string& flag : flags) {
      if (seen.find(flag[0]) != std::string::npos) {
        error = "CLIENT_ERROR duplicate flag";
        break;
      }
      seen += flag[0];
      if (!read_flag(flag)) break;
    }
    if (words.size() > kTokensMax) error = "CLIENT_ERROR options flags are too long";
    wrong = !error.empty();
  }
  if (wrong && command == "ma") error = "CLIENT_ERROR invalid or duplicate flag";
  if (error.empty()) judge_mode();
  if (error.empty() && opaque_too_long) error = "CLIENT_ERROR opaque token too long";
}

void Model::MetaLine::judge_mode() {
  if (command == "ms" && mode != 0 && std::string("SEAPR").find(mode) == std::string::npos) {
    error = "CLIENT_ERROR invalid mode for ms M token";
  }
  if (command == "ma" && mode != 0 && std::string("I+D-").find(mode) == std::string::npos) {
    error = "CLIENT_ERROR invalid mode for ma M token";
  }
}

// False: no flag after this one is looked at.
bool Model::MetaLine::read_flag(const std::string& flag) {
  const std::string token = flag.substr(1);
  constexpr char kBadToken[] = "CLIENT_ERROR bad token in command line format";
  switch (flag[0]) {
    case 'b':
      base64 = true;
      read_number(read_base64(key_word, key), "CLIENT_ERROR error decoding key");
      break;
    case 'N':
      vivifies = true;
      read_number(read_plain_i32(token, vivify_exptime), kBadToken);
      break;
    case 'T':
      touches = true;
      read_number(read_plain_i32(token, exptime), kBadToken);
      break;
    case 'R':
      recaches = true;
      read_number(read_plain_i32(token, recache), kBadToken);
      break;
    case 'F':
      if (!read_plain_u32(token, client_flags) && error.empty()) error = kBadLine;
      break;
    case 'C':
      compares = true;
      read_number(read_plain_u64(token, cas), kBadToken);
      break;
    case 'E':
      sets_cas = true;
      read_number(read_plain_u64(token, new_cas), kBadToken);
      break;
    case 'J':
      read_number(read_plain_u64(token, initial), "CLIENT_ERROR invalid numeric initial value");
      break;
    case 'D':
      read_number(read_plain_u64(token, delta), "CLIENT_ERROR invalid numeric delta value");
      break;
    case 'M':
      mode = token.empty() ? ' ' : token[0];
      break;
    case 'O':
      opaque_too_long = flag.size() > kOpaqueMax;
      break;
    case 'v':
      value = true;
      break;
    case 'q':
      quiet = true;
      break;
    case 'u':
      no_bump = true;
      break;
    case 'I':
      invalidate = true;
      break;
    case 'x':
      drop_value = true;
      break;
    default:
      if (std::string("PLkstcflh").find(flag[0]) != std::string::npos) return true;
      error = "CLIENT_ERROR invalid flag";
      return false;
  }
  return true;
}

void Model::run_meta_get(const Words& words, Reply& reply) {
  const MetaLine line(words, 2);
  if (!line.error.empty()) return reply.add(line.error + "\r\n");
  Item* item = items_.find(line.key);
  const bool made = item == nullptr && line.vivifies;
  if (made) {
    Item stub;
    stub.key_was_base64 = line.base64 && !config_.as_1_6_18;
    stub.cas = line.sets_cas ? Cas{line.new_cas} : items_.next_cas();
    item = &items_.put(line.key, std::move(stub));
  }
  if (item == nullptr) {
    if (!line.quiet) line.answer("EN", reply);
    return;
  }
  show_meta_item(line, *item, made, reply);
  if (!line.no_bump) items_.note_use(*item);
}

void Model::show_meta_item(const MetaLine& line, Item& item, bool made, Reply& reply) {
  const std::string size = std::to_string(item.value.size());
  bool won = false;
  // Who names the CAS id of what is there has it already.
  const bool known = line.compares && line.value && compare(line.cas, item.cas) == CasOrder::kEqual;
  const bool shows_value = line.value && !known;
  reply.add(shows_value ? "VA " + size : "HD");
  for (const std::string& word : line.flags) {
    const char flag = word[0];
    const std::string lead = std::string(" ") + flag;
    if (flag == 'T') item.expiry = items_.expiry_of(line.exptime);
    if (flag == 'N' && made) {
      item.expiry = items_.expiry_of(line.vivify_exptime);
      won = true;
    }
    if (flag == 'R' && !made && !item.token_sent && item.expiry != 0 &&
        item.expiry < items_.expiry_of(line.recache)) {
      won = true;
    }
    if (flag == 's') reply.add(lead + size);
    if (flag == 't') reply.add(lead + std::to_string(items_.seconds_left(item)));
    if (flag == 'f') reply.add(lead + std::to_string(item.flags));
    if (flag == 'l') reply.add(lead + std::to_string(items_.now() - item.used_at));
    if (flag == 'h') reply.add(lead + (item.used_before ? "1" : "0"));
    if (flag == 'c') {
      reply.add(lead);
      reply.add_cas_text(item.cas);
    }
    line.show_common(flag, word, item.key_was_base64, reply);
  }
  if (item.token_sent) reply.add(" Z");
  if (item.stale) {
    reply.add(" X");
    if (!item.token_sent) won = true;
  }
  if (won) {
    reply.add(" W");
    item.token_sent = true;
  }
  reply.add("\r\n");
  if (shows_value) reply.add(item.value + "\r\n");
}

void Model::run_meta_delete(const Words& words, Reply& reply) {
  const MetaLine line(words, 2);
  if (!line.error.empty()) return reply.add(line.error + "\r\n");
  Item* item = items_.find(line.key);
  if (item == nullptr) return line.answer("NF", reply);
  if (line.compares && compare(line.cas, item->cas) != CasOrder::kEqual) {
    return line.answer("EX", reply);
  }
  if (!line.drop_value && !line.invalidate) {
    items_.remove(line.key);
  } else {
    if (line.drop_value) {
      item->value.clear();
      item->flags = line.client_flags;
      item->expiry = items_.expiry_of(line.exptime);
      item->stale = false;
      item->used_before = false;
      item->used_at = items_.now();
    }
    if (line.invalidate) item->stale = true;
    if (line.touches) item->expiry = items_.expiry_of(line.exptime);
    item->token_sent = false;
    if (line.sets_cas) {
      item->cas = Cas{line.new_cas};
    } else if (line.invalidate) {
      item->cas = items_.next_cas();
    }
  }
  if (!line.quiet) line.answer("HD", reply);
}

void Model::run_meta_count(const Words& words, Reply& reply) {
  const MetaLine line(words, 2);
  if (!line.error.empty()) return reply.add(line.error + "\r\n");
  CountCommand command;
  command.key = line.key;
  command.up = line.mode == 0 || line.mode == 'I' || line.mode == '+';
  command.delta = line.delta;
  command.compares = line.compares;
  command.cas = line.cas;
  command.sets_cas = line.sets_cas;
  command.new_cas = line.new_cas;
  command.vivifies = line.vivifies;
  command.initial = line.initial;
  command.key_was_base64 = line.base64;
  uint64_t number = 0;
  Item* item = nullptr;
  const CountOutcome outcome = count(command, number, &item);
  if (outcome == CountOutcome::kNotFound) return line.answer("NF", reply);
  if (outcome == CountOutcome::kExists) return line.answer("EX", reply);
  if (outcome == CountOutcome::kNotANumber) {
    return reply.add("CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
  }
  const std::string digits = std::to_string(number);
  Reply answer;
  answer.add(line.value ? "VA " + std::to_string(digits.size()) : "HD");
  for (const std::string& word : line.flags) {
    const char flag = word[0];
    if (flag == 'T') item->expiry = items_.expiry_of(line.exptime);
    if (flag == 'N' && outcome == CountOutcome::kMade) {
      item->expiry = items_.expiry_of(line.vivify_exptime);
    }
    if (flag == 't') answer.add(" t" + std::to_string(items_.seconds_left(*item)));
    if (flag == 'c') {
      answer.add(" c");
      answer.add_cas_text(item->cas);
    }
    line.show_common(flag, word, line.base64, answer);
  }
  answer.add("\r\n");
  if (line.value) answer.add(digits + "\r\n");
  const bool told = config_.as_1_6_18 && outcome == CountOutcome::kMade;
  if (!line.quiet || told) reply.add(answer);
}

// ms <key> <size> <flags>*
bool Model::take_meta_set(Session& session, size_t line_size, const Words& words, Reply& reply) {
  int32_t size = 0;
  const bool sized = words.size() > 2 && read_plain_i32(words[2], size) && size >= 0 &&
                     size <= INT32_MAX - 2 && are_flags(words, 3);
  if (!sized) {
    session.input.erase(0, line_size);
    reply.add(std::string(kBadLine) + "\r\n");
    return true;
  }
  MetaLine line(words, 3);
  const uint64_t body = static_cast<uint64_t>(size);
  if (line.error.empty() && too_large(line.key.size(), line.client_flags, body)) {
    line.error = "SERVER_ERROR object too large for cache";
    items_.remove(line.key);
  }
  if (!line.error.empty()) {
    session.input.erase(0, line_size);
    session.swallow = body + 2;
    reply.add(line.error + "\r\n");
    return true;
  }
  if (session.input.size() < line_size + body + 2) return false;
  std::string value = session.input.substr(line_size, body);
  const bool whole = session.input.compare(line_size + body, 2, "\r\n") == 0;
  session.input.erase(0, line_size + body + 2);
  if (whole) {
    run_meta_set(line, std::move(value), reply);
  } else {
    reply.add("CLIENT_ERROR bad data chunk\r\n");
  }
  return true;
}

void Model::run_meta_set(MetaLine& line, std::string value, Reply& reply) {
  using Mode = StoreCommand::Mode;
  StoreCommand command;
  command.mode = line.mode == 'E'   ? Mode::kAdd
                 : line.mode == 'A' ? Mode::kAppend
                 : line.mode == 'P' ? Mode::kPrepend
                 : line.mode == 'R' ? Mode::kReplace
                                    : Mode::kSet;
  command.key = line.key;
  command.value = std::move(value);
  command.flags = line.client_flags;
  command.exptime = line.exptime;
  command.compares = line.compares;
  command.cas = line.cas;
  command.sets_cas = line.sets_cas && line.new_cas != 0;
  command.new_cas = line.new_cas;
  command.vivifies = line.vivifies;
  command.vivify_exptime = line.vivify_exptime;
  command.allows_stale = line.invalidate;
  command.key_was_base64 = line.base64;
  Item* item = nullptr;
  const StoreOutcome outcome = store(command, &item);
  const bool stored = outcome == StoreOutcome::kStored;
  if (stored && line.quiet) return;
  const size_t size = stored ? item->value.size() : command.value.size();
  reply.add(stored                                ? "HD"
            : outcome == StoreOutcome::kNotStored ? "NS"
            : outcome == StoreOutcome::kExists    ? "EX"
                                                  : "NF");
  for (const std::string& word : line.flags) {
    const char flag = word[0];
    if (flag == 's') reply.add(" s" + std::to_string(size));
    if (flag == 'c' && stored) {
      reply.add(" c");
      reply.add_cas_text(item->cas);
    }
    if (flag == 'c' && !stored) reply.add(" c0");
    line.show_common(flag, word, line.base64, reply);
  }
  reply.add("\r\n");
}

}  // namespace warpcache::model
