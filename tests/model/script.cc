// SPDX-License-Identifier: Apache-2.0
#include "model/script.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>

namespace warpcache::model {

namespace {

constexpr size_t kRunMin = 24;          // bytes of a run that is worth a {x*n}
constexpr size_t kShownMax = 400;       // bytes of a reply that is shown whole
constexpr size_t kValueMax = 4u << 20;  // of a {x*n}

bool read_number(std::string_view text, uint64_t& number) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

std::string escape_byte(unsigned char byte) {
  if (byte == '\r') return "\\r";
  if (byte == '\n') return "\\n";
  if (byte == '\\') return "\\\\";
  if (byte > ' ' - 1 && byte < 127 && byte != '{' && byte != '}') {
    return std::string(1, static_cast<char>(byte));
  }
  constexpr char kDigits[] = "0123456789abcdef";
  return {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Takes one byte, escaped or not, off the front.
char take_byte(std::string_view& text) {
  const char c = text[0];
  text.remove_prefix(1);
  if (c != '\\' || text.empty()) return c;
  const char kind = text[0];
  text.remove_prefix(1);
  if (kind == 'r') return '\r';
  if (kind == 'n') return '\n';
  if (kind != 'x' || text.size() < 2) return kind;
  const int byte = hex_digit(text[0]) * 16 + hex_digit(text[1]);
  text.remove_prefix(2);
  return static_cast<char>(byte);
}

std::string unescape(std::string_view text) {
  std::string bytes;
  while (!text.empty()) bytes += take_byte(text);
  return bytes;
}

// "key", "key+2" or "key-2".
std::string fill_cas(std::string_view text, bool binary, const Surroundings& surroundings) {
  int64_t offset = 0;
  const size_t sign = text.find_last_of("+-");
  uint64_t distance = 0;
  if (sign != std::string_view::npos && read_number(text.substr(sign + 1), distance)) {
    offset = static_cast<int64_t>(text[sign] == '-' ? -distance : distance);
    text = text.substr(0, sign);
  }
  const uint64_t cas = surroundings.cas_of(unescape(text)) + static_cast<uint64_t>(offset);
  if (!binary) {
    const std::string digits = std::to_string(cas);
    return std::string(surroundings.cas_digits - std::min(surroundings.cas_digits, digits.size()),
                       '0') +
           digits;
  }
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(cas >> shift & 0xff);
  return bytes;
}

std::string fill(std::string_view what, const Surroundings& surroundings) {
  uint64_t count = 0;
  if (what.starts_with("cas:")) return fill_cas(what.substr(4), false, surroundings);
  if (what.starts_with("cas8:")) return fill_cas(what.substr(5), true, surroundings);
  if (what.starts_with("now+") && read_number(what.substr(4), count)) {
    return std::to_string(surroundings.unix_time + static_cast<int64_t>(count));
  }
  const size_t star = what.rfind('*');
  if (star == std::string_view::npos || !read_number(what.substr(star + 1), count)) return {};
  const size_t size = std::min<size_t>(count, kValueMax);
  uint64_t seed = 0;
  if (what.starts_with("val:") && read_number(what.substr(4, star - 4), seed)) {
    return pattern_value(static_cast<uint32_t>(seed), size);
  }
  std::string_view byte = what.substr(0, star);
  return byte.empty() ? std::string() : std::string(size, take_byte(byte));
}

}  // namespace

// Byte i is letter (i * 7 + (i >> 8) * 13 + (i >> 16) * 5 + seed * 3) % 26: within 256 bytes a
// piece of the same sequence, so it is copied.
std::string pattern_value(uint32_t seed, size_t size) {
  constexpr size_t kPiece = 256;
  static const std::string kSequence = [] {
    std::string letters;
    for (size_t i = 0; i < kPiece + 26; ++i) letters += static_cast<char>('a' + i * 7 % 26);
    return letters;
  }();
  std::string value;
  value.reserve(size);
  for (size_t i = 0; i < size; i += kPiece) {
    const size_t letter = (i * 7 + (i >> 8) * 13 + (i >> 16) * 5 + seed * 3) % 26;
    const size_t begin = letter * 15 % 26;  // 15 * 7 is 1 modulo 26
    value.append(kSequence, begin, std::min(kPiece, size - i));
  }
  return value;
}

std::string render(std::string_view text, const Surroundings& surroundings) {
  std::string bytes;
  while (!text.empty()) {
    if (text[0] != '{') {
      bytes += take_byte(text);
      continue;
    }
    const size_t end = text.find('}');
    if (end == std::string_view::npos) break;
    bytes += fill(text.substr(1, end - 1), surroundings);
    text.remove_prefix(end + 1);
  }
  return bytes;
}

std::string escape(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size();) {
    const size_t end = std::min(bytes.find_first_not_of(bytes[i], i), bytes.size());
    const std::string byte = escape_byte(static_cast<unsigned char>(bytes[i]));
    if (end - i >= kRunMin) {
      text += "{" + byte + "*" + std::to_string(end - i) + "}";
      i = end;
    } else {
      text += byte;
      ++i;
    }
  }
  return text;
}

std::string digest(std::string_view bytes) {
  if (bytes.size() <= kShownMax) return escape(bytes);
  uint32_t sum = 1;
  for (const char c : bytes) sum = sum * 16777619u ^ static_cast<unsigned char>(c);
  char text[80];
  std::snprintf(text, sizeof text, "...%zu bytes, sum %08x...", bytes.size(), sum);
  return escape(bytes.substr(0, 80)) + text + escape(bytes.substr(bytes.size() - 80));
}

namespace {

// One line of a script.
bool read_line(std::string_view line, uint32_t round, Script& script) {
  uint64_t number = 0;
  if (line.starts_with("item_size_max: "))
    return read_number(line.substr(15), script.item_size_max);
  if (line.starts_with("cuts: ")) return read_number(line.substr(6), script.cuts);
  Step step;
  step.round = round;
  if (line.starts_with("clock ")) {
    if (!read_number(line.substr(6), number)) return false;
    step.stream = kClock;
    step.seconds = static_cast<uint32_t>(number);
    script.steps.push_back(step);
    return true;
  }
  const size_t sign = line.find_first_of("<>");
  if (sign == std::string_view::npos) return false;
  if (line.substr(0, sign) == "udp") {
    step.stream = kDatagram;
  } else {
    if (!read_number(line.substr(0, sign), number) || number > 1000) return false;
    step.stream = static_cast<int>(number);
  }
  step.answer = line[sign] == '<';
  line.remove_prefix(sign + 1);
  if (line.starts_with(" ")) line.remove_prefix(1);
  step.text = line;
  script.steps.push_back(std::move(step));
  return true;
}

}  // namespace

bool read_script(std::string_view text, Script& script, std::string& error) {
  script = Script{};
  uint32_t round = 0;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with("#")) continue;
    if (line.empty()) {
      ++round;
    } else if (!read_line(line, round, script)) {
      error = "line " + std::to_string(number) + ": " + std::string(line);
      return false;
    }
  }
  return true;
}

std::string write_script(const Script& script) {
  std::string text;
  if (script.item_size_max != Script{}.item_size_max) {
    text += "item_size_max: " + std::to_string(script.item_size_max) + "\n";
  }
  if (script.cuts != 0) text += "cuts: " + std::to_string(script.cuts) + "\n";
  for (size_t i = 0; i < script.steps.size(); ++i) {
    const Step& step = script.steps[i];
    if (i > 0 && script.steps[i - 1].round != step.round) text += "\n";
    if (step.stream == kClock) {
      text += "clock " + std::to_string(step.seconds) + "\n";
      continue;
    }
    text += step.stream == kDatagram ? "udp" : std::to_string(step.stream);
    text += (step.answer ? "< " : "> ") + step.text + "\n";
  }
  return text;
}

}  // namespace warpcache::model
