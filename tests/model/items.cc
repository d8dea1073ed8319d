// SPDX-License-Identifier: Apache-2.0
#include "model/items.h"

#include <algorithm>
#include <utility>

namespace warpcache::model {

namespace {

constexpr int64_t kMonth = 60 * 60 * 24 * 30;  // seconds; longer times are dates
constexpr int64_t kLongAgo = 1;

bool is_over(const Item& item, int64_t now) { return item.expiry != 0 && item.expiry <= now; }

}  // namespace

void Items::advance(int64_t seconds) {
  now_ += seconds;
  if (flush_at_ == 0 || flush_at_ > now_ + 1) return;
  items_.clear();
  if (flush_at_ <= now_) flush_at_ = 0;
}

void Items::flush(int64_t delay) {
  flush_at_ = delay == 0 ? 0 : now_ + delay;
  if (delay <= 1) items_.clear();
}

Item* Items::find(const std::string& key) {
  const auto found = items_.find(key);
  if (found == items_.end() || is_over(found->second, now_)) return nullptr;
  return &found->second;
}

std::map<std::string, std::string> Items::contents() const {
  std::map<std::string, std::string> values;
  for (const auto& [key, item] : items_) {
    if (!is_over(item, now_)) values[key] = item.value;
  }
  return values;
}

Item& Items::put(const std::string& key, Item item) {
  item.used_at = now_;
  return items_[key] = std::move(item);
}

int64_t Items::expiry_of(int64_t exptime) const {
  if (exptime == 0) return 0;
  if (exptime < 0) return kLongAgo;
  if (exptime <= kMonth) return now_ + exptime;
  return exptime <= unix_start_ ? kLongAgo : exptime - unix_start_;
}

int64_t Items::seconds_left(const Item& item) const {
  return item.expiry == 0 ? -1 : std::max<int64_t>(item.expiry - now_, 0);
}

void Items::note_use(Item& item) const {
  item.used_before = true;
  item.used_at = now_;
}

Cas Items::next_cas() {
  Cas cas;
  cas.number = ++last_name_;
  cas.chosen_by_server = true;
  return cas;
}

}  // namespace warpcache::model
