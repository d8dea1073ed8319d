// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/copy_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/atomic.h"
#include "base/mem.h"
#include "base/number.h"
#include "net/checksum.h"

namespace warpcache::nic_cache {

static_assert(sizeof(nic_set) == 64);
static_assert(sizeof(nic_copy) == kNicCopyMax);
static_assert(offsetof(nic_copy, text) == kNicTextAt);
static_assert(kNicKeyAt % 8 == 0);

namespace {

// Sizes of copies in granules.
constexpr uint32_t kClasses[] = {2, 3, 4, 6, 8, 12, 16, 24, 32};
constexpr uint32_t kBytesPerCopy = 192;  // that the number of sets is made for
constexpr char kValueWord[] = "VALUE ";
constexpr char kEndLine[] = "END\r\n";

uint8_t class_of(uint32_t bytes) {
  uint8_t number = 0;
  while (kClasses[number] * kNicGranule < bytes) ++number;
  return number;
}

// Folded, of a piece at an even offset.
uint16_t sum_of(const uint8_t* piece, uint32_t bytes) {
  return net::checksum_fold(net::checksum_add(0, piece, bytes));
}

// Keys that a text command can name.
bool is_plain_key(Bytes key) {
  return std::all_of(key.data, key.data + key.size,
                     [](uint8_t byte) { return byte > 0x20 && byte != 0x7f; });
}

// Bytes of the copy, from its start. 0: the item is not of a form that is copied.
uint32_t compose(const CopiedItem& item, nic_copy* copy) {
  if (item.key.size == 0 || item.key.size > kNicKeyMax || !is_plain_key(item.key)) return 0;
  if (item.value.size > kNicDatagramMax) return 0;
  uint8_t* at = put(copy->text, kValueWord);
  at = put(at, item.key);
  *at++ = ' ';
  uint8_t* const flags = at;
  at = format_u64(item.client_flags, at);
  copy->flags_size = static_cast<uint8_t>(at - flags);
  *at++ = ' ';
  at = format_u64(item.value.size, at);
  const uint8_t* const head_end = at;
  copy->head_size = static_cast<uint16_t>(head_end - copy->text);
  if (copy->head_size + item.value.size + 9 + 8 > kNicDatagramMax) return 0;
  at = put(at, "\r\n");
  uint8_t* const value = at;
  at = put(at, item.value);
  at = put(at, "\r\n");
  const uint8_t* const body_end = at;
  at = put(at, kEndLine);
  uint8_t* const cas = at;
  *at++ = ' ';
  at = format_u64(item.cas, at);
  copy->cas_size = static_cast<uint8_t>(at - cas);
  copy->cas = item.cas;
  copy->generation = item.generation;
  copy->expiry = item.expiry;
  copy->version = item.version;
  copy->client_flags = item.client_flags;
  copy->value_size = static_cast<uint16_t>(item.value.size);
  copy->key_size = static_cast<uint8_t>(item.key.size);
  copy->sum_head = sum_of(copy->text, copy->head_size);
  copy->sum_body = sum_of(head_end, static_cast<uint32_t>(body_end - head_end));
  copy->sum_value = sum_of(value, static_cast<uint32_t>(item.value.size));
  copy->sum_get = sum_of(copy->text, static_cast<uint32_t>(cas - copy->text));
  copy->sum_cas = sum_of(cas, copy->cas_size);
  return static_cast<uint32_t>(at - reinterpret_cast<uint8_t*>(copy));
}

}  // namespace

uint32_t set_count_for(uint32_t block_count) {
  const uint64_t copies = uint64_t{block_count} * kNicBlockBytes / kBytesPerCopy;
  return static_cast<uint32_t>(std::bit_ceil(copies / kNicWays));
}

CopyTable::CopyTable(const CopyMemory& memory, uint64_t seed)
    : memory_(memory),
      pages_(size_t{memory.block_count} * kPagesPerBlock),
      free_slots_(std::size(kClasses)) {
  memory_.control->set_mask = memory.set_count - 1;
  memory_.control->seed = seed;
  for (uint32_t page = static_cast<uint32_t>(pages_.size()); page-- != 0;) {
    free_pages_.push_back(page);
  }
}

uint64_t CopyTable::hash(Bytes key) const {
  uint64_t state = nic_hash_begin(memory_.control->seed, static_cast<uint32_t>(key.size));
  for (size_t at = 0; at < key.size; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, key.data + at, std::min<size_t>(8, key.size - at));
    state = nic_hash_word(state, word);
  }
  return nic_hash_end(state);
}

nic_copy* CopyTable::copy_at(uint32_t slot) const {
  return reinterpret_cast<nic_copy*>(memory_.blocks + uint64_t{slot} * kNicGranule);
}

