// SPDX-License-Identifier: Apache-2.0
//
// Copies of small items in memory that clients read by themselves, without the server's thread: an
// experiment (docs/ucx.md, "One-sided gets"). An array of slots; a key's slot follows from its hash
// alone, so a copy may put another one out.
//
// A client reads a slot as a whole, while the server may write it. The checksum covers the version
// and all bytes in use, so bytes of two moments are noticed: see read_slot().
//
// What makes a copy right is its owner's task: drop() before a change of the item can be seen, and
// fill() under the same lock as that change.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/bytes.h"
#include "base/hash.h"

namespace warpcache::io {

inline constexpr uint32_t kSlotBytes = 1344;
inline constexpr uint32_t kSlotKeyMax = 250;
inline constexpr uint32_t kSlotValueMax = 1024;

// The first bytes of a slot; little-endian, as all of it. Key and value follow.
struct SlotHead {
  uint64_t version;   // odd: it is being written
  uint64_t checksum;  // hash_key() with the seed `version` of all that follows
  uint64_t cas;
  uint32_t client_flags;
  uint16_t value_size;
  uint8_t key_size;  // 0: the slot is empty
  uint8_t reserved;
};
static_assert(sizeof(SlotHead) == 32);
static_assert(sizeof(SlotHead) + kSlotKeyMax + kSlotValueMax <= kSlotBytes && kSlotBytes % 64 == 0);

// What a client must know to read slots; sent after the welcome's numbers.
struct SlotRegion {
  uint64_t address = 0;  // of the first slot, in the server's memory
  uint64_t hash_seed = 0;
  uint32_t slots = 0;  // a power of two
  uint32_t slot_bytes = kSlotBytes;
  // The key of the memory follows, as UCX packs it.
};
static_assert(sizeof(SlotRegion) == 24);

// Where the key's slot begins, from the first one's address.
inline uint64_t slot_offset(const SlotRegion& region, Bytes key) {
  return (hash_key(make_hash_seed(region.hash_seed), key) & (region.slots - 1)) *
         uint64_t{region.slot_bytes};
}

enum class SlotState : uint8_t {
  kFound,
  kAbsent,  // there is no copy of this key; the server knows
  kTorn,    // it was written meanwhile: read it again
};

struct SlotItem {
  Bytes value;  // within the bytes that were read
  uint32_t client_flags = 0;
  uint64_t cas = 0;
};

// `size`: of head, key and value.
inline uint64_t slot_checksum(uint64_t version, const uint8_t* slot, size_t size) {
  return hash_key(make_hash_seed(version),
                  {slot + offsetof(SlotHead, cas), size - offsetof(SlotHead, cas)});
}

// Looks at the kSlotBytes bytes of a slot that were read. `item` is set with kFound.
inline SlotState read_slot(const uint8_t* slot, Bytes key, SlotItem* item) {
  SlotHead head;
  std::memcpy(&head, slot, sizeof head);
  if (head.version % 2 != 0 || head.key_size > kSlotKeyMax || head.value_size > kSlotValueMax) {
    return SlotState::kTorn;
  }
  const size_t size = sizeof head + head.key_size + head.value_size;
  if (head.checksum != slot_checksum(head.version, slot, size)) return SlotState::kTorn;
  const uint8_t* const at = slot + sizeof head;
  if (head.key_size != key.size || std::memcmp(at, key.data, key.size) != 0) {
    return SlotState::kAbsent;
  }
  *item = {{at + head.key_size, head.value_size}, head.client_flags, head.cas};
  return SlotState::kFound;
}

// The server's side. Any thread may call any function.
class ItemSlots {
 public:
  struct Copy {
    Bytes key;
    Bytes value;
    uint64_t cas = 0;
    uint32_t client_flags = 0;
    uint32_t generation = 0;  // the store's, in which the item was stored
  };

  // `slots` is a power of two. Throws std::bad_alloc.
  ItemSlots(uint32_t slots, uint64_t hash_seed);
  ItemSlots(const ItemSlots&) = delete;
  ItemSlots& operator=(const ItemSlots&) = delete;
  ~ItemSlots();

  MutableBytes memory() const { return memory_; }
  SlotRegion region() const;

  // REQUIRES: nobody changes the item before it returns. Does nothing if the item is too large or
  // of another generation than the last flush().
  void fill(const Copy& copy);
  void drop(Bytes key);
  // Empties all slots. Items of another generation are not copied from here on.
  void flush(uint32_t generation);

  uint64_t fills() const { return fills_.load(std::memory_order_relaxed); }
  uint64_t drops() const { return drops_.load(std::memory_order_relaxed); }

 private:
  uint64_t* words_of(uint32_t slot) const;
  void lock(uint32_t slot);
  void unlock(uint32_t slot);
  bool holds(uint32_t slot, Bytes key) const;
  void write(uint32_t slot, const Copy& copy);
  uint32_t slot_of(Bytes key) const;

  const uint32_t slots_;
  const uint64_t hash_seed_;
  MutableBytes memory_;
  std::unique_ptr<std::atomic<bool>[]> locks_;  // of slots, not for clients
  std::atomic<uint32_t> generation_{0};
  std::atomic<bool> flushed_{false};  // flush() was called: generation_ is the store's
  std::atomic<uint64_t> fills_{0};
  std::atomic<uint64_t> drops_{0};
};

}  // namespace warpcache::io
