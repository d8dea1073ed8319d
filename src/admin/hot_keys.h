// SPDX-License-Identifier: Apache-2.0
//
// The most requested keys, from a sample of the requests (`stats hotkeys`). Switched off, this
// costs a relaxed load for each batch; switched on, one batch in kBatchesPerSample is looked at.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace warpcache::admin {

struct HotKey {
  std::string key;
  uint64_t requests = 0;  // estimated from the sample
  uint64_t at_least = 0;  // the part of them that surely is not another key's
  uint64_t hits = 0;      // of gets; estimated
};

// Any thread may call all functions.
class HotKeys {
 public:
  static constexpr uint32_t kBatchesPerSample = 16;
  // Keys that are counted at a time. A key that has more than a 256th of all requests is among them
  // (space-saving: a new key takes the place and the count of the rarest).
  static constexpr size_t kKeysMax = 256;
  static constexpr size_t kShownMax = 20;

  explicit HotKeys(bool enabled) : enabled_(enabled) {}

  // Switching it on begins anew.
  void set_enabled(bool enabled);
  [[nodiscard]] bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  void reset();

  // Whether the thread's next batch is looked at, by chance. Asked once a batch.
  bool takes_batch();
  // The last answer of takes_batch() in this thread. REQUIRES, as that: enabled(), at the time of
  // asking.
  [[nodiscard]] static bool takes_this();
  // A request of a batch that is looked at. Without memory the key is not counted.
  void saw(std::string_view key, bool hit);

  // At most kShownMax, the most requested first.
  [[nodiscard]] std::vector<HotKey> top() const;

 private:
  struct Entry {
    std::string key;
    uint64_t count = 0;
    uint64_t error = 0;  // the count that it took over
    uint64_t hits = 0;
  };
  Entry* place_for(std::string_view key);

  std::atomic<bool> enabled_;
  mutable std::mutex mutex_;  // guards the following
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> places_;
};

}  // namespace warpcache::admin
