// SPDX-License-Identifier: Apache-2.0
#include "store/cuda/copy_guard.h"

#include "base/hash.h"

namespace warpcache::store {

CopyGuard::CopyGuard(const CopyHooks& hooks) : hooks_(hooks) {
  if (on()) rows_ = std::make_unique<Row[]>(kRows);
}

// A fixed seed: keys that meet in a row cost each other copies, nothing else.
uint32_t CopyGuard::row_of(Bytes key) const {
  return static_cast<uint32_t>(hash_key(0, key)) % kRows;
}

// A fill that holds the row's lock ends first, so drop() finds its copy; a later one fails.
uint32_t CopyGuard::begin_change(Bytes key) {
  const uint32_t number = row_of(key);
  Row& row = rows_[number];
  {
    const SpinGuard guard(&row.lock);
    ++row.changing;
    ++row.version;
  }
  hooks_.drop(hooks_.context, key);
  return number;
}

void CopyGuard::end_change(uint32_t number) {
  Row& row = rows_[number];
  const SpinGuard guard(&row.lock);
  --row.changing;
  ++row.version;
}

void CopyGuard::drop(Bytes key) { end_change(begin_change(key)); }

CopyGuard::Seen CopyGuard::look(Bytes key) const {
  const uint32_t number = row_of(key);
  const Row& row = rows_[number];
  const SpinGuard guard(&row.lock);
  return {number, row.version, row.changing != 0};
}

void CopyGuard::flush() {
  const std::lock_guard guard(mutex_);
  const uint32_t generation = generation_.load(std::memory_order_relaxed) + 1;
  hooks_.flush(hooks_.context, generation);
  generation_.store(generation, std::memory_order_release);
}

// Copies with a deadline up to `now` are dead before any request sees that second.
void CopyGuard::advance(uint32_t now) {
  const std::lock_guard guard(mutex_);
  if (now <= told_.load(std::memory_order_relaxed)) return;
  hooks_.clock(hooks_.context, now);
  told_.store(now, std::memory_order_release);
}

}  // namespace warpcache::store
