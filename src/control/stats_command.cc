// SPDX-License-Identifier: Apache-2.0
#include "control/stats_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "control/option_values.h"

namespace warpcache {
namespace {

constexpr int64_t kSlabIdMax = 63;  // memcached has classes up to this number

// Takes the next word off the front of `words`; empty when there is none.
std::string_view next_word(std::string_view& words) {
  const size_t begin = words.find_first_not_of(' ');
  if (begin == std::string_view::npos) {
    words = {};
    return {};
  }
  words.remove_prefix(begin);
  const size_t end = std::min(words.find(' '), words.size());
  const std::string_view word = words.substr(0, end);
  words.remove_prefix(end);
  return word;
}

bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '_' || c == '.' || c == '~';
}

}  // namespace

StatsCommand::StatsCommand(const Options& options, StatsSource& source, PrefixStats& prefixes)
    : options_(options),
      source_(source),
      prefixes_(prefixes),
      track_sizes_(options.stats.track_sizes) {}

StatsVerdict StatsCommand::run(std::string_view words, const StatsEmit& emit, std::string& text) {
  const std::string_view command = next_word(words);
  if (command.empty()) {
    emit_general_stats(options_, snapshot_since_reset(), emit);
    return StatsVerdict::kEnd;
  }
  if (command == "settings") {
    SettingsSnapshot settings = source_.settings();
    settings.detail_enabled = prefixes_.enabled();
    {
      const std::lock_guard lock(mutex_);
      settings.track_sizes = track_sizes_;
    }
    emit_settings_stats(options_, settings, emit);
    return StatsVerdict::kEnd;
  }
  if (command == "items") {
    emit_items_stats(snapshot_since_reset(), emit);
    return StatsVerdict::kEnd;
  }
  if (command == "slabs") {
    emit_slabs_stats(snapshot_since_reset(), emit);
    return StatsVerdict::kEnd;
  }
  if (command == "conns") {
    emit_connection_stats(source_.connections(), emit);
    return StatsVerdict::kEnd;
  }
  if (command == "sizes") return sizes(emit);
  if (command == "sizes_enable") return set_track_sizes(true, emit);
  if (command == "sizes_disable") return set_track_sizes(false, emit);
  if (command == "reset") return reset();
  if (command == "detail") return detail(next_word(words), text);
  if (command == "extstore")
    return StatsVerdict::kEnd;  // as memcached without external storage: nothing
  if (command == "cachedump") {
    const std::string_view slab = next_word(words);
    return cachedump(slab, next_word(words), text);
  }
  return StatsVerdict::kUnknown;
}

StatsSnapshot StatsCommand::snapshot_since_reset() {
  StatsSnapshot snapshot = source_.snapshot();
  const std::lock_guard lock(mutex_);
  snapshot.counters = snapshot.counters.since(baseline_);
  return snapshot;
}

StatsVerdict StatsCommand::reset() {
  const StatCounters now = source_.snapshot().counters;
  prefixes_.reset();
  const std::lock_guard lock(mutex_);
  baseline_ = now;
  return StatsVerdict::kReset;
}

StatsVerdict StatsCommand::detail(std::string_view word, std::string& text) {
  if (word == "on" || word == "off") {
    prefixes_.set_enabled(word == "on");
    return StatsVerdict::kOk;
  }
  if (word != "dump") return StatsVerdict::kDetailUsage;
  text = prefixes_.dump();
  return StatsVerdict::kText;
}

StatsVerdict StatsCommand::sizes(const StatsEmit& emit) {
  {
    const std::lock_guard lock(mutex_);
    if (!track_sizes_) {
      emit("sizes_status", "disabled");
      return StatsVerdict::kEnd;
    }
  }
  SizeHistogram histogram;
  source_.walk([&histogram](const DumpItem& item) {
    histogram.add(item.item_bytes);
    return true;
  });
  histogram.emit(emit);
  return StatsVerdict::kEnd;
}

StatsVerdict StatsCommand::set_track_sizes(bool enabled, const StatsEmit& emit) {
  const std::lock_guard lock(mutex_);
  track_sizes_ = enabled;
  emit("sizes_status", enabled ? "enabled" : "disabled");
  return StatsVerdict::kEnd;
}

StatsVerdict StatsCommand::cachedump(std::string_view slab, std::string_view limit,
                                     std::string& text) {
  if (!options_.server.dump_enabled) return StatsVerdict::kNotAllowed;
  if (slab.empty() || limit.empty()) return StatsVerdict::kBadCommandLine;
  const auto slab_id = read_number(slab, 0, std::numeric_limits<uint32_t>::max());
  const auto items_max = read_number(limit, 0, std::numeric_limits<uint32_t>::max());
  if (!slab_id || !items_max) return StatsVerdict::kBadFormat;
  if (*slab_id > kSlabIdMax) return StatsVerdict::kIllegalSlab;

  constexpr std::string_view kEnd = "END\r\n";
  text.clear();
  if (*slab_id == 1) {
    int64_t count = 0;
    source_.walk([&](const DumpItem& item) {
      const std::string line =
          fmt::format("ITEM {} [{} b; {} s]\r\n", item.key, item.value_bytes, item.expires_unix);
      if (text.size() + line.size() + kEnd.size() > kCachedumpBytesMax) return false;
      text += line;
      return ++count != *items_max;  // a limit of 0 is none
    });
  }
  text += kEnd;
  return StatsVerdict::kText;
}

std::string_view verdict_line(StatsVerdict verdict) {
  switch (verdict) {
    case StatsVerdict::kEnd:
      return "END\r\n";
    case StatsVerdict::kReset:
      return "RESET\r\n";
    case StatsVerdict::kOk:
      return "OK\r\n";
    case StatsVerdict::kDetailUsage:
      return "CLIENT_ERROR usage: stats detail on|off|dump\r\n";
    case StatsVerdict::kBadCommandLine:
      return "CLIENT_ERROR bad command line\r\n";
    case StatsVerdict::kBadFormat:
      return "CLIENT_ERROR bad command line format\r\n";
    case StatsVerdict::kIllegalSlab:
      return "CLIENT_ERROR Illegal slab id\r\n";
    case StatsVerdict::kNotAllowed:
      return "CLIENT_ERROR stats cachedump not allowed\r\n";
    case StatsVerdict::kText:
    case StatsVerdict::kUnknown:
      break;
  }
  return "ERROR\r\n";
}

std::string metadump_line(const DumpItem& item) {
  std::string line = "key=";
  for (const char c : item.key) {
    if (is_plain(c)) {
      line += c;
    } else {
      fmt::format_to(std::back_inserter(line), "%{:02X}", static_cast<uint8_t>(c));
    }
  }
  fmt::format_to(std::back_inserter(line), " exp={} la={} cas={} fetch={} cls=1 size={}\n",
                 item.expires_unix == 0 ? -1 : item.expires_unix, item.accessed_unix, item.cas,
                 item.fetched ? "yes" : "no", item.item_bytes);
  return line;
}

}  // namespace warpcache
