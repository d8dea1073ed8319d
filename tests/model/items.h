// SPDX-License-Identifier: Apache-2.0
//
// The model's items, and the meaning of clients' times.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "model/cas_book.h"

namespace warpcache::model {

struct Item {
  std::string value;
  uint32_t flags = 0;
  int64_t expiry = 0;  // server second, 0: never
  int64_t used_at = 0;
  Cas cas;
  bool used_before = false;  // since it was written
  bool stale = false;
  bool token_sent = false;
  bool key_was_base64 = false;
};

class Items {
 public:
  Items(int64_t now, int64_t unix_start) : now_(now), unix_start_(unix_start) {}

  int64_t now() const { return now_; }
  int64_t unix_time() const { return unix_start_ + now_; }
  void advance(int64_t seconds);
  // Items that are stored in the last second of `delay` end with that second; older items end at
  // its start. 0: now. A later call replaces a pending one.
  void flush(int64_t delay);

  // The living item, or null.
  Item* find(const std::string& key);
  // Key and value of every living item.
  std::map<std::string, std::string> contents() const;
  Item& put(const std::string& key, Item item);
  void remove(const std::string& key) { items_.erase(key); }

  // The server second of a client's time; 0: never.
  int64_t expiry_of(int64_t exptime) const;
  // -1: never ends.
  int64_t seconds_left(const Item& item) const;

  void note_use(Item& item) const;
  // As note_use(), but does not count as a use by a reader.
  void renew(Item& item) const { item.used_at = now_; }

  Cas next_cas();

 private:
  int64_t now_;
  int64_t unix_start_;
  int64_t flush_at_ = 0;
  uint64_t last_name_ = 0;
  std::map<std::string, Item> items_;
};

}  // namespace warpcache::model
