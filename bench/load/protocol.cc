// SPDX-License-Identifier: Apache-2.0
#include "load/protocol.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "workload/sizes.h"

namespace warpcache::load {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr size_t kWordsMax = 64;  // bytes of a request without key and value
constexpr size_t kNumberMax = 10;
constexpr size_t kShownMax = 200;  // bytes of a reply that a message shows

char* put(char* out, std::string_view text) {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

char* put_number(char* out, uint32_t number) {
  return std::to_chars(out, out + kNumberMax, number).ptr;
}

// The first line of `in` without its end, and where the next one starts. False: it is incomplete.
bool see_line(std::string_view in, std::string_view* line, size_t* next) {
  const size_t end = in.find('\n');
  if (end == std::string_view::npos) return false;
  *line = in.substr(0, end > 0 && in[end - 1] == '\r' ? end - 1 : end);
  *next = end + 1;
  return true;
}

// Reads a number, and the blank after it if there is one.
bool take_number(std::string_view* words, uint32_t* out) {
  const auto [stop, error] = std::from_chars(words->data(), words->data() + words->size(), *out);
  if (error != std::errc()) return false;
  words->remove_prefix(static_cast<size_t>(stop - words->data()));
  if (words->empty()) return true;
  if (words->front() != ' ') return false;
  words->remove_prefix(1);
  return true;
}

bool take_word(std::string_view* words, std::string_view word) {
  if (!words->starts_with(word)) return false;
  words->remove_prefix(word.size());
  return true;
}

// Whether it is an error line after which the next reply can be read.
bool is_refusal(std::string_view line) {
  return line == "ERROR" || line.starts_with("SERVER_ERROR") || line.starts_with("CLIENT_ERROR");
}

void refuse(std::string_view line, Findings* findings) {
  ++findings->refused;
  if (findings->first_refusal.empty()) findings->first_refusal = line.substr(0, kShownMax);
}

Progress out_of_step(std::string_view line, Findings* findings) {
  refuse(line, findings);
  return Progress::kOutOfStep;
}

}  // namespace

size_t Codec::bytes_max(Operation operation, uint32_t count) const {
  const size_t value = operation == Operation::kSet ? keys_.value_size_max() : 0;
  return kWordsMax + value + count * (kWordsMax + bench::kKeySizeMax);
}

char* Codec::write_set(uint32_t id, uint32_t version, char* out) const {
  out = put(out, meta_ ? "ms " : "set ");
  out += keys_.write_key(id, out);
  const uint32_t size = keys_.value_size(id);
  if (meta_) {
    *out++ = ' ';
    out = put_number(out, size);
    out = put(out, " F");
    out = put_number(out, keys_.flags(id, version));
    if (expiry_s_ != 0) out = put_number(put(out, " T"), expiry_s_);
  } else {
    *out++ = ' ';
    out = put_number(out, keys_.flags(id, version));
    *out++ = ' ';
    out = put_number(out, expiry_s_);
    *out++ = ' ';
    out = put_number(out, size);
  }
  out = put(out, kLineEnd);
  keys_.write_value(id, version, out);
  return put(out + size, kLineEnd);
}

// A multiget is a quiet get for each key, with its place as the opaque, and a no-op after them.
char* Codec::write_meta_gets(const Pending& pending, char* out) const {
  for (uint32_t i = 0; i < pending.count; ++i) {
    out = put(out, "mg ");
    out += keys_.write_key(pending.ids[i], out);
    if (pending.count == 1) return put(out, " f v\r\n");
    out = put_number(put(out, " f q v O"), i);
    out = put(out, kLineEnd);
  }
  return put(out, "mn\r\n");
}

char* Codec::write(const Pending& pending, uint32_t version, char* out) const {
  if (pending.operation == Operation::kSet) return write_set(pending.ids[0], version, out);
  if (pending.operation == Operation::kGet) {
    if (meta_) return write_meta_gets(pending, out);
    out = put(out, "get");
    for (uint32_t i = 0; i < pending.count; ++i) {
      *out++ = ' ';
      out += keys_.write_key(pending.ids[i], out);
    }
  } else {
    out = put(out, meta_ ? "md " : "delete ");
    out += keys_.write_key(pending.ids[0], out);
  }
  return put(out, kLineEnd);
}

Progress Codec::read(Pending* pending, std::string_view* in, Findings* findings) const {
  if (pending->operation != Operation::kGet) return read_change(*pending, in, findings);
  return meta_ ? read_meta_get(pending, in, findings) : read_text_get(pending, in, findings);
}

void Codec::miss_up_to(uint32_t end, Pending* pending, Findings* findings) const {
  for (; pending->next < end; ++pending->next) {
    ++findings->misses;
    if (findings->keep_missed) findings->missed.push_back(pending->ids[pending->next]);
  }
}

void Codec::check_value(const Pending& pending, const Head& head, std::string_view value,
                        Findings* findings) const {
  const bool asked_for = head.place < pending.count;
  const uint32_t id = asked_for ? pending.ids[head.place] : 0;
  if (asked_for && (!verify_ || keys_.value_is(id, head.flags, value))) {
    ++findings->hits;
    return;
  }
  ++findings->wrong;
  if (!findings->first_wrong.empty()) return;
  if (!asked_for) {
    findings->first_wrong = "a value of a key that was not asked for: " + std::string(head.key);
    return;
  }
  char key[bench::kKeySizeMax];
  findings->first_wrong = "key " + std::string(key, keys_.write_key(id, key)) + ": flags " +
                          std::to_string(head.flags) + " and " + std::to_string(value.size()) +
                          " bytes are no version of its " + std::to_string(keys_.value_size(id)) +
                          " bytes";
}

// Reads the value at `begin` and its line end. `head` comes from the line before it.
Progress Codec::read_value(const Head& head, size_t begin, Pending* pending, std::string_view* in,
                           Findings* findings) const {
  if (head.size > bench::kValueSizeMax) return Progress::kOutOfStep;
  const size_t end = begin + head.size + kLineEnd.size();
  if (in->size() < end) return Progress::kAwaited;
  if (in->substr(begin + head.size, kLineEnd.size()) != kLineEnd) return Progress::kOutOfStep;
  if (head.place < pending->count) miss_up_to(head.place, pending, findings);
  check_value(*pending, head, in->substr(begin, head.size), findings);
  if (head.place < pending->count) pending->next = head.place + 1;
  in->remove_prefix(end);
  return Progress::kDone;
}

// Reads "VALUE key flags size". Values come in the order of the keys; missing keys are skipped.
bool Codec::read_text_head(std::string_view line, const Pending& pending, Head* head) const {
  constexpr std::string_view kValue = "VALUE ";
  if (!line.starts_with(kValue)) return false;
  line.remove_prefix(kValue.size());
  head->key = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), head->key.size() + 1));
  head->place = pending.next;
  while (head->place < pending.count && !keys_.key_is(pending.ids[head->place], head->key)) {
    ++head->place;
  }
  return take_number(&line, &head->flags) && take_number(&line, &head->size);
}

