// SPDX-License-Identifier: Apache-2.0
#include "tcp_dialogue.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace warpcache::rtl {

namespace {

constexpr size_t kPayloadMax = 3900;  // bytes; the core takes UDP datagrams of up to 4000
constexpr size_t kLineMax = 65536;    // bytes of a get line
// Six values of 1536 bytes with their keys fit into the 8 datagrams of a reply.
constexpr size_t kKeysMax = 6;
constexpr size_t kBinaryHeader = 24;
constexpr uint8_t kBinaryMagic = 0x80;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    const size_t end = std::min(line.find(' ', begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
  return words;
}

// Whether a body follows a line with this size: as the core sees it.
bool parse_body_size(std::string_view word, uint64_t& size) {
  constexpr uint64_t kBodyMax = 0x7ffffffd;
  constexpr size_t kDigitsMax = 10;
  const auto result = std::from_chars(word.data(), word.data() + word.size(), size);
  return result.ec == std::errc() && result.ptr == word.data() + word.size() &&
         word.size() <= kDigitsMax && size <= kBodyMax;
}

bool is_storage(std::string_view name) {
  return name == "set" || name == "add" || name == "replace" || name == "append" ||
         name == "prepend" || name == "cas";
}

bool is_get(std::string_view name) {
  return name == "get" || name == "gets" || name == "gat" || name == "gats";
}

uint32_t big32(std::string_view bytes, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<uint8_t>(bytes[at + i]);
  return number;
}

// "Too large.", for the request with this header.
std::string binary_too_large(std::string_view header) {
  const std::string text = "Too large.";
  std::string reply(kBinaryHeader, '\0');
  reply[0] = '\x81';
  reply[1] = header[1];
  reply[7] = 3;
  reply[11] = static_cast<char>(text.size());
  reply.replace(12, 4, header.substr(12, 4));
  return reply + text;
}

}  // namespace

std::vector<Step> TcpDialogue::take(size_t steps_max) {
  std::vector<Step> steps;
  while (!closed_ && steps.size() < steps_max) {
    const auto skipped = static_cast<size_t>(std::min<uint64_t>(skip_, in_.size() - at_));
    at_ += skipped;
    skip_ -= skipped;
    if (at_ == in_.size()) break;
    const bool binary = static_cast<uint8_t>(in_[at_]) == kBinaryMagic;
    if (!(binary ? take_binary(steps) : take_text(steps))) break;
  }
  in_.erase(0, at_);
  at_ = 0;
  return steps;
}

void TcpDialogue::forward(size_t bytes, std::vector<Step>& steps) {
  steps.push_back({in_.substr(at_, bytes)});
  at_ += bytes;
}

void TcpDialogue::refuse(size_t bytes, std::string answer, std::vector<Step>& steps) {
  skip_ = bytes;
  if (!answer.empty()) steps.push_back({std::move(answer), false});
}

bool TcpDialogue::take_binary(std::vector<Step>& steps) {
  constexpr uint8_t kQuit = 0x07;
  constexpr uint8_t kQuitQuiet = 0x17;
  const std::string_view rest = std::string_view(in_).substr(at_);
  if (rest.size() < kBinaryHeader) return false;
  const size_t size = kBinaryHeader + size_t{big32(rest, 8)};
  if (size > kPayloadMax) {
    refuse(size, binary_too_large(rest), steps);
    return true;
  }
  if (rest.size() < size) return false;
  const auto opcode = static_cast<uint8_t>(rest[1]);
  closed_ = opcode == kQuit || opcode == kQuitQuiet;
  forward(size, steps);
  return true;
}

bool TcpDialogue::take_text(std::vector<Step>& steps) {
  const std::string_view rest = std::string_view(in_).substr(at_);
  const size_t end = rest.find('\n');
  if (std::min(end, rest.size()) > kLineMax) {
    closed_ = true;
    steps.push_back({"CLIENT_ERROR line too long\r\n", false});
    return false;
  }
  if (end == std::string_view::npos) return false;
  const size_t line = end + 1;
  std::string_view text = rest.substr(0, end);
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  const std::vector<std::string_view> words = words_of(text);
  const std::string_view name = words.empty() || text[0] == ' ' ? "" : words[0];
  if (is_storage(name)) return take_storage(words, line, steps);
  const size_t keys_from = name == "gat" || name == "gats" ? 2 : 1;
  if (is_get(name) && words.size() > keys_from + kKeysMax) {
    take_get(words, steps);
    at_ += line;
  } else if (line > kPayloadMax) {
    refuse(line, "CLIENT_ERROR line too long\r\n", steps);
  } else {
    closed_ = name == "quit";
    forward(line, steps);
  }
  return true;
}

bool TcpDialogue::take_storage(const std::vector<std::string_view>& words, size_t line,
                               std::vector<Step>& steps) {
  constexpr size_t kSizeWord = 4;
  uint64_t size = 0;
  size_t request = line;
  if (words.size() > kSizeWord && parse_body_size(words[kSizeWord], size)) {
    request += static_cast<size_t>(size) + 2;
  }
  if (request > kPayloadMax) {
    const bool quiet = words.back() == "noreply";
    refuse(request, quiet ? "" : "SERVER_ERROR object too large for cache\r\n", steps);
    return true;
  }
  if (in_.size() - at_ < request) return false;
  forward(request, steps);
  return true;
}

void TcpDialogue::take_get(const std::vector<std::string_view>& words, std::vector<Step>& steps) {
  std::string head(words[0]);
  size_t key = 1;
  if (words[0] == "gat" || words[0] == "gats") head += " " + std::string(words[key++]);
  while (key < words.size()) {
    Step step{head};
    for (size_t i = 0; i < kKeysMax && key < words.size(); ++i) {
      // The core reads no more than this of a key that is too long.
      constexpr size_t kKeyBytesMax = 300;
      step.bytes += " " + std::string(words[key++].substr(0, kKeyBytesMax));
    }
    step.bytes += "\r\n";
    step.more = key < words.size();
    steps.push_back(std::move(step));
  }
}

void answer_steps(const std::vector<Step>& steps, std::vector<std::string> replies,
                  std::string& output) {
  constexpr std::string_view kEnd = "END\r\n";
  size_t number = 0;
  bool failed = false;  // a part of this get: what follows of it is not answered
  for (const Step& step : steps) {
    if (!step.to_core) {
      output += step.bytes;
      continue;
    }
    std::string& reply = replies[number++];
    const bool ignored = failed;
    if (step.more && !failed) {
      if (reply.ends_with(kEnd)) {
        reply.resize(reply.size() - kEnd.size());
      } else {
        failed = true;
      }
    }
    if (!step.more) failed = false;
    if (!ignored) output += reply;
  }
}

}  // namespace warpcache::rtl
