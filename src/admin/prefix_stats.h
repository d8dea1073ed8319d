// SPDX-License-Identifier: Apache-2.0
//
// Counters per key prefix, for `stats detail`. Switched off, they cost one relaxed load a batch;
// switched on, one mutex a request, so they are for investigations only.
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

// Any thread may call all functions.
class PrefixStats {
 public:
  // The most prefixes; further ones are not counted. Bounds the table to about 5 MB.
  static constexpr size_t kPrefixesMax = 16384;

  PrefixStats(char delimiter, bool enabled) : delimiter_(delimiter), enabled_(enabled) {}
  PrefixStats(const PrefixStats&) = delete;
  PrefixStats& operator=(const PrefixStats&) = delete;

  [[nodiscard]] bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  void set_enabled(bool enabled) { enabled_.store(enabled, std::memory_order_relaxed); }

  // Counts `event` for the part of `key` before the first delimiter. Does not count a key without
  // delimiter, nor a new prefix if the system refuses the memory for it. kGetHit also counts as a
  // get.
  void record(PrefixEvent event, std::string_view key);

  // Appends lines `PREFIX user get 3 hit 2 set 1 del 0`, each with CRLF, in the order of the
  // prefixes: the next kDumpedAtOnce after prefix `last` (the first ones if it is empty), and
  // advances `last`. False: these were the last. Control characters and blanks of a prefix, which
  // binary keys can have, are percent-encoded.
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
