// SPDX-License-Identifier: Apache-2.0
//
// The administrative lines of the text protocol for which protocol::Op has only kAdmin. Commands
// for parts of memcached that do not exist here (slab classes, LRU lists) are checked as in
// memcached and have no effect.
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "admin/admin.h"
#include "admin/dump_replies.h"
#include "admin/next_word.h"
#include "base/number.h"
#include "options/option_values.h"
#include "protocol/compose/admin_reply.h"

namespace warpcache::admin {
namespace {

constexpr std::string_view kOk = "OK\r\n";
constexpr std::string_view kError = "ERROR\r\n";
constexpr std::string_view kBadClass = "BADCLASS invalid class id\r\n";
constexpr std::string_view kBadFormat = "CLIENT_ERROR bad command line format\r\n";

// memcached's bounds.
constexpr int64_t kClassMax = 63;
constexpr int64_t kCrawlerSleepUsMax = 1'000'000;
constexpr int64_t kAutomoveMax = 2;
constexpr int64_t kHotAndWarmPercentMax = 80;

// The kinds of `watch`. Nothing happens here that the last four would report.
constexpr std::pair<std::string_view, uint32_t> kWatchWords[] = {
    {"fetchers", engine::kWatchFetchers},
    {"mutations", engine::kWatchMutations},
    {"deletions", engine::kWatchDeletions},
    {"evictions", engine::kWatchEvictions},
    {"connevents", engine::kWatchConnections},
    {"rawcmds", engine::kWatchCommands},
    {"sysevents", 0},
    {"proxyreqs", 0},
    {"proxyevents", 0},
    {"proxyuser", 0}};

constexpr int64_t kClassOfItems = 1;  // the class that contains all items

// Whether the protocol would read the word as a signed 32-bit number.
bool is_i32(std::string_view word) {
  int32_t number = 0;
  return parse_i32_strict({reinterpret_cast<const uint8_t*>(word.data()), word.size()}, number);
}

// Why the host does not see some of these kinds, as a reply; empty: it sees all.
std::string_view why_hidden(const Options& options, uint32_t kinds) {
  if (options.server.engine != EngineChoice::kCuda) return "";
  if ((kinds & engine::kWatchRequests) != 0 && options.frames_are_hidden()) {
    return "CLIENT_ERROR requests in frames that the GPU alone sees cannot be watched\r\n";
  }
  return "";
}

// The argument of `lru tune`: two percentages and two factors.
std::string lru_tune(std::string_view hot, std::string_view words) {
  const std::optional<int64_t> hot_percent = read_number(hot, 0, UINT32_MAX);
  const std::optional<int64_t> warm_percent = read_number(next_word(words), 0, UINT32_MAX);
  const std::optional<double> hot_factor = read_fraction(next_word(words), -1e9, 1e9);
  const std::optional<double> warm_factor = read_fraction(next_word(words), -1e9, 1e9);
  if (!hot_percent || !warm_percent || !hot_factor || !warm_factor) return std::string(kError);
  if (*hot_percent + *warm_percent > kHotAndWarmPercentMax) {
    return "ERROR hot and warm pcts must not exceed 80\r\n";
  }
  if (*hot_factor <= 0 || *warm_factor <= 0) {
    return "ERROR hot/warm age factors must be greater than 0\r\n";
  }
  return std::string(kOk);
}

}  // namespace

// `all`, `hash`, or class numbers between commas, as memcached reads them.
Admin::Classes Admin::read_classes(std::string_view text) {
  if (text == "all" || text == "hash") return Classes::kWithItems;
  Classes classes = Classes::kEmpty;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::optional<int64_t> id = read_number(text.substr(0, comma), 1, kClassMax);
    if (!id) return Classes::kBad;
    if (*id == kClassOfItems) classes = Classes::kWithItems;
    if (comma == text.size()) return classes;
    text.remove_prefix(comma + 1);
  }
}

bool Admin::is_dump_line(std::string_view line) {
  if (next_word(line) != "lru_crawler") return false;
  const std::string_view command = next_word(line);
  return command == "metadump" || command == "mgdump";
}

void Admin::run_line(const protocol::Request& request, std::string_view line,
                     engine::BatchEntry& entry, std::string& reply) {
  const bool is_dump = is_dump_line(line);
  const std::string_view command = next_word(line);
  if (is_dump) return dump(request, line, entry, reply);
  if (command == "watch") return watch(line, entry, reply);
  std::string answer(kError);
  if (command == "lru_crawler") answer = crawler(line);
  if (command == "slabs") answer = slabs(line);
  if (command == "lru") answer = lru(line);
  if (command == "debugtime") answer = debug_time(line);
  if (command == "refresh_certs") {
    const std::string failure =
        state_.refresh_certificates ? state_.refresh_certificates() : "Error TLS not enabled";
    if (!failure.empty()) {
      reply += failure + "\r\n";  // whatever words follow
      return;
    }
    answer = kOk;
  }
  if ((request.bits & protocol::kNoReply) == 0) reply += answer;
}