bool CopyTable::fill(const CopiedItem& item) {
  alignas(64) nic_copy copy = {};
  const uint32_t bytes = compose(item, &copy);
  const uint64_t key_hash = hash(item.key);
  const uint16_t tag = nic_tag(key_hash);
  const SpinGuard guard(&lock_);
  if (bytes == 0) {
    ++counts_.refused;
    return false;
  }
  const auto number = static_cast<uint32_t>(key_hash) & memory_.control->set_mask;
  nic_set& set = memory_.sets[number];
  uint32_t way = kNicWays;
  for (uint32_t i = 0; i < kNicWays; ++i) {
    if (set.slots[i] == 0) {
      way = i;
    } else if (set.tags[i] == tag) {
      // Made a moment ago, or an item that has expired or was flushed and came back.
      const nic_copy& old = *copy_at(set.slots[i]);
      const bool same = old.key_size == copy.key_size &&
                        std::memcmp(&old.text[6], item.key.data, item.key.size) == 0;
      if (same) clear_way(set, i);
      if (same) way = i;
    }
  }
  uint32_t slot = 0;
  const uint8_t size_class = class_of(bytes);
  if (!allocate(size_class, &slot)) {
    ++counts_.no_space;
    return false;
  }
  if (way == kNicWays) {
    way = victim_way(set);
    clear_way(set, way);
    ++counts_.evicted;
  }
  copy.set = number;
  copy.way = static_cast<uint8_t>(way);
  std::memcpy(static_cast<void*>(copy_at(slot)), &copy, bytes);
  store_relaxed(&set.recency, nic_used(load_relaxed(&set.recency), way));
  store_relaxed(&set.tags[way], tag);
  store_release(&set.slots[way], slot);
  ++counts_.filled;
  ++counts_.copies;
  counts_.bytes += kClasses[size_class] * kNicGranule;
  return true;
}

bool CopyTable::has_space(Bytes key) const {
  const uint64_t key_hash = hash(key);
  const nic_set& set = memory_.sets[static_cast<uint32_t>(key_hash) & memory_.control->set_mask];
  const SpinGuard guard(&lock_);
  if (std::find(set.slots, set.slots + kNicWays, 0u) == set.slots + kNicWays) return false;
  // The size of the copy is not known yet.
  return !free_pages_.empty() || std::any_of(free_slots_.begin(), free_slots_.end(),
                                             [](const auto& free) { return !free.empty(); });
}

uint32_t CopyTable::version_of(Bytes key) const {
  return load_acquire(&memory_.versions->of[nic_version_index(hash(key))]);
}

// A key gets a copy only under its own lock, which the caller holds. So if no tag is equal, there
// is no copy.
void CopyTable::drop(Bytes key) {
  if (key.size > kNicKeyMax) return;
  const uint64_t key_hash = hash(key);
  const uint16_t tag = nic_tag(key_hash);
  nic_set& set = memory_.sets[static_cast<uint32_t>(key_hash) & memory_.control->set_mask];
  uint32_t equal = 0;
  for (uint32_t i = 0; i < kNicWays; ++i) equal |= load_relaxed(&set.tags[i]) == tag ? 1u << i : 0;
  if (WC_LIKELY(equal == 0)) return;
  const SpinGuard guard(&lock_);
  for (uint32_t i = 0; i < kNicWays; ++i) {
    if (set.tags[i] != tag || set.slots[i] == 0) continue;
    const nic_copy& copy = *copy_at(set.slots[i]);
    if (copy.key_size != key.size || std::memcmp(&copy.text[6], key.data, key.size) != 0) continue;
    clear_way(set, i);
    ++counts_.dropped;
    note_dropped(key);
  }
}

void CopyTable::keep_dropped() { dropped_.reserve(kDroppedBytes); }

void CopyTable::note_dropped(Bytes key) {
  if (dropped_.capacity() - dropped_.size() < key.size + 1) return;
  dropped_.push_back(static_cast<uint8_t>(key.size));
  dropped_.insert(dropped_.end(), key.data, key.data + key.size);
}

void CopyTable::take_dropped(std::vector<std::vector<uint8_t>>* keys) {
  const SpinGuard guard(&lock_);
  for (size_t at = 0; at < dropped_.size(); at += dropped_[at] + 1u) {
    const uint8_t* const key = dropped_.data() + at + 1;
    keys->emplace_back(key, key + dropped_[at]);
  }
  dropped_.clear();
}

void CopyTable::flush(uint32_t generation) {
  store_release(&memory_.control->generation, generation);
}

void CopyTable::set_clock(uint32_t now) { store_release(&memory_.control->now, now); }

