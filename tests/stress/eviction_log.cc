// SPDX-License-Identifier: Apache-2.0
#include "stress/eviction_log.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "client/codec/words.h"

namespace warpcache::stress {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::vector<Operation> StoreObserver::take_evictions() {
  const std::lock_guard guard(mutex_);
  return std::exchange(evictions_, {});
}

// The item is still there, and its pair's lock is held.
void StoreObserver::evicted(const store::Item& item, uint32_t /*now*/) {
  constexpr std::string_view kPrefix = "key:";
  std::string_view name(reinterpret_cast<const char*>(item.key_data()), item.key_size);
  if (!name.starts_with(kPrefix)) return;
  name.remove_prefix(kPrefix.size());
  uint64_t number = 0;
  WC_ASSERT(client::read_number(name, &number));
  Operation op;
  op.kind = Kind::kEvict;
  op.outcome = Outcome::kOk;
  op.key = static_cast<uint32_t>(number);
  op.cas_compare = item.load_cas();
  op.invoked = now_ns();
  const std::lock_guard guard(mutex_);
  evictions_.push_back(op);
  count_.fetch_add(1, std::memory_order_relaxed);
}

bool StoreObserver::fails_allocation() {
  if (fail_every_ == 0) return false;
  // One in fail_every_, in an order that does not match the order of commands.
  const uint64_t count = allocations_.fetch_add(1, std::memory_order_relaxed);
  return (count * 0x9e3779b97f4a7c15 >> 32) % fail_every_ == 0;
}

}  // namespace warpcache::stress
