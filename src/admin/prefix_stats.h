// SPDX-License-Identifier: Apache-2.0
//
// Counters per key prefix, for `stats detail`. Switched off they cost one relaxed load a batch;
// switched on, one mutex a request: a tool for looking, not for running.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace warpcache::admin {

enum class PrefixEvent : uint8_t { kGet, kGetHit, kSet, kDelete };

// All functions may be called by any thread.
class PrefixStats {
 public:
  // Prefixes beyond these are not counted, so that a client cannot grow the table without end:
  // about 5 MB at most.
  static constexpr size_t kPrefixesMax = 16384;

  PrefixStats(char delimiter, bool enabled) : delimiter_(delimiter), enabled_(enabled) {}
  PrefixStats(const PrefixStats&) = delete;
  PrefixStats& operator=(const PrefixStats&) = delete;

  [[nodiscard]] bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  void set_enabled(bool enabled) { enabled_.store(enabled, std::memory_order_relaxed); }

  // Counts `event` for what stands before the first delimiter of `key`; a key without one is not
  // counted, nor is a new prefix when the system refuses the memory for it. kGetHit counts as a get
  // as well.
  void record(PrefixEvent event, std::string_view key);

  // Appends lines `PREFIX user get 3 hit 2 set 1 del 0` in the order of the prefixes, each with
  // CRLF: the next kDumpedAtOnce behind prefix `last`, which moves on. Empty: from the first.
  // False: there are no more. Control characters and blanks of a prefix are percent-encoded, since
  // binary keys may have them.
  bool dump(std::optional<std::string>& last, std::string& text) const;
  static constexpr size_t kDumpedAtOnce = 256;

  // Forgets all prefixes.
  void reset();

 private:
  struct Counts {
    uint64_t get = 0;
    uint64_t hit = 0;
    uint64_t set = 0;
    uint64_t del = 0;
  };

  const char delimiter_;
  std::atomic<bool> enabled_;
  mutable std::mutex mutex_;
  std::map<std::string, Counts, std::less<>> prefixes_;
};

}  // namespace warpcache::admin
