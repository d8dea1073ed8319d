// SPDX-License-Identifier: Apache-2.0
//
// An item: header, key and value. It lies in one piece in a segment; above half a segment it is a
// chain of segments, the first of which holds the header, the key and the start of the value.
//
// From allocate() to publish() the item belongs to the thread that allocated it. Afterwards
// everything is constant except the words that have load_ and store_ functions: expiry, bits,
// cas and flush generation change under the lock of the item's pair; the access time changes at any
// time (it is a hint, an update may be lost). The item itself does not say whether it is in the
// store: it is if a slot of the index holds its offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/bytes.h"
#include "base/hd.h"

namespace warpcache::store {

inline constexpr uint32_t kItemGranule = 16;  // bytes; items start at multiples of it

// `expiry` is a deadline that has passed at server second `now`.
WC_HD inline bool has_expired(uint32_t expiry, uint32_t now) {
  return expiry != 0 && expiry <= now;
}

// Bits of Item::bits. What they mean is up to the requests.
enum ItemBit : uint8_t {
  kItemStale = 1u << 0,      // invalidated, to be recached
  kItemTokenSent = 1u << 1,  // one client has the recache token
  kItemFetched = 1u << 2,    // read since it was stored
  kItemBinaryKey = 1u << 3,  // the key came base64-encoded
  kItemCopied = 1u << 4,     // of a device: a copy of it may be outside of the store (copies.h)
};

// How the item lies in memory. Constant from allocation on.
enum class Layout : uint8_t { kPlain, kChained };

struct alignas(kItemGranule) Item {
  uint64_t cas;
  uint32_t expiry;       // the item is dead from this server second on; 0: never
  uint32_t access_time;  // server second of the last access
  uint32_t value_size;   // bytes
  uint32_t client_flags;
  uint32_t flush_generation;  // of the store when the item was stored or found alive: flushed.h
  uint8_t key_size;
  uint8_t bits;
  Layout layout;
  uint8_t dropped;  // 1: known to be out of the index; 0: unknown

  // CAS id, bits and expiry are written in order: a reader that sees the later of two changes also
  // sees the earlier one.
  WC_HD uint64_t load_cas() const { return load_acquire(&cas); }
  WC_HD void store_cas(uint64_t value) { store_release(&cas, value); }
  WC_HD uint32_t load_expiry() const { return load_acquire(&expiry); }
  WC_HD void store_expiry(uint32_t value) { store_release(&expiry, value); }
  WC_HD uint8_t load_bits() const { return load_acquire(&bits); }
  WC_HD void store_bits(uint8_t value) { store_release(&bits, value); }
  WC_HD uint32_t load_flush_generation() const { return load_relaxed(&flush_generation); }
  WC_HD void store_flush_generation(uint32_t value) { store_relaxed(&flush_generation, value); }
  // Before the item is published: no order is needed yet.
  WC_HD void init_words(uint64_t new_cas, uint32_t new_expiry, uint8_t new_bits) {
    store_relaxed(&cas, new_cas);
    store_relaxed(&expiry, new_expiry);
    store_relaxed(&bits, new_bits);
  }
  // May be called without the lock: it never undoes what a holder of the lock has set. A device has
  // no atomic operation on one byte, so it changes the word that `bits` is in.
  WC_HD void set_fetched() {
#if defined(__CUDA_ARCH__)
    static_assert(offsetof(Item, bits) == offsetof(Item, key_size) + 1);
    atomicOr(reinterpret_cast<unsigned int*>(&key_size), uint32_t{kItemFetched} << 8);
#else
    fetch_or(&bits, kItemFetched);
#endif
  }
  WC_HD uint32_t load_access_time() const { return load_relaxed(&access_time); }
  WC_HD void store_access_time(uint32_t value) { store_relaxed(&access_time, value); }

  WC_HD bool chained() const { return layout == Layout::kChained; }
  WC_HD uint8_t* key_data() { return reinterpret_cast<uint8_t*>(this) + sizeof(Item); }
  WC_HD const uint8_t* key_data() const {
    return reinterpret_cast<const uint8_t*>(this) + sizeof(Item);
  }
  WC_HD Bytes key() const { return {key_data(), key_size}; }
  // The start of the value. The whole value lies there unless chained().
  WC_HD uint8_t* value_data() { return key_data() + key_size; }
  WC_HD const uint8_t* value_data() const { return key_data() + key_size; }
};
static_assert(sizeof(Item) == 32);
static_assert(std::is_trivially_copyable_v<Item>);

// Bytes that an item takes, padding left out.
WC_HD inline constexpr uint64_t item_bytes(uint32_t key_size, uint64_t value_size) {
  return sizeof(Item) + key_size + value_size;
}

// Bytes that an item in one piece takes in its segment.
WC_HD inline constexpr uint64_t item_footprint(uint32_t key_size, uint64_t value_size) {
  return rounded_up(item_bytes(key_size, value_size), uint64_t{kItemGranule});
}

WC_HD inline uint64_t item_footprint(const Item& item) {
  return item_footprint(item.key_size, item.value_size);
}

}  // namespace warpcache::store
