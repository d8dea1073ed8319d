// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/host.h"

#include "base/assert.h"

namespace warpcache::nic {

std::optional<Item> Host::get(uint32_t key) {
  ++counters_.gets;
  const std::optional<Item> item = find(key);
  if (!item) ++counters_.get_misses;
  return item;
}

void Host::set(const Item& item) {
  WC_ASSERT(item.bytes > 0);
  ++counters_.sets;
  store(item);
}

void Host::erase(uint32_t key) {
  ++counters_.deletes;
  remove(key);
}

LruHost::LruHost(uint32_t keys, uint64_t capacity_bytes)
    : capacity_bytes_(capacity_bytes), entries_(size_t{keys} + 1) {}

std::optional<Item> LruHost::find(uint32_t key) {
  const Entry& entry = of(key);
  if (entry.bytes == 0) return std::nullopt;
  if (capacity_bytes_ != 0) {
    unlink(key + 1);
    link_newest(key + 1);
  }
  return Item{key, entry.value, entry.bytes, false};
}

void LruHost::store(const Item& item) {
  Entry& entry = of(item.key);
  if (entry.bytes != 0) drop(item.key + 1);
  entry.value = item.value;
  entry.bytes = item.bytes;
  bytes_ += item.bytes;
  link_newest(item.key + 1);
  while (capacity_bytes_ != 0 && bytes_ > capacity_bytes_) {
    drop(entries_[0].newer);
    count_eviction();
  }
}

void LruHost::remove(uint32_t key) {
  if (of(key).bytes != 0) drop(key + 1);
}

void LruHost::link_newest(uint32_t place) {
  Entry& end = entries_[0];
  entries_[place].newer = 0;
  entries_[place].older = end.older;
  entries_[end.older].newer = place;
  end.older = place;
}

void LruHost::unlink(uint32_t place) {
  const Entry& entry = entries_[place];
  entries_[entry.newer].older = entry.older;
  entries_[entry.older].newer = entry.newer;
}

void LruHost::drop(uint32_t place) {
  unlink(place);
  bytes_ -= entries_[place].bytes;
  entries_[place].bytes = 0;
}

}  // namespace warpcache::nic