void CopyTable::clear_way(nic_set& set, uint32_t way) {
  const uint32_t slot = set.slots[way];
  store_release(&set.slots[way], 0);
  store_relaxed(&set.tags[way], 0);  // the program looks first at the first way with its tag
  retired_.push_back(slot);
  --counts_.copies;
  const Page& page = pages_[slot / (kPageBytes / kNicGranule)];
  counts_.bytes -= kClasses[page.size_class] * kNicGranule;
}

// The least recently used way, as far as the tree tells.
uint32_t CopyTable::victim_way(const nic_set& set) const {
  const uint32_t bits = load_relaxed(&set.recency);
  const uint32_t half = bits & 1;
  const uint32_t quarter = 2 * half + (bits >> (1 + half) & 1);
  return 2 * quarter + (bits >> (3 + quarter) & 1);
}

bool CopyTable::retire_begin() {
  const SpinGuard guard(&lock_);
  waiting_.swap(retired_);
  return !waiting_.empty();
}

void CopyTable::retire_end() {
  const SpinGuard guard(&lock_);
  for (const uint32_t slot : waiting_) give_back(slot);
  waiting_.clear();
}

void CopyTable::give_back(uint32_t slot) {
  const uint32_t number = slot / (kPageBytes / kNicGranule);
  Page& page = pages_[number];
  --page.used;
  if (!page.leaving) {
    free_slots_[page.size_class].push_back(slot);
  } else if (page.used == 0) {
    page = {};
    free_pages_.push_back(number);
  }
}

bool CopyTable::allocate(uint8_t size_class, uint32_t* slot) {
  std::vector<uint32_t>& free = free_slots_[size_class];
  if (free.empty() && !take_page(size_class)) {
    empty_some_page();
    return false;
  }
  *slot = free.back();
  free.pop_back();
  ++pages_[*slot / (kPageBytes / kNicGranule)].used;
  return true;
}

// The program reads kNicCopyMax bytes from the start of a copy, within its block.
bool CopyTable::take_page(uint8_t size_class) {
  if (free_pages_.empty()) return false;
  const uint32_t number = free_pages_.back();
  free_pages_.pop_back();
  pages_[number] = {.size_class = size_class, .leaving = false, .used = 0};
  const uint32_t begin = number * kPageBytes;
  for (uint32_t at = 0; at + kClasses[size_class] * kNicGranule <= kPageBytes;
       at += kClasses[size_class] * kNicGranule) {
    const uint32_t slot = (begin + at) / kNicGranule;
    const bool fits = (begin + at) % kNicBlockBytes <= kNicBlockBytes - kNicCopyMax;
    if (slot != 0 && fits) free_slots_[size_class].push_back(slot);
  }
  return true;
}

// Takes all copies of a page away, so that it is free after the next grace period. One page at a
// time leaves.
void CopyTable::empty_some_page() {
  if (std::any_of(pages_.begin(), pages_.end(), [](const Page& page) { return page.leaving; })) {
    return;
  }
  hand_ = (hand_ + 1) % static_cast<uint32_t>(pages_.size());
  Page& page = pages_[hand_];
  if (page.size_class == kNoClass) return;
  page.leaving = true;
  const auto in_page = [this](uint32_t slot) { return slot / (kPageBytes / kNicGranule) == hand_; };
  std::erase_if(free_slots_[page.size_class], in_page);
  const uint32_t granules = kClasses[page.size_class];
  const uint32_t begin = hand_ * (kPageBytes / kNicGranule);
  for (uint32_t slot = begin; in_page(slot); slot += granules) {
    const nic_copy& copy = *copy_at(slot);
    if (slot == 0 || copy.set >= memory_.set_count || copy.way >= kNicWays) continue;
    nic_set& set = memory_.sets[copy.set];
    if (set.slots[copy.way] != slot) continue;
    clear_way(set, copy.way);
    ++counts_.evicted;
  }
  if (page.used == 0) {
    page = {};
    free_pages_.push_back(hand_);
  }
}

CopyCounts CopyTable::counts() const {
  const SpinGuard guard(&lock_);
  return counts_;
}

void CopyTable::take_touched(uint32_t sets, std::vector<std::vector<uint8_t>>* keys) {
  for (uint32_t i = 0; i < sets; ++i, touched_at_ = (touched_at_ + 1) % memory_.set_count) {
    nic_set& set = memory_.sets[touched_at_];
    if (load_relaxed(&set.touched) == 0) continue;
    const SpinGuard guard(&lock_);
    const uint32_t touched = load_relaxed(&set.touched);
    store_relaxed(&set.touched, 0);
    for (uint32_t way = 0; way < kNicWays; ++way) {
      if ((touched >> way & 1) == 0 || set.slots[way] == 0) continue;
      const nic_copy& copy = *copy_at(set.slots[way]);
      keys->emplace_back(&copy.text[6], &copy.text[6] + copy.key_size);
    }
  }
}

}  // namespace warpcache::nic_cache
