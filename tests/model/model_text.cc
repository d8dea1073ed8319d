// SPDX-License-Identifier: Apache-2.0
//
// The classic text protocol, with the errors of memcached 1.6.45.
#include <algorithm>
#include <array>
#include <set>

#include "model/model.h"
#include "model/numbers.h"

namespace warpcache::model {

namespace {

constexpr char kBadFormat[] = "CLIENT_ERROR bad command line format\r\n";
constexpr char kObjectTooLarge[] = "SERVER_ERROR object too large for cache\r\n";
constexpr char kBadChunk[] = "CLIENT_ERROR bad data chunk\r\n";
constexpr size_t kWordsMax = 23;   // more are not looked at, but in a get
constexpr size_t kLineMax = 2049;  // a longer one is cut off, unless it is a get
constexpr size_t kLineMin = 3;     // a shorter one, LF left out, is malformed

using Words = std::vector<std::string>;

bool is_get(const std::string& word) {
  return word == "get" || word == "gets" || word == "gat" || word == "gats";
}

bool is_store(const std::string& word) {
  static const std::set<std::string> kStores = {"set",    "add",     "replace",
                                                "append", "prepend", "cas"};
  return kStores.contains(word);
}

// Commands whose replies are for people, or depend on more than the items.
bool is_beyond(const std::string& word) {
  static const std::set<std::string> kBeyond = {
      "stats",    "slabs", "lru",       "lru_crawler",   "watch",    "cache_memlimit",
      "shutdown", "me",    "debugtime", "refresh_certs", "extstore", "misbehave"};
  return kBeyond.contains(word);
}

bool noreply(const Words& words) { return !words.empty() && words.back() == "noreply"; }

void cut(Words& words) {
  if (words.size() > kWordsMax) words.resize(kWordsMax);
}

bool has_long_key(const Words& words, size_t first) {
  return std::any_of(words.begin() + static_cast<ptrdiff_t>(first), words.end(),
                     [](const std::string& word) { return word.size() > kKeyMax; });
}

StoreCommand::Mode mode_of(const std::string& word) {
  if (word == "add") return StoreCommand::Mode::kAdd;
  if (word == "replace") return StoreCommand::Mode::kReplace;
  if (word == "append") return StoreCommand::Mode::kAppend;
  if (word == "prepend") return StoreCommand::Mode::kPrepend;
  return StoreCommand::Mode::kSet;
}

const char* text_of(StoreOutcome outcome) {
  switch (outcome) {
    case StoreOutcome::kStored:
      return "STORED\r\n";
    case StoreOutcome::kNotStored:
      return "NOT_STORED\r\n";
    case StoreOutcome::kExists:
      return "EXISTS\r\n";
    default:
      return "NOT_FOUND\r\n";
  }
}

// Fills in a storage command but for its value; false: its line is wrong.
bool read_store_line(const Words& words, StoreCommand& command) {
  int32_t exptime = 0;
  command.mode = mode_of(words[0]);
  command.key = words[1];
  if (command.key.size() > kKeyMax || !read_u32(words[2], command.flags)) return false;
  if (!read_i32(words[3], exptime)) return false;
  command.exptime = exptime;
  command.compares = words[0] == "cas";
  return !command.compares || (words.size() > 5 && read_plain_u64(words[5], command.cas));
}

}  // namespace

bool Model::take_text(Session& session, Reply& reply) {
  const size_t newline = session.input.find('\n');
  const bool whole = newline != std::string::npos;
  if (!whole && session.input.size() < kLineMax) return false;
  std::string line = session.input.substr(0, whole ? newline : session.input.size());
  if (!line.empty() && line.back() == '\r') line.pop_back();
  Words words = line.empty() || line[0] == ' ' ? Words{} : split_words(line);
  const std::string first = words.empty() ? "" : words[0];
  if (!is_get(first)) cut(words);
  if (!whole || newline >= kLineMax) {
    if (is_get(first) && !whole) return false;
    session.input.erase(0, newline + 1);
    if (is_get(first)) {
      run_long_get(words, reply);
    } else {
      session.closed = true;
    }
    return true;
  }
  if (is_store(first)) return take_store(session, newline + 1, words, reply);
  if (first == "ms") return take_meta_set(session, newline + 1, words, reply);
  session.input.erase(0, newline + 1);
  run_line(session, line, newline < kLineMin, words, reply);
  return true;
}

// set <key> <flags> <exptime> <bytes> [<cas>] [noreply]
bool Model::take_store(Session& session, size_t line_size, const Words& words, Reply& reply) {
  int32_t size = 0;
  const bool sized =
      words.size() > 4 && read_plain_i32(words[4], size) && size >= 0 && size <= INT32_MAX - 2;
  StoreCommand command;
  Reply answer;
  bool bad_chunk = false;
  if (!sized) {
    session.input.erase(0, line_size);
    reply.add(kBadFormat);
    return true;
  }
  if (!read_store_line(words, command)) {
    session.input.erase(0, line_size);
    session.swallow = static_cast<uint64_t>(size) + 2;
    answer.add(kBadFormat);
  } else if (too_large(command.key.size(), command.flags, static_cast<uint64_t>(size))) {
    session.input.erase(0, line_size);
    session.swallow = static_cast<uint64_t>(size) + 2;
    answer.add(kObjectTooLarge);
    if (words[0] == "set") items_.remove(command.key);
  } else {
    const size_t body = static_cast<size_t>(size);
    if (session.input.size() < line_size + body + 2) return false;
    command.value = session.input.substr(line_size, body);
    bad_chunk = session.input.compare(line_size + body, 2, "\r\n") != 0;
    session.input.erase(0, line_size + body + 2);
    Item* item = nullptr;
    answer.add(bad_chunk ? kBadChunk : text_of(store(command, &item)));
  }
  if (noreply(words)) return true;
  for (const ReplyPiece& piece : answer.pieces()) reply.add(piece.bytes);
  return true;
}

void Model::run_line(Session& session, const std::string& line, bool too_short, const Words& words,
                     Reply& reply) {
  const std::string word = words.empty() ? "" : words[0];
  if (is_beyond(word)) {
    loss_ = "a command beyond the model";
  } else if (word == "get" || word == "gets" || word == "gat" || word == "gats") {
    run_get(words, reply);
  } else if (word == "delete") {
    run_delete(words, reply);
  } else if (word == "incr" || word == "decr") {
    run_count(words, reply);
  } else if (word == "touch") {
    run_touch(words, reply);
  } else if (word == "flush_all") {
    run_flush_all(words, reply);
  } else if (word == "verbosity") {
    run_verbosity(words, reply);
  } else if (word == "version") {
    reply.add("VERSION " + config_.version + "\r\n");
  } else if (word == "quit") {
    session.closed = true;
  } else if (word == "mg") {
    run_meta_get(words, reply);
  } else if (word == "md") {
    run_meta_delete(words, reply);
  } else if (word == "ma") {
    run_meta_count(words, reply);
  } else if (word == "mn") {
    reply.add(too_short ? kBadFormat : "MN\r\n");
  } else if (words.size() > 1 && words.back().starts_with("HTTP/")) {
    session.closed = true;
  } else {
    Words all = split_words(line);
    cut(all);
    if (noreply(all) && !config_.as_1_6_18) return;
    reply.add(too_short ? kBadFormat : "ERROR\r\n");
  }
}

// The value of a key, if there is one, as get shows it.
bool Model::show_key(const std::string& key, bool with_cas, const int64_t* exptime, Reply& reply) {
  Item* item = items_.find(key);
  if (item == nullptr) return false;
  items_.note_use(*item);
  if (exptime != nullptr) item->expiry = items_.expiry_of(*exptime);
  reply.add("VALUE " + key + " " + std::to_string(item->flags) + " " +
            std::to_string(item->value.size()));
  if (with_cas) {
    reply.add(" ");
    reply.add_cas_text(item->cas);
  }
  reply.add("\r\n" + item->value + "\r\n");
  return true;
}

void Model::run_get(const Words& words, Reply& reply) {
  const bool touches = words[0].starts_with("gat");
  const size_t first = touches ? 2 : 1;
  int32_t plain = 0;
  if (touches && words.size() > 2 && !read_plain_i32(words[1], plain)) {
    return reply.add("CLIENT_ERROR invalid exptime argument\r\n");
  }
  if (words.size() <= first || has_long_key(words, first)) {
    if (touches || !noreply(words)) reply.add(kBadFormat);
    return;
  }
  const int64_t exptime = plain;
  for (size_t i = first; i < words.size(); ++i) {
    show_key(words[i], words[0].ends_with("s"), touches ? &exptime : nullptr, reply);
  }
  reply.add("END\r\n");
}

// A get beyond the usual length of a line is answered key by key, up to one that is too long.
void Model::run_long_get(const Words& words, Reply& reply) {
  const bool touches = words[0].starts_with("gat");
  const size_t first = touches ? 2 : 1;
  int32_t plain = 0;
  if (words.size() <= first || (touches && !read_plain_i32(words[1], plain))) {
    loss_ = "a long get that is wrong";
    return;
  }
  const int64_t exptime = plain;
  for (size_t i = first; i < words.size(); ++i) {
    if (words[i].size() > kKeyMax) return reply.add(kBadFormat);
    show_key(words[i], words[0].ends_with("s"), touches ? &exptime : nullptr, reply);
  }
  reply.add("END\r\n");
}

void Model::run_delete(const Words& words, Reply& reply) {
  const bool quiet = noreply(words);
  std::string answer = kBadFormat;
  if (words.size() > 1 && words[1].size() <= kKeyMax) {
    answer = items_.find(words[1]) != nullptr ? "DELETED\r\n" : "NOT_FOUND\r\n";
    items_.remove(words[1]);
  }
  if (!quiet || words.size() < 2) reply.add(answer);
}

void Model::run_count(const Words& words, Reply& reply) {
  CountCommand command;
  command.up = words[0] == "incr";
  if (words.size() < 3) return reply.add(kBadFormat);
  std::string answer;
  if (words[1].size() > kKeyMax) {
    answer = kBadFormat;
  } else if (!read_plain_u64(words[2], command.delta)) {
    answer = "CLIENT_ERROR invalid numeric delta argument\r\n";
  } else {
    command.key = words[1];
    uint64_t number = 0;
    Item* item = nullptr;
    switch (count(command, number, &item)) {
      case CountOutcome::kNotFound:
        answer = "NOT_FOUND\r\n";
        break;
      case CountOutcome::kNotANumber:
        answer = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
        break;
      default:
        answer = std::to_string(number) + "\r\n";
        break;
    }
  }
  if (!noreply(words)) reply.add(answer);
}

void Model::run_touch(const Words& words, Reply& reply) {
  int32_t exptime = 0;
  if (words.size() < 3) return reply.add(kBadFormat);
  std::string answer = "NOT_FOUND\r\n";
  if (words[1].size() > kKeyMax) {
    answer = kBadFormat;
  } else if (!read_plain_i32(words[2], exptime)) {
    answer = "CLIENT_ERROR invalid exptime argument\r\n";
  } else if (Item* item = items_.find(words[1])) {
    items_.note_use(*item);
    item->expiry = items_.expiry_of(exptime);
    answer = "TOUCHED\r\n";
  }
  if (!noreply(words)) reply.add(answer);
}

void Model::run_flush_all(const Words& words, Reply& reply) {
  ++administrative_;
  int32_t delay = 0;
  const bool quiet = noreply(words);
  const bool bare = words.size() == (quiet ? 2u : 1u);
  const bool valid = bare || read_plain_i32(words[1], delay);
  if (valid) {
    if (delay > 60 * 60 * 24 * 30) loss_ = "a date for flush_all";
    items_.flush(std::max(delay, 0));
  }
  if (!quiet) reply.add(valid ? "OK\r\n" : "CLIENT_ERROR invalid exptime argument\r\n");
}

void Model::run_verbosity(const Words& words, Reply& reply) {
  ++administrative_;
  uint32_t level = 0;
  const bool valid = words.size() > 1 && read_plain_u32(words[1], level);
  if (!noreply(words)) reply.add(valid ? "OK\r\n" : kBadFormat);
}

}  // namespace warpcache::model