// The connection becomes a watcher: it is sent lines from now on, and nothing more is read from it.
// Without words it watches fetchers. Other words than those of the kinds are an error, as in
// memcached, "noreply" too.
void Admin::watch(std::string_view words, engine::BatchEntry& entry, std::string& reply) {
  std::string_view word = next_word(words);
  uint32_t kinds = word.empty() ? uint32_t{engine::kWatchFetchers} : 0;
  bool known = true;
  for (; known && !word.empty(); word = next_word(words)) {
    const auto found = std::find_if(std::begin(kWatchWords), std::end(kWatchWords),
                                    [word](const auto& one) { return one.first == word; });
    known = found != std::end(kWatchWords);
    if (known) kinds |= found->second;
  }
  const std::string_view hidden = why_hidden(options_, kinds);
  if (!options_.server.watch_enabled) {
    reply += "CLIENT_ERROR watch commands not allowed\r\n";
  } else if (entry.datagram) {
    reply += "CLIENT_ERROR not available over UDP\r\n";
  } else if (entry.frames_done > 0) {
    reply += "ERROR cannot pipeline other commands before watch\r\n";
  } else if (!known) {
    reply += kError;
  } else if (!hidden.empty()) {
    reply += hidden;
  } else {
    switch (watchers_.add(kinds, &entry.long_reply)) {
      case Watchers::Added::kYes:
        if ((kinds & engine::kWatchEvictions) != 0) store_->watch_evictions();
        reply += kOk;
        break;
      case Watchers::Added::kTooMany:
        reply += "WATCHER_TOO_MANY log watcher limit reached\r\n";
        break;
      case Watchers::Added::kRefused:
        reply += "WATCHER_FAILED failed to add log watcher\r\n";
        break;
    }
  }
}

std::string Admin::crawler(std::string_view words) {
  const std::string_view command = next_word(words);
  const std::string_view argument = next_word(words);
  const bool one_argument = !argument.empty() && next_word(words).empty();
  if (command == "enable" || command == "disable") {
    return std::string(argument.empty() ? kOk : kError);
  }
  if (!one_argument) return std::string(kError);
  if (command == "crawl") {
    if (argument == "hash") return "ERROR an unknown error happened\r\n";
    return std::string(read_classes(argument) == Classes::kBad ? kBadClass : kOk);
  }
  if (command != "sleep" && command != "tocrawl") return std::string(kError);
  const std::optional<int64_t> number = read_number(argument, 0, UINT32_MAX);
  if (!number) return std::string(kBadFormat);
  const bool too_long = command == "sleep" && *number > kCrawlerSleepUsMax;
  return too_long ? "CLIENT_ERROR sleep must be one second or less\r\n" : std::string(kOk);
}

// Runs metadump and mgdump.
void Admin::dump(const protocol::Request& request, std::string_view words,
                 engine::BatchEntry& entry, std::string& reply) {
  if ((request.bits & protocol::kNoReply) != 0) return;
  const auto form =
      next_word(words) == "mgdump" ? KeyDump::Form::kMgdump : KeyDump::Form::kMetadump;
  const std::string_view argument = next_word(words);
  if (argument.empty() || !next_word(words).empty()) {
    reply += kError;
  } else if (!options_.server.dump_enabled) {
    reply += form == KeyDump::Form::kMgdump ? "ERROR key dump not allowed\r\n"
                                            : "ERROR metadump not allowed\r\n";
  } else if (const Classes classes = read_classes(argument); classes == Classes::kBad) {
    reply += kBadClass;
  } else {
    reply_later(LongReplies::Kind::kDump,
                std::make_unique<KeyDump>(source_, form, classes == Classes::kWithItems), request,
                entry, reply);
  }
}

std::string Admin::slabs(std::string_view words) {
  const std::string_view command = next_word(words);
  const std::string_view first = next_word(words);
  const std::string_view second = next_word(words);
  const bool more = !next_word(words).empty();
  if (command == "automove" && !first.empty()) {
    const std::optional<int64_t> level = read_number(first, 0, UINT32_MAX);
    if (!level) return std::string(kBadFormat);
    return std::string(*level <= kAutomoveMax ? kOk : kError);
  }
  if (command == "reassign" && !second.empty() && !more) {
    const bool numbers = is_i32(first) && is_i32(second);
    return numbers ? "BADCLASS invalid src or dst class id\r\n" : std::string(kBadFormat);
  }
  return std::string(kError);
}

std::string Admin::lru(std::string_view words) {
  const std::string_view command = next_word(words);
  const std::string_view first = next_word(words);
  if (command == "tune") return lru_tune(first, words);
  const bool fits = (command == "mode" && (first == "flat" || first == "segmented")) ||
                    (command == "temp_ttl" && is_i32(first));
  return std::string(fits ? kOk : kError);
}

// Moves the server's clock by seconds, stops it (p) or continues it (r). Only in builds for tests.
std::string Admin::debug_time(std::string_view words) {
#ifdef WARPCACHE_DEBUGTIME
  const std::string_view word = next_word(words);
  if (word == "p" || word == "r") {
    store_->pause_clock(word == "p");
    return std::string(kOk);
  }
  const std::optional<int64_t> seconds = read_number(word, -1'000'000'000, 1'000'000'000);
  if (!seconds) return std::string(kError);
  store_->shift_clock(*seconds);
  return std::string(kOk);
#else
  (void)words;
  return std::string(kError);
#endif
}

}  // namespace warpcache::admin
