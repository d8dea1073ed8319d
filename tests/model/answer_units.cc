// SPDX-License-Identifier: Apache-2.0
#include "model/answer_units.h"

#include <algorithm>

#include "client/codec/binary.h"
#include "client/codec/words.h"
#include "model/numbers.h"

namespace warpcache::model {

namespace {

constexpr uint8_t kStatOpcode = 0x10;
constexpr uint8_t kVersionOpcode = 0x0b;

// What stands after `prefix` is a number: it is put away, and `place` shown instead.
bool replace_number(std::string& word, std::string_view prefix, std::string_view place,
                    std::vector<uint64_t>* numbers) {
  uint64_t number = 0;
  if (!word.starts_with(prefix)) return false;
  if (!client::read_number(std::string_view(word).substr(prefix.size()), &number)) return false;
  if (numbers != nullptr) numbers->push_back(number);
  word = std::string(prefix) + std::string(place);
  return true;
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

// Takes `size` bytes, or what is there.
std::string_view take(std::string_view& left, size_t size) {
  const std::string_view taken = left.substr(0, std::min(size, left.size()));
  left.remove_prefix(taken.size());
  return taken;
}

std::string_view take_line(std::string_view& left) {
  const size_t end = left.find('\n');
  return take(left, end == std::string_view::npos ? left.size() : end + 1);
}

// Bytes of the value that follows a line, and its end; 0: none. `line` is without its end.
size_t value_size(std::string_view line) {
  const client::ReplyCode code = client::code_of(line);
  if (code != client::ReplyCode::kValue && code != client::ReplyCode::kMetaValue) return 0;
  client::ValueHead head;
  return client::read_value_head(code, line, &head) ? head.size + client::kLineEnd.size() : 0;
}

void hide_own(std::vector<std::string>& words, AnswerUnit& unit) {
  if (words[0] == "VALUE" && words.size() == 5) {
    replace_number(words[4], "", "<cas>", &unit.cas);
  } else if (words[0] == "VERSION") {
    words.assign({"VERSION", "<own>"});
  } else if (words[0] == "ME") {
    for (std::string& word : words) {
      replace_number(word, "cas=", "<cas>", &unit.cas);
      replace_number(word, "size=", "<own>", nullptr);
      replace_number(word, "cls=", "<own>", nullptr);
    }
  } else if (words[0].size() == 2) {
    for (size_t i = 1; i < words.size(); ++i) replace_number(words[i], "c", "<cas>", &unit.cas);
  }
}

// All lines of a statistic up to END.
AnswerUnit take_statistic(std::string_view& left) {
  AnswerUnit unit;
  unit.shown = "STAT <own>";
  while (left.starts_with("STAT ")) {
    const std::vector<std::string> words = split_words(std::string(take_line(left)));
    unit.names.push_back(words.size() > 1 ? words[1] : "");
  }
  return unit;
}

}  // namespace

std::vector<AnswerUnit> split_text_answers(std::string_view output) {
  std::vector<AnswerUnit> units;
  while (!output.empty()) {
    if (output.starts_with("STAT ")) {
      units.push_back(take_statistic(output));
      continue;
    }
    const std::string line(take_line(output));
    const size_t end = line.find_last_not_of("\r\n") + 1;
    std::vector<std::string> words = split_words(line.substr(0, end));
    AnswerUnit unit;
    unit.shown = line;
    if (!words.empty()) {
      const size_t size = value_size(std::string_view(line).substr(0, end));
      hide_own(words, unit);
      // Only what is hidden changes a line: blanks count.
      if (!unit.cas.empty() || words.back().ends_with("<own>")) {
        unit.shown = joined(words) + line.substr(end);
      }
      unit.shown += take(output, size);
    }
    units.push_back(std::move(unit));
  }
  return units;
}

std::vector<AnswerUnit> split_binary_answers(std::string_view output) {
  std::vector<AnswerUnit> units;
  while (!output.empty()) {
    AnswerUnit unit;
    if (output.size() < client::kBinaryHeaderSize) {
      unit.shown = output;
      output = {};
    } else {
      const std::string_view bytes = take(output, client::kBinaryHeaderSize);
      const client::BinaryHeader header = client::read_header(bytes);
      const std::string_view body = take(output, header.body_size);
      const bool is_ok = header.status == client::kBinaryOk;
      unit.cas.push_back(header.cas);
      if (header.opcode == kStatOpcode && is_ok && header.key_size != 0) {
        unit.names.emplace_back(body.substr(0, header.key_size));
        unit.shown = "STAT <own>";
        if (!units.empty() && !units.back().names.empty()) {
          units.back().names.push_back(unit.names[0]);
          continue;
        }
      } else {
        unit.shown = std::string(bytes.substr(0, 16)) + "<cas>" + std::string(body);
        if (header.opcode == kVersionOpcode && is_ok) unit.shown = "VERSION <own>";
      }
    }
    units.push_back(std::move(unit));
  }
  return units;
}

bool CasPairs::learn(uint64_t ours, uint64_t theirs) {
  if (ours == theirs) return true;
  if (ours == 0 || theirs == 0) return false;
  const auto [known_theirs, first] = theirs_of_ours_.emplace(ours, theirs);
  const auto [known_ours, second] = ours_of_theirs_.emplace(theirs, ours);
  return known_theirs->second == theirs && known_ours->second == ours;
}

bool CasPairs::same(const AnswerUnit& ours, const AnswerUnit& theirs) {
  return ours.shown == theirs.shown && ours.names == theirs.names && same_cas(ours, theirs);
}

bool CasPairs::same_cas(const AnswerUnit& ours, const AnswerUnit& theirs) {
  return std::equal(ours.cas.begin(), ours.cas.end(), theirs.cas.begin(), theirs.cas.end(),
                    [this](uint64_t left, uint64_t right) { return learn(left, right); });
}

}  // namespace warpcache::model
