// SPDX-License-Identifier: Apache-2.0
#include "workload/trace.h"

#include <algorithm>
#include <charconv>

#include "workload/sizes.h"

namespace warpcache::bench {
namespace {

constexpr uint32_t kNoSize = ~uint32_t{0};
constexpr size_t kEntriesMax = size_t{1} << 31;

std::string_view take_field(std::string_view* rest, char separator) {
  const size_t end = rest->find(separator);
  const std::string_view field = rest->substr(0, end);
  rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);
  return field;
}

bool read_size(std::string_view text, uint32_t* out) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *out);
  return error == std::errc() && stop == end && *out <= kValueSizeMax;
}

bool read_operation(std::string_view word, Operation* out) {
  if (word == "get" || word == "gets") {
    *out = Operation::kGet;
  } else if (word == "delete") {
    *out = Operation::kDelete;
  } else if (word == "set" || word == "add" || word == "replace" || word == "cas" ||
             word == "append" || word == "prepend" || word == "incr" || word == "decr") {
    *out = Operation::kSet;
  } else {
    return false;
  }
  return true;
}

bool is_key(std::string_view text) {
  return !text.empty() && text.size() <= kKeySizeMax &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c != 127; });
}

// The names of the columns time,key,size.
bool is_heading(std::string_view line) {
  return std::count(line.begin(), line.end(), ',') == 2 &&
         line.find_first_of("0123456789 ") == std::string_view::npos;
}

}  // namespace

bool Trace::read_words(std::string_view line, Line* out) {
  const std::string_view word = take_field(&line, ' ');
  if (word != "get" && word != "set" && word != "delete") return false;
  read_operation(word, &out->operation);
  out->key = take_field(&line, ' ');
  out->value_size = kNoSize;
  if (out->operation == Operation::kSet) return read_size(line, &out->value_size);
  return line.empty();
}

bool Trace::read_columns(std::string_view line, Line* out) {
  std::string_view fields[7];
  for (std::string_view& field : fields) field = take_field(&line, ',');
  out->key = fields[1];
  if (!read_size(fields[3], &out->value_size)) return false;
  if (out->value_size == 0) out->value_size = kNoSize;  // these traces mark a miss by 0
  return line.empty() && read_operation(fields[5], &out->operation);
}

bool Trace::read_accesses(std::string_view line, Line* out) {
  take_field(&line, ',');
  out->operation = Operation::kGet;
  out->key = take_field(&line, ',');
  uint64_t size = 0;
  const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), size);
  out->value_size = static_cast<uint32_t>(std::min<uint64_t>(size, kValueSizeMax));
  return error == std::errc() && stop == line.data() + line.size();
}

bool Trace::read_line(std::string_view line, Line* out) {
  if (line.find(' ') != std::string_view::npos) return read_words(line, out);
  switch (std::count(line.begin(), line.end(), ',')) {
    case 6:
      return read_columns(line, out);
    case 2:
      return read_accesses(line, out);
    default:
      return read_words(line, out);
  }
}

void Trace::add(const Line& line) {
  const auto [place, is_new] = ids_.try_emplace(std::string(line.key), keys());
  if (is_new) {
    keys_.push_back({bytes_.size(), static_cast<uint32_t>(line.key.size()), line.value_size});
    bytes_ += line.key;
  } else if (keys_[place->second].value_size == kNoSize) {
    keys_[place->second].value_size = line.value_size;
  }
  entries_.push_back({place->second, line.operation});
}

bool Trace::read(std::istream* in, uint32_t value_size_default, Trace* out, std::string* why) {
  *out = Trace();
  std::string text;
  uint64_t number = 0;
  while (std::getline(*in, text)) {
    ++number;
    if (!text.empty() && text.back() == '\r') text.pop_back();
    if (text.empty() || text[0] == '#') continue;
    if (number == 1 && is_heading(text)) continue;
    Line line = {};
    if (!read_line(text, &line) || !is_key(line.key)) {
      *why = "line " + std::to_string(number) + " is no request: " + text.substr(0, 100);
      return false;
    }
    if (out->entries_.size() == kEntriesMax) {
      *why = "it is too long";
      return false;
    }
    out->add(line);
  }
  out->ids_.clear();
  for (Key& key : out->keys_) {
    if (key.value_size == kNoSize) key.value_size = value_size_default;
  }
  if (out->entries_.empty()) *why = "it holds no requests";
  return !out->entries_.empty();
}

}  // namespace warpcache::bench
