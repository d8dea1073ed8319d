// SPDX-License-Identifier: Apache-2.0
#include "admin/stats_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

#include "admin/encoded_key.h"
#include "admin/next_word.h"
#include "options/option_values.h"

namespace warpcache::admin {
namespace {

constexpr int64_t kSlabIdMax = 63;  // memcached's largest class number

constexpr std::string_view kEnd = "END\r\n";

class ConnectionWalk final : public StatsWalk {
 public:
  explicit ConnectionWalk(StatsSource& source) : source_(source) {}
  LongReply::Step step(const StatsEmit& emit, std::string&) override {
    source_.list_connections(cursor_, [&](const ConnectionSnapshot& connection) {
      emit_connection_stats(connection, emit);
    });
    return cursor_ == kWalkEnd ? LongReply::Step::kLast : LongReply::Step::kMore;
  }

 private:
  StatsSource& source_;
  uint64_t cursor_ = 0;
};

class SizesWalk final : public StatsWalk {
 public:
  explicit SizesWalk(StatsSource& source) : source_(source) {}
  LongReply::Step step(const StatsEmit& emit, std::string&) override {
    const Status status =
        source_.walk(cursor_, [this](const DumpItem& item) { histogram_.add(item.item_bytes); });
    if (status != Status::kOk) return LongReply::Step::kBroken;
    if (cursor_ != kWalkEnd) return LongReply::Step::kMore;
    histogram_.emit(emit);
    return LongReply::Step::kLast;
  }

 private:
  StatsSource& source_;
  uint64_t cursor_ = 0;
  SizeHistogram histogram_;
};

// Skips binary keys, as memcached does: a line end inside such a key would look like the end of the
// line.
class CachedumpWalk final : public StatsWalk {
 public:
  CachedumpWalk(StatsSource& source, int64_t items_max)
      : source_(source), items_left_(items_max == 0 ? INT64_MAX : items_max) {}
  LongReply::Step step(const StatsEmit&, std::string& text) override {
    const size_t start = text.size();
    const Status status = source_.walk(cursor_, [&](const DumpItem& item) {
      if (item.binary_key || items_left_ == 0) return;
      const size_t before = text.size();
      fmt::format_to(std::back_inserter(text), "ITEM {} [{} b; {} s]\r\n", item.key,
                     item.value_bytes, item.expires_unix);
      if (bytes_ + text.size() - start + kEnd.size() > StatsCommand::kCachedumpBytesMax) {
        text.resize(before);
        items_left_ = 0;
        return;
      }
      --items_left_;
    });
    bytes_ += text.size() - start;
    if (status != Status::kOk) return LongReply::Step::kBroken;
    if (cursor_ != kWalkEnd && items_left_ != 0) return LongReply::Step::kMore;
    text += kEnd;
    return LongReply::Step::kLast;
  }

 private:
  StatsSource& source_;
  uint64_t cursor_ = 0;
  int64_t items_left_;
  size_t bytes_ = 0;
};

// A walk with an empty result.
class EmptyWalk final : public StatsWalk {
 public:
  LongReply::Step step(const StatsEmit&, std::string& text) override {
    text += kEnd;
    return LongReply::Step::kLast;
  }
};

class PrefixWalk final : public StatsWalk {
 public:
  explicit PrefixWalk(const PrefixStats& prefixes) : prefixes_(prefixes) {}
  LongReply::Step step(const StatsEmit&, std::string& text) override {
    if (prefixes_.dump(last_, text)) return LongReply::Step::kMore;
    text += kEnd;
    return LongReply::Step::kLast;
  }

