// SPDX-License-Identifier: Apache-2.0
#include "admin/prefix_stats.h"

#include <fmt/format.h>

#include <iterator>
#include <new>

namespace warpcache::admin {
namespace {

void append_printable(std::string& text, std::string_view bytes) {
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte > ' ' && byte != 127) {
      text += c;
    } else {
      fmt::format_to(std::back_inserter(text), "%{:02X}", byte);
    }
  }
}

}  // namespace

void PrefixStats::record(PrefixEvent event, std::string_view key) {
  const size_t end = key.find(delimiter_);
  if (end == std::string_view::npos) return;
  const std::string_view prefix = key.substr(0, end);
  const std::lock_guard lock(mutex_);
  auto place = prefixes_.find(prefix);
  if (place == prefixes_.end()) {
    if (prefixes_.size() == kPrefixesMax) return;
    try {
      place = prefixes_.emplace(std::string(prefix), Counts{}).first;
    } catch (const std::bad_alloc&) {
      return;
    }
  }
  Counts& counts = place->second;
  counts.get += static_cast<uint64_t>(event == PrefixEvent::kGet || event == PrefixEvent::kGetHit);
  counts.hit += static_cast<uint64_t>(event == PrefixEvent::kGetHit);
  counts.set += static_cast<uint64_t>(event == PrefixEvent::kSet);
  counts.del += static_cast<uint64_t>(event == PrefixEvent::kDelete);
}

bool PrefixStats::dump(std::optional<std::string>& last, std::string& text) const {
  const std::lock_guard lock(mutex_);
  auto place = last ? prefixes_.upper_bound(*last) : prefixes_.begin();
  for (size_t i = 0; i < kDumpedAtOnce; ++i, ++place) {
    if (place == prefixes_.end()) return false;
    const Counts& counts = place->second;
    text += "PREFIX ";
    append_printable(text, place->first);
    fmt::format_to(std::back_inserter(text), " get {} hit {} set {} del {}\r\n", counts.get,
                   counts.hit, counts.set, counts.del);
    last = place->first;
  }
  return true;
}

void PrefixStats::reset() {
  const std::lock_guard lock(mutex_);
  prefixes_.clear();
}

}  // namespace warpcache::admin
