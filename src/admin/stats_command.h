// SPDX-License-Identifier: Apache-2.0
//
// The command `stats` with all its subcommands, free of any protocol: words in; names and values,
// or a verdict, out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "admin/long_reply.h"
#include "admin/prefix_stats.h"
#include "admin/stats.h"
#include "base/status.h"

namespace warpcache::admin {

// An item as dumps show it. The views last for the call that hands it over.
struct DumpItem {
  std::string_view key;
  uint64_t value_bytes = 0;
  uint64_t item_bytes = 0;   // with header and key
  int64_t expires_unix = 0;  // 0: never
  int64_t accessed_unix = 0;
  uint64_t cas = 0;
  uint32_t client_flags = 0;
  bool fetched = false;
  bool binary_key = false;  // the key may hold any bytes
};

// Where a walk over everything is: 0 at first.
inline constexpr uint64_t kWalkEnd = UINT64_MAX;

// Who knows the values. Implemented by the server; called by any worker, several at a time.
class StatsSource {
 public:
  virtual ~StatsSource() = default;
  [[nodiscard]] virtual StatsSnapshot
  snapshot() = 0;  // counters since the start; reset is not its business
  [[nodiscard]] virtual SettingsSnapshot settings() = 0;

  // Both visit a bounded number of things from `cursor` on and move it, to kWalkEnd behind the
  // last. What comes or goes between two calls may be missed. One thread at a time.
  virtual void list_connections(uint64_t& cursor,
                                const std::function<void(const ConnectionSnapshot&)>& visit) = 0;
  // Live items. kNotSupported: the store has failed, and what it held is gone.
  virtual Status walk(uint64_t& cursor, const std::function<void(const DumpItem&)>& visit) = 0;
};

// A statistic that takes looking at everything. Made by StatsCommand, which outlives it.
class StatsWalk {
 public:
  virtual ~StatsWalk() = default;
  // The next part: names and values, or text, its END included.
  virtual LongReply::Step step(const StatsEmit& emit, std::string& text) = 0;
};

// What the protocol is to answer after the values that were emitted.
enum class StatsVerdict : uint8_t {
  kEnd,          // text: END; binary: the packet without key and value
  kReset,        // text: RESET; binary: the packet without key and value
  kOk,           // text: OK; binary: the packet without key and value
  kWalk,         // the answer is what the walk makes of names and values; it ends as with kEnd
  kTextWalk,     // text: what the walk makes, as it is; binary: that in one packet, key "detailed",
                 // then the packet without key and value
  kDetailUsage,  // CLIENT_ERROR usage: stats detail on|off|dump
  kBadCommandLine,     // CLIENT_ERROR bad command line
  kBadFormat,          // CLIENT_ERROR bad command line format
  kIllegalSlab,        // CLIENT_ERROR Illegal slab id
  kCachedumpDisabled,  // CLIENT_ERROR stats cachedump not allowed
  kDetailDisabled,     // CLIENT_ERROR stats detail not allowed
  kUnknown,            // text: ERROR; binary: key not found
};

// Runs `stats`. One for the server; any thread may call, several at a time.
class StatsCommand {
 public:
  // Bytes of reply that `stats cachedump` gives at most, as in memcached.
  static constexpr size_t kCachedumpBytesMax = size_t{2} << 20;

  // REQUIRES: all three outlive this. `options` does not change.
  StatsCommand(const Options& options, StatsSource& source, PrefixStats& prefixes);

  // `words` are what follows `stats`: empty, "items", "detail on"... `walk` is set with kWalk and
  // kTextWalk alone. Takes no longer the more is stored.
  [[nodiscard]] StatsVerdict run(std::string_view words, const StatsEmit& emit,
                                 std::unique_ptr<StatsWalk>& walk);

  // Whether these words do more than show something.
  [[nodiscard]] static bool changes_something(std::string_view words);

 private:
  StatsSnapshot snapshot_since_reset();
  StatsVerdict reset();
  StatsVerdict detail(std::string_view word, std::unique_ptr<StatsWalk>& walk);
  StatsVerdict sizes(const StatsEmit& emit, std::unique_ptr<StatsWalk>& walk);
  StatsVerdict set_track_sizes(bool enabled, const StatsEmit& emit);
  StatsVerdict cachedump(std::string_view slab, std::string_view limit,
                         std::unique_ptr<StatsWalk>& walk) const;

  const Options& options_;
  StatsSource& source_;
  PrefixStats& prefixes_;
  std::mutex mutex_;       // guards the two below
  StatCounters baseline_;  // the counters at the last reset
  bool track_sizes_;
};

// The text protocol's line that ends an answer, with its CRLF; empty for kTextWalk.
[[nodiscard]] std::string_view verdict_line(StatsVerdict verdict);

// One line of `lru_crawler metadump`: key=... exp=... la=... cas=... fetch=... cls=1 size=...
// flags=..., ending in a blank and a bare LF as memcached has it. Bytes of the key that are not
// letters, digits or -_.~ are percent-encoded. exp is -1 for never.
[[nodiscard]] std::string metadump_line(const DumpItem& item);

}  // namespace warpcache::admin
