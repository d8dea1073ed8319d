// SPDX-License-Identifier: Apache-2.0
#include "control/prefix_stats.h"

#include <fmt/format.h>

#include <iterator>
#include <new>

namespace warpcache {

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

std::string PrefixStats::dump() const {
  std::string text;
  const std::lock_guard lock(mutex_);
  for (const auto& [prefix, counts] : prefixes_) {
    fmt::format_to(std::back_inserter(text), "PREFIX {} get {} hit {} set {} del {}\r\n", prefix,
                   counts.get, counts.hit, counts.set, counts.del);
  }
  return text + "END\r\n";
}

void PrefixStats::reset() {
  const std::lock_guard lock(mutex_);
  prefixes_.clear();
}

}  // namespace warpcache
