// SPDX-License-Identifier: Apache-2.0
#include "io/ucx/item_slots.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "base/assert.h"
#include "base/atomic.h"

namespace warpcache::io {

ItemSlots::ItemSlots(uint32_t slots, uint64_t hash_seed)
    : slots_(slots), hash_seed_(hash_seed), locks_(new std::atomic<bool>[slots]) {
  WC_ASSERT(slots != 0 && (slots & (slots - 1)) == 0);
  const size_t bytes = size_t{slots} * kSlotBytes;
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = {static_cast<uint8_t*>(memory), bytes};
  for (uint32_t slot = 0; slot < slots; ++slot) {
    locks_[slot].store(false, std::memory_order_relaxed);
    write(slot, {});
  }
}

ItemSlots::~ItemSlots() { (void)munmap(memory_.data, memory_.size); }

SlotRegion ItemSlots::region() const {
  return {.address = reinterpret_cast<uint64_t>(memory_.data),
          .hash_seed = hash_seed_,
          .slots = slots_};
}

uint64_t* ItemSlots::words_of(uint32_t slot) const {
  return reinterpret_cast<uint64_t*>(memory_.data + size_t{slot} * kSlotBytes);
}

uint32_t ItemSlots::slot_of(Bytes key) const {
  return static_cast<uint32_t>(slot_offset(region(), key) / kSlotBytes);
}

// Held for the time of a copy; the lock of a pair of the store's sets may be held around it.
void ItemSlots::lock(uint32_t slot) {
  for (uint32_t tries = 1; locks_[slot].exchange(true, std::memory_order_acquire); ++tries) {
    spin_wait(tries);
  }
}

void ItemSlots::unlock(uint32_t slot) { locks_[slot].store(false, std::memory_order_release); }

// REQUIRES: the slot is locked, as for write().
bool ItemSlots::holds(uint32_t slot, Bytes key) const {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(words_of(slot));
  SlotHead head;
  std::memcpy(&head, bytes, sizeof head);
  return head.key_size == key.size && std::memcmp(bytes + sizeof head, key.data, key.size) == 0;
}

// Each word is written after those before it, so whoever sees the last version sees all of them.
void ItemSlots::write(uint32_t slot, const Copy& copy) {
  alignas(8) uint8_t bytes[kSlotBytes];
  uint64_t* const words = words_of(slot);
  SlotHead head = {};
  head.version = load_relaxed(&words[0]) / 2 * 2 + 2;
  head.cas = copy.cas;
  head.client_flags = copy.client_flags;
  head.value_size = static_cast<uint16_t>(copy.value.size);
  head.key_size = static_cast<uint8_t>(copy.key.size);
  std::memcpy(bytes, &head, sizeof head);
  size_t size = sizeof head;
  for (const Bytes part : {copy.key, copy.value}) {
    if (part.size != 0) std::memcpy(bytes + size, part.data, part.size);
    size += part.size;
  }
  head.checksum = slot_checksum(head.version, bytes, size);
  std::memcpy(bytes, &head, sizeof head);
  const auto used = static_cast<uint32_t>((size + 7) / 8);
  WC_ASSERT(used <= kSlotBytes / 8);
  std::memset(bytes + size, 0, size_t{used} * 8 - size);
  store_release(&words[0], head.version - 1);
  for (uint32_t i = 1; i < used; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + size_t{i} * 8, sizeof word);
    store_release(&words[i], word);
  }
  store_release(&words[0], head.version);
}

void ItemSlots::fill(const Copy& copy) {
  if (copy.key.size == 0 || copy.key.size > kSlotKeyMax || copy.value.size > kSlotValueMax) return;
  const uint32_t slot = slot_of(copy.key);
  lock(slot);
  const bool is_live = !flushed_.load(std::memory_order_acquire) ||
                       generation_.load(std::memory_order_relaxed) == copy.generation;
  if (is_live) write(slot, copy);
  unlock(slot);
  if (is_live) fills_.fetch_add(1, std::memory_order_relaxed);
}

void ItemSlots::drop(Bytes key) {
  const uint32_t slot = slot_of(key);
  lock(slot);
  const bool held = key.size != 0 && holds(slot, key);
  if (held) write(slot, {});
  unlock(slot);
  if (held) drops_.fetch_add(1, std::memory_order_relaxed);
}

void ItemSlots::flush(uint32_t generation) {
  generation_.store(generation, std::memory_order_relaxed);
  flushed_.store(true, std::memory_order_release);
  for (uint32_t slot = 0; slot < slots_; ++slot) {
    lock(slot);
    write(slot, {});
    unlock(slot);
  }
}

}  // namespace warpcache::io
