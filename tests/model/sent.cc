// SPDX-License-Identifier: Apache-2.0
#include "model/sent.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "model/numbers.h"

namespace warpcache::model {

namespace {

using client::kBinaryHeaderSize;

constexpr size_t kKeySizeMax = 250;
constexpr size_t kLongValue = 8192;  // two of them make one that is too long for a number
constexpr int64_t kDelayMaxS = 2592000;

}  // namespace

bool read_header(const std::string& packet, client::BinaryHeader& header) {
  if (packet.size() < kBinaryHeaderSize) return false;
  header = client::read_header(packet);
  return header.magic == client::kBinaryRequest;
}

bool gets_long_key(const std::string& bytes) {
  size_t word = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    // A carriage return is a part of the key unless the line ends after it.
    const bool ends = bytes[at] == ' ' || bytes[at] == '\n' || bytes.compare(at, 2, "\r\n") == 0;
    word = ends ? 0 : word + 1;
    // What is left of a value of a wrong size may stand before the command.
    const std::string_view before = std::string_view(bytes).substr(0, at);
    const auto has = [before](std::string_view text) { return before.find(text) != before.npos; };
    if (word > kKeySizeMax && (has("get") || has("gat"))) return true;
  }
  return false;
}

std::set<std::string> named_keys(const std::string& bytes) {
  client::BinaryHeader header;
  if (read_header(bytes, header)) {
    const size_t key = std::min(kBinaryHeaderSize + header.extras_size, bytes.size());
    return {bytes.substr(key, header.key_size)};
  }
  std::set<std::string> keys;
  std::string text = bytes;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
  for (const std::string& word : split_words(text)) {
    keys.insert(word);
    std::string meant;
    if (read_base64(word, meant)) keys.insert(meant);
  }
  return keys;
}

void History::note_use(const std::string& bytes, int64_t now) {
  for (const std::string& key : named_keys(bytes)) used_[key] = now;
}

void History::note_extension(const std::string& bytes) {
  for (const std::string& key : named_keys(bytes)) {
    if (counted_.contains(key)) counted_and_extended_.insert(key);
  }
}

void History::note_flush(int64_t now, int64_t delay_s) {
  delayed_flush_after_flush_ = delayed_flush_after_flush_ || (flushed_ && delay_s > 0);
  flushed_ = true;
  if (delay_s > 0) {
    // A long one is a date.
    delayed_flushes_.insert(delay_s > kDelayMaxS ? delay_s : now + delay_s);
    return;
  }
  for (const auto& [key, at] : used_) {
    if (now - at <= slack_s_) flushed_after_use_.insert(key);
  }
}

bool History::last_second_of_delay(int64_t now) const {
  return std::any_of(delayed_flushes_.begin(), delayed_flushes_.end(), [this, now](int64_t at) {
    return now >= at - 1 - slack_s_ && now <= at - 1 + slack_s_;
  });
}

void History::add_packet(const client::BinaryHeader& header, const std::string& bytes,
                         int64_t now) {
  constexpr uint8_t kUse[] = {0x00, 0x02, 0x05, 0x06, 0x09, 0x0c, 0x0d,
                              0x12, 0x15, 0x16, 0x1d, 0x1e, 0x23, 0x24};
  constexpr uint8_t kFlush[] = {0x08, 0x18};
  constexpr uint8_t kCount[] = {0x05, 0x06, 0x15, 0x16};
  constexpr uint8_t kExtend[] = {0x0e, 0x0f, 0x19, 0x1a};
  const auto is_one_of = [&header](const auto& opcodes) {
    return std::find(std::begin(opcodes), std::end(opcodes), header.opcode) != std::end(opcodes);
  };
  if (is_one_of(kUse)) note_use(bytes, now);
  if (is_one_of(kExtend)) note_extension(bytes);
  if (is_one_of(kCount)) counted_.merge(named_keys(bytes));
  if (!is_one_of(kFlush)) return;
  const bool delayed = header.extras_size == 4 && bytes.size() >= kBinaryHeaderSize + 4;
  note_flush(now,
             delayed ? static_cast<int64_t>(client::big(bytes.substr(kBinaryHeaderSize, 4))) : 0);
}

void History::add_text(const std::string& bytes, int64_t now) {
  const auto contains = [&bytes](const char* text) {
    return bytes.find(text) != std::string::npos;
  };
  // A line that is cut off, or the block of a value of a wrong size, may hold another command.
  constexpr const char* kUse[] = {"add ",  "get", "gat", "mg ", "incr ",
                                  "decr ", "ma ", " ME", " Me"};
  if (std::any_of(std::begin(kUse), std::end(kUse), contains)) note_use(bytes, now);
  constexpr const char* kExtend[] = {"append ", "prepend ", " MA", " Ma", " MP", " Mp"};
  if (std::any_of(std::begin(kExtend), std::end(kExtend), contains)) note_extension(bytes);
  if (contains("incr ") || contains("decr ") || contains("ma ")) counted_.merge(named_keys(bytes));
  if (contains("ma ") && (contains(" T") || contains(" E")))
    counted_with_time_.merge(named_keys(bytes));
  if (bytes.starts_with("gat") && gets_long_key(bytes))
    touched_by_refused_gat_.merge(named_keys(bytes));
  const size_t flush = bytes.find("flush_all");
  if (flush == std::string::npos) return;
  const std::vector<std::string> words =
      split_words(bytes.substr(flush, bytes.find_first_of("\r\n", flush) - flush));
  int32_t delay_s = 0;
  if (words.size() > 1) (void)read_i32(words[1], delay_s);
  note_flush(now, delay_s);
}

void History::add(const std::string& bytes, int64_t now) {
  long_value_ = long_value_ || bytes.size() > kLongValue;
  client::BinaryHeader header;
  if (read_header(bytes, header)) return add_packet(header, bytes, now);
  add_text(bytes, now);
}

}  // namespace warpcache::model