 private:
  const PrefixStats& prefixes_;
  std::optional<std::string> last_;
};

}  // namespace

StatsCommand::StatsCommand(const Options& options, StatsSource& source, Inspection& inspection)
    : options_(options),
      source_(source),
      inspection_(inspection),
      track_sizes_(options.stats.track_sizes) {}

StatsVerdict StatsCommand::run(std::string_view words, const StatsEmit& emit,
                               std::unique_ptr<StatsWalk>& walk) {
  const std::string_view command = next_word(words);
  if (command.empty()) {
    emit_general_stats(options_, snapshot_since_reset(), emit);
    return StatsVerdict::kEnd;
  }
  if (command == "settings") {
    SettingsSnapshot settings = source_.settings();
    settings.detail_enabled = inspection_.prefixes.enabled();
    {
      const std::lock_guard lock(mutex_);
      settings.track_sizes = track_sizes_;
    }
    emit_settings_stats(options_, settings, emit);
    return StatsVerdict::kEnd;
  }
  if (command == "items") {
    StatsSnapshot snapshot = snapshot_since_reset();
    snapshot.oldest_item_age_s = inspection_.ages.look(source_, snapshot).oldest_s;
    emit_items_stats(snapshot, emit);
    return StatsVerdict::kEnd;
  }
  if (command == "slabs") {
    emit_slabs_stats(snapshot_since_reset(), emit);
    return StatsVerdict::kEnd;
  }
  if (command == "nic" && source_.nic_cache(emit)) return StatsVerdict::kEnd;
  if (command == "conns") {
    walk = std::make_unique<ConnectionWalk>(source_);
    return StatsVerdict::kWalk;
  }
  if (command == "sizes") return sizes(emit, walk);
  if (command == "sizes_enable") return set_track_sizes(true, emit);
  if (command == "sizes_disable") return set_track_sizes(false, emit);
  if (command == "reset") return reset();
  if (command == "detail") return detail(next_word(words), walk);
  if (is_inspection(command)) return inspect(command, next_word(words), emit, walk);
  if (command == "extstore")
    return StatsVerdict::kEnd;  // empty, as in memcached without external storage
  if (command == "cachedump") {
    const std::string_view slab = next_word(words);
    return cachedump(slab, next_word(words), walk);
  }
  return StatsVerdict::kUnknown;
}

bool StatsCommand::changes_something(std::string_view words) {
  const std::string_view command = next_word(words);
  if (command == "detail") return next_word(words) != "dump";
  if (is_inspection(command)) return !next_word(words).empty();
  return command == "reset" || command == "sizes_enable" || command == "sizes_disable";
}

StatsSnapshot StatsCommand::snapshot_since_reset() {
  StatsSnapshot snapshot = source_.snapshot();
  const std::lock_guard lock(mutex_);
  snapshot.counters = snapshot.counters.since(baseline_);
  return snapshot;
}

StatsVerdict StatsCommand::reset() {
  const StatCounters now = source_.snapshot().counters;
  inspection_.prefixes.reset();
  inspection_.timings.reset();
  inspection_.hot_keys.reset();
  const std::lock_guard lock(mutex_);
  baseline_ = now;
  return StatsVerdict::kReset;
}

StatsVerdict StatsCommand::detail(std::string_view word, std::unique_ptr<StatsWalk>& walk) {
  if (!options_.server.dump_enabled) return StatsVerdict::kDetailDisabled;
  if (word == "on" || word == "off") {
    inspection_.prefixes.set_enabled(word == "on");
    return StatsVerdict::kOk;
  }
  if (word != "dump") return StatsVerdict::kDetailUsage;
  walk = std::make_unique<PrefixWalk>(inspection_.prefixes);
  return StatsVerdict::kTextWalk;
}

StatsVerdict StatsCommand::sizes(const StatsEmit& emit, std::unique_ptr<StatsWalk>& walk) {
  {
    const std::lock_guard lock(mutex_);
    if (!track_sizes_ || !options_.server.dump_enabled) {
      emit("sizes_status", "disabled");
      return StatsVerdict::kEnd;
    }
  }
  walk = std::make_unique<SizesWalk>(source_);
  return StatsVerdict::kWalk;
}

StatsVerdict StatsCommand::set_track_sizes(bool enabled, const StatsEmit& emit) {
  const std::lock_guard lock(mutex_);
  track_sizes_ = enabled;
  emit("sizes_status", enabled ? "enabled" : "disabled");
  return StatsVerdict::kEnd;
}

StatsVerdict StatsCommand::cachedump(std::string_view slab, std::string_view limit,
                                     std::unique_ptr<StatsWalk>& walk) const {
  if (!options_.server.dump_enabled) return StatsVerdict::kCachedumpDisabled;
  if (slab.empty() || limit.empty()) return StatsVerdict::kBadCommandLine;
  const auto slab_id = read_number(slab, 0, std::numeric_limits<uint32_t>::max());
  const auto items_max = read_number(limit, 0, std::numeric_limits<uint32_t>::max());
  if (!slab_id || !items_max) return StatsVerdict::kBadFormat;
  if (*slab_id > kSlabIdMax) return StatsVerdict::kIllegalSlab;
  if (*slab_id == 1) {
    walk = std::make_unique<CachedumpWalk>(source_, *items_max);
  } else {
    walk = std::make_unique<EmptyWalk>();
  }
  return StatsVerdict::kTextWalk;
}

std::string_view verdict_line(StatsVerdict verdict) {
  switch (verdict) {
    case StatsVerdict::kEnd:
    case StatsVerdict::kWalk:
      return kEnd;
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
    case StatsVerdict::kCachedumpDisabled:
      return "CLIENT_ERROR stats cachedump not allowed\r\n";
    case StatsVerdict::kDetailDisabled:
      return "CLIENT_ERROR stats detail not allowed\r\n";
    case StatsVerdict::kInspectionUsage:
      return "CLIENT_ERROR usage: stats latency [on|off], hotkeys [on|off], bigkeys or slowlog "
             "[microseconds]\r\n";
    case StatsVerdict::kInspectionDisabled:
      return "CLIENT_ERROR statistics of keys not allowed\r\n";
    case StatsVerdict::kTextWalk:
      return "";
    case StatsVerdict::kUnknown:
      break;
  }
  return "ERROR\r\n";
}

std::string metadump_line(const DumpItem& item) {
  std::string line = "key=";
  append_encoded_key(item.key, line);
  fmt::format_to(std::back_inserter(line),
                 " exp={} la={} cas={} fetch={} cls=1 size={} flags={} \n",
                 item.expires_unix == 0 ? -1 : item.expires_unix, item.accessed_unix, item.cas,
                 item.fetched ? "yes" : "no", item.item_bytes, item.client_flags);
  return line;
}

}  // namespace warpcache::admin