Progress Codec::read_text_get(Pending* pending, std::string_view* in, Findings* findings) const {
  std::string_view line;
  size_t next = 0;
  while (see_line(*in, &line, &next)) {
    Head head = {};
    if (line == "END" || is_refusal(line)) {
      if (line == "END") {
        miss_up_to(pending->count, pending, findings);
      } else {
        refuse(line, findings);
      }
      in->remove_prefix(next);
      return Progress::kDone;
    }
    if (!read_text_head(line, *pending, &head)) return out_of_step(line, findings);
    const Progress progress = read_value(head, next, pending, in, findings);
    if (progress == Progress::kOutOfStep) return out_of_step(line, findings);
    if (progress == Progress::kAwaited) return progress;
  }
  return Progress::kAwaited;
}

// Reads "VA size f<flags> O<place>", "EN" for a miss of a single get, "MN" after the last of
// several.
Progress Codec::read_meta_get(Pending* pending, std::string_view* in, Findings* findings) const {
  std::string_view line;
  size_t next = 0;
  while (see_line(*in, &line, &next)) {
    const bool single = pending->count == 1;
    if (line == (single ? "EN" : "MN")) {
      miss_up_to(pending->count, pending, findings);
      in->remove_prefix(next);
      return Progress::kDone;
    }
    if (is_refusal(line)) {
      refuse(line, findings);
      in->remove_prefix(next);
      if (single) return Progress::kDone;
      continue;
    }
    std::string_view words = line;
    Head head = {};
    if (!take_word(&words, "VA ") || !take_number(&words, &head.size) || !take_word(&words, "f") ||
        !take_number(&words, &head.flags)) {
      return out_of_step(line, findings);
    }
    if (!single && (!take_word(&words, "O") || !take_number(&words, &head.place))) {
      return out_of_step(line, findings);
    }
    if (head.place < pending->next) head.place = pending->count;  // this key was answered before
    const Progress progress = read_value(head, next, pending, in, findings);
    if (progress == Progress::kOutOfStep) return out_of_step(line, findings);
    if (progress == Progress::kAwaited) return progress;
    if (single) return Progress::kDone;
  }
  return Progress::kAwaited;
}

// Reads the one line that answers a set or a delete.
Progress Codec::read_change(const Pending& pending, std::string_view* in,
                            Findings* findings) const {
  std::string_view line;
  size_t next = 0;
  if (!see_line(*in, &line, &next)) return Progress::kAwaited;
  const bool is_set = pending.operation == Operation::kSet;
  const bool done =
      meta_ ? line == "HD" || (!is_set && line == "NF")
            : line == (is_set ? "STORED" : "DELETED") || (!is_set && line == "NOT_FOUND");
  if (is_set && line == "SERVER_ERROR out of memory storing object") {
    ++findings->out_of_memory;
  } else if (is_refusal(line)) {
    refuse(line, findings);
  } else if (!done) {
    return out_of_step(line, findings);
  }
  in->remove_prefix(next);
  return Progress::kDone;
}

}  // namespace warpcache::load
