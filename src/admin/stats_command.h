// SPDX-License-Identifier: Apache-2.0
//
// The command `stats` with all its subcommands, without a protocol: takes words; gives names and
// values, or a verdict.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "admin/inspection.h"
#include "admin/long_reply.h"
#include "admin/stats.h"
#include "base/status.h"

namespace warpcache::admin {

// An item for a dump. The views are valid only during the call that passes it.
struct DumpItem {
  std::string_view key;
  uint64_t value_bytes = 0;
  uint64_t item_bytes = 0;   // header and key included
  int64_t expires_unix = 0;  // 0: never
  int64_t accessed_unix = 0;
  uint64_t cas = 0;
  uint32_t client_flags = 0;
  bool fetched = false;
  bool binary_key = false;  // the key may have any bytes
};

// The cursor of a walk after its last element. It starts at 0.
inline constexpr uint64_t kWalkEnd = UINT64_MAX;

// The source of the values. The server implements it; all workers call it at the same time.
class StatsSource {
 public:
  virtual ~StatsSource() = default;
  [[nodiscard]] virtual StatsSnapshot
  snapshot() = 0;  // counters since the start, without regard to `stats reset`
  [[nodiscard]] virtual SettingsSnapshot settings() = 0;

  // `stats nic`. False: there is no NIC cache.
  virtual bool nic_cache(const StatsEmit& /*emit*/) { return false; }

  // Both visit a bounded number of elements from `cursor` on and advance it: to kWalkEnd after the
  // last one. They may miss elements that are added or removed between two calls. One thread
  // at a time; walk(): any.
  virtual void list_connections(uint64_t& cursor,
                                const std::function<void(const ConnectionSnapshot&)>& visit) = 0;
  // Visits live items. Any number below StatsSnapshot::walk_places may be a cursor. kNotSupported:
  // the store has failed, and its items are lost.
  virtual Status walk(uint64_t& cursor, const std::function<void(const DumpItem&)>& visit) = 0;
};

// A statistic that visits all items or connections. Made by StatsCommand, which outlives it.
class StatsWalk {
 public:
  virtual ~StatsWalk() = default;
  // Makes the next part: names and values, or text, END included.
  virtual LongReply::Step step(const StatsEmit& emit, std::string& text) = 0;
};

// The end of the reply, after the emitted values.
enum class StatsVerdict : uint8_t {
  kEnd,          // text: END; binary: the packet without key and value
  kReset,        // text: RESET; binary: the packet without key and value
  kOk,           // text: OK; binary: the packet without key and value
  kWalk,         // the walk makes the names and values; the end is that of kEnd
  kTextWalk,     // text: the walk's text; binary: the text in one packet with key "detailed", then
                 // the packet without key and value
  kDetailUsage,  // CLIENT_ERROR usage: stats detail on|off|dump
  kBadCommandLine,      // CLIENT_ERROR bad command line
  kBadFormat,           // CLIENT_ERROR bad command line format
  kIllegalSlab,         // CLIENT_ERROR Illegal slab id
  kCachedumpDisabled,   // CLIENT_ERROR stats cachedump not allowed
  kDetailDisabled,      // CLIENT_ERROR stats detail not allowed
  kInspectionUsage,     // CLIENT_ERROR usage: stats latency|hotkeys [on|off] ...
  kInspectionDisabled,  // CLIENT_ERROR this statistic shows keys, which is not allowed
  kUnknown,             // text: ERROR; binary: key not found
};

// Runs `stats`. The server has one; any number of threads may call it at the same time.
class StatsCommand {
 public:
  // The largest reply of `stats cachedump`, as in memcached.
  static constexpr size_t kCachedumpBytesMax = size_t{2} << 20;

  // REQUIRES: all arguments outlive this object. `options` does not change.
  StatsCommand(const Options& options, StatsSource& source, Inspection& inspection);

  // `words` follow `stats` in the command: empty, "items", "detail on" and so on. Sets `walk` only
  // with kWalk and kTextWalk. The time does not depend on the number of items.
  [[nodiscard]] StatsVerdict run(std::string_view words, const StatsEmit& emit,
                                 std::unique_ptr<StatsWalk>& walk);

  // Whether these words change something, instead of only showing it.
  [[nodiscard]] static bool changes_something(std::string_view words);

 private:
  StatsSnapshot snapshot_since_reset();
  StatsVerdict reset();
  StatsVerdict detail(std::string_view word, std::unique_ptr<StatsWalk>& walk);
  static bool is_inspection(std::string_view command);
  StatsVerdict inspect(std::string_view command, std::string_view word, const StatsEmit& emit,
                       std::unique_ptr<StatsWalk>& walk);
  StatsVerdict sizes(const StatsEmit& emit, std::unique_ptr<StatsWalk>& walk);
  StatsVerdict set_track_sizes(bool enabled, const StatsEmit& emit);
  StatsVerdict cachedump(std::string_view slab, std::string_view limit,
                         std::unique_ptr<StatsWalk>& walk) const;

  const Options& options_;
  StatsSource& source_;
  Inspection& inspection_;
  std::mutex mutex_;       // guards the two below
  StatCounters baseline_;  // the counters at the last reset
  bool track_sizes_;
};

// The last line of a text reply, with its CRLF; empty for kTextWalk.
[[nodiscard]] std::string_view verdict_line(StatsVerdict verdict);

// One line of `lru_crawler metadump`: key=... exp=... la=... cas=... fetch=... cls=1 size=...
// flags=... As in memcached it ends with a blank and LF. Bytes of the key that are not letters,
// digits or -_.~ are percent-encoded. exp is -1 for never.
[[nodiscard]] std::string metadump_line(const DumpItem& item);

}  // namespace warpcache::admin
