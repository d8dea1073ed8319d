// SPDX-License-Identifier: Apache-2.0
//
// Administrative lines of the text protocol that have no operation of their own. What steers parts
// of memcached that do not exist here (slab classes, LRU lists) is accepted where scripts send it
// as a matter of routine, and has no effect.
#include <algorithm>
#include <optional>

#include "base/base64.h"
#include "control/option_values.h"
#include "server/admin.h"
#include "wire/admin_reply.h"

namespace warpcache::server {
namespace {

constexpr std::string_view kOk = "OK\r\n";
constexpr std::string_view kError = "ERROR\r\n";

std::string_view next_word(std::string_view& words) {
  const size_t begin = words.find_first_not_of(' ');
  if (begin == std::string_view::npos) return words = {};
  words.remove_prefix(begin);
  const size_t end = std::min(words.find(' '), words.size());
  const std::string_view word = words.substr(0, end);
  words.remove_prefix(end);
  return word;
}

// The request that reads `key`, which is encoded where it could not stand in a line.
std::string meta_get_line(std::string_view key) {
  const bool plain = std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 127; });
  if (plain) return "mg " + std::string(key) + "\r\n";
  uint8_t encoded[4 * ((wire::kKeySizeMax + 2) / 3)];
  uint8_t* const end =
      base64_encode({reinterpret_cast<const uint8_t*>(key.data()), key.size()}, encoded);
  return "mg " + std::string(&encoded[0], end) + " b\r\n";
}

}  // namespace

void Admin::run_line(const wire::Request& request, std::string_view line, std::string& reply) {
  const std::string_view command = next_word(line);
  std::string answer(kError);
  if (command == "lru_crawler") answer = crawler(line);
  if (command == "slabs") answer = slabs(line);
  if (command == "lru") answer = lru(line);
  if (command == "debugtime") answer = debug_time(line);
  if (command == "watch" && !options_.server.watch_enabled) {
    answer = "CLIENT_ERROR watch commands not allowed\r\n";
  }
  if (command == "refresh_certs") answer = "SERVER_ERROR TLS not enabled\r\n";
  if ((request.bits & wire::kNoReply) == 0) reply += answer;
}

std::string Admin::crawler(std::string_view words) {
  const std::string_view command = next_word(words);
  const std::string_view argument = next_word(words);
  if (command == "metadump" || command == "mgdump") {
    if (argument.empty()) return std::string(kError);
    if (!options_.server.dump_enabled) return "ERROR metadump not allowed\r\n";
    return dump(command == "mgdump");
  }
  const bool bare = command == "enable" || command == "disable";
  const bool with_value = command == "sleep" || command == "tocrawl" || command == "crawl";
  return std::string((bare && argument.empty()) || (with_value && !argument.empty()) ? kOk
                                                                                     : kError);
}

// All live keys. A dump that passes kDumpBytesMax ends with an error, so that nobody takes it for
// whole.
std::string Admin::dump(bool as_meta) {
  std::string text;
  source_.walk([&](const DumpItem& item) {
    if (as_meta) {
      text += meta_get_line(item.key);
    } else {
      text += metadump_line(item);
    }
    return text.size() < kDumpBytesMax;
  });
  if (text.size() >= kDumpBytesMax) return text + "SERVER_ERROR the dump is too large\r\n";
  text += as_meta ? "EN\r\n" : "END\r\n";
  return text;
}

std::string Admin::slabs(std::string_view words) {
  const std::string_view command = next_word(words);
  const std::string_view argument = next_word(words);
  if (command == "automove" && read_number(argument, 0, 2)) return std::string(kOk);
  if (command == "reassign" && !argument.empty() && !next_word(words).empty()) {
    return "BADCLASS invalid src or dst class id\r\n";
  }
  return std::string(kError);
}

std::string Admin::lru(std::string_view words) {
  const std::string_view command = next_word(words);
  const std::string_view argument = next_word(words);
  const bool known = command == "mode" || command == "tune" || command == "temp_ttl";
  return std::string(known && !argument.empty() ? kOk : kError);
}

// Moves the server's clock, in builds for tests alone.
std::string Admin::debug_time(std::string_view words) {
#ifdef WARPCACHE_DEBUGTIME
  const std::optional<int64_t> seconds =
      read_number(next_word(words), -1'000'000'000, 1'000'000'000);
  if (!seconds) return std::string(kError);
  store_.shift_clock(*seconds);
  return std::string(kOk);
#else
  (void)words;
  return std::string(kError);
#endif
}

}  // namespace warpcache::server
