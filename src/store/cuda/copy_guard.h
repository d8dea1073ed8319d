// SPDX-License-Identifier: Apache-2.0
//
// Keeps copies of a device store's items (CopyHooks) right. The device changes items at any time
// while a batch is under way there, and cannot report it. So the host, which has the keys of all
// requests, takes copies away before the batch begins, and none of these keys is copied until it
// has ended:
//
//   begin_change(key)   before a batch that may change the key's item; its copy is gone afterwards
//   end_change(row)     the batch has ended
//
// A copy is made of an item that was read on the device while nobody changed it:
//
//   Seen seen = look(key);  read the item;  fill(seen, [&] { make the copy; });
//
// Keys share rows by their hash: a change of one keeps others of the row from being copied.
// Any number of threads may call all functions.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/atomic.h"
#include "base/bytes.h"
#include "store/layout/shared.h"

namespace warpcache::store {

class CopyGuard {
 public:
  explicit CopyGuard(const CopyHooks& hooks);
  CopyGuard(const CopyGuard&) = delete;
  CopyGuard& operator=(const CopyGuard&) = delete;

  // There are copies. If not, no other function is called.
  bool on() const { return hooks_.drop != nullptr; }

  // Returns the key's row, for end_change().
  uint32_t begin_change(Bytes key);
  void end_change(uint32_t row);

  // The key's item has changed or goes now, in one step that nobody sees before this returns.
  void drop(Bytes key);

  // What fill() compares.
  struct Seen {
    uint32_t row;
    uint64_t version;
    bool changing;  // now: do not read
  };
  Seen look(Bytes key) const;
  // Calls make(), which makes a copy, if nobody has changed the row since. False: somebody has.
  template <typename Make>
  bool fill(const Seen& seen, const Make& make) {
    Row& row = rows_[seen.row];
    const SpinGuard guard(&row.lock);
    if (seen.changing || row.changing != 0 || row.version != seen.version) return false;
    make();
    return true;
  }

  // Before a flush: all copies are dead. generation() is that of copies from now on. REQUIRES: no
  // item is read for a copy until the flush is done.
  void flush();
  uint32_t generation() const { return generation_.load(std::memory_order_acquire); }

  // Before a request runs at this server second. An earlier one than before changes nothing.
  void report_clock(uint32_t now) {
    if (now > told_.load(std::memory_order_acquire)) advance(now);
  }

 private:
  static constexpr uint32_t kRows = 16 * 1024;

  struct Row {
    mutable uint32_t lock = 0;  // guards what follows
    uint32_t changing = 0;      // batches under way that may change an item
    uint64_t version = 0;       // counts their beginnings and ends
  };

  uint32_t row_of(Bytes key) const;
  void advance(uint32_t now);

  const CopyHooks hooks_;
  std::unique_ptr<Row[]> rows_;  // null: there are no copies
  std::atomic<uint32_t> generation_{0};
  std::mutex mutex_;  // guards the calls of hooks_.flush and hooks_.clock
  std::atomic<uint32_t> told_{0};
};

}  // namespace warpcache::store
