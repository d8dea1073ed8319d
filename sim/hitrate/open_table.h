// SPDX-License-Identifier: Apache-2.0
// A flat table of entries, with a stamp of the last use each: what hopscotch, strided probing and
// cuckoo hashing have in common.
#ifndef WARPCACHE_SIM_HITRATE_OPEN_TABLE_H_
#define WARPCACHE_SIM_HITRATE_OPEN_TABLE_H_

#include <cstdint>
#include <vector>

#include "hitrate/cache.h"

namespace warpcache::sim {

inline constexpr uint32_t kNoPlace = ~uint32_t{0};

struct TableEntry {
  uint64_t id = 0;
  uint64_t hash = 0;
  uint32_t value = 0;
  uint32_t stamp = 0;  // of the last use; 0: the place is empty
};

class OpenTable : public Cache {
 public:
  bool get(const Key& key, uint32_t* value) final {
    const uint32_t place = find(key);
    if (place == kNoPlace) return false;
    use(place);
    if (value != nullptr) *value = entries_[place].value;
    return true;
  }

  void set(const Key& key, const Entry& entry) final {
    const uint32_t place = find(key);
    if (place == kNoPlace) return insert({key.id, key.hash, entry.value, ++now_});
    entries_[place].value = entry.value;
    use(place);
  }

  bool erase(const Key& key) final {
    const uint32_t place = find(key);
    if (place != kNoPlace) remove(place);
    return place != kNoPlace;
  }

  uint64_t items() const final { return items_; }

 protected:
  explicit OpenTable(uint32_t size) : entries_(size) {}

  // Where the key is, or kNoPlace.
  virtual uint32_t find(const Key& key) const = 0;
  // Stores a key that is not there, at the price of another if need be.
  virtual void insert(const TableEntry& entry) = 0;
  // Entries come and go by these two alone.
  virtual void put(uint32_t place, const TableEntry& entry) {
    entries_[place] = entry;
    ++items_;
  }
  virtual void remove(uint32_t place) {
    entries_[place].stamp = 0;
    --items_;
  }
  virtual void use(uint32_t place) { entries_[place].stamp = ++now_; }

  uint32_t size() const { return static_cast<uint32_t>(entries_.size()); }
  bool empty_at(uint32_t place) const { return entries_[place].stamp == 0; }
  bool holds(uint32_t place, const Key& key) const {
    return entries_[place].stamp != 0 && entries_[place].id == key.id;
  }

  std::vector<TableEntry> entries_;

 private:
  uint64_t items_ = 0;
  uint32_t now_ = 0;  // enough for 2^32 requests
};

}  // namespace warpcache::sim

#endif  // WARPCACHE_SIM_HITRATE_OPEN_TABLE_H_
