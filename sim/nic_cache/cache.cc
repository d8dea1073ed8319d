// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/cache.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace warpcache::nic {
namespace {

// No item takes more of the pool than this share, so that one item cannot empty the cache.
constexpr uint64_t kItemsInPoolMin = 16;

uint64_t bytes_max(const Geometry& geometry) {
  if (geometry.storage == Storage::kSlots) return geometry.slot_bytes;
  return std::max<uint64_t>(geometry.dram_bytes() / kItemsInPoolMin, geometry.block_bytes);
}

}  // namespace

NicCache::NicCache(const Geometry& geometry)
    : geometry_(geometry),
      row_shift_(32u - static_cast<uint32_t>(std::countr_zero(geometry.rows))),
      tag_mask_((1u << geometry.tag_bits) - 1),
      item_bytes_max_(static_cast<uint32_t>(std::min<uint64_t>(bytes_max(geometry), ~uint32_t{0}))),
      tags_(geometry.entries(), kEmpty),
      dram_(geometry.entries()),
      order_(geometry) {
  WC_ASSERT(geometry.fault() == nullptr);
  if (geometry.storage == Storage::kBlocks) {
    pool_blocks_ = geometry.dram_bytes() / geometry.block_bytes;
  }
}

const Item* NicCache::find(uint32_t key, uint32_t hash) {
  const uint64_t row = row_of(hash);
  const uint32_t way = way_of(row, tag_of(hash));
  if (way == kNoWay) return nullptr;
  order_.used(row, way);
  const Item& item = dram_[row * geometry_.ways + way];
  if (item.key == key) return &item;
  ++counters_.false_hits;
  return nullptr;
}

bool NicCache::holds(uint32_t key, uint32_t hash) const {
  const uint64_t row = row_of(hash);
  const uint32_t way = way_of(row, tag_of(hash));
  return way != kNoWay && dram_[row * geometry_.ways + way].key == key;
}

bool NicCache::has_space(uint32_t hash) const {
  const uint64_t row = row_of(hash);
  return way_of(row, tag_of(hash)) == kNoWay && way_of(row, kEmpty) != kNoWay;
}

void NicCache::put(const Item& item, uint32_t hash, std::vector<Item>* gone) {
  WC_ASSERT(accepts(item.bytes));
  const uint64_t row = row_of(hash);
  const uint32_t tag = tag_of(hash);
  const uint32_t way = way_for(row, tag, item.key, gone);
  const uint64_t at = row * geometry_.ways + way;
  const bool again = tags_[at] != kEmpty;  // only this key's own item is left there
  if (again) free_entry(at);
  if (geometry_.storage == Storage::kBlocks) {
    reclaim(blocks_of(item.bytes), gone);
    used_blocks_ += blocks_of(item.bytes);
  }
  tags_[at] = tag;
  dram_[at] = item;
  ++items_;
  again ? order_.used(row, way) : order_.stored(row, way, hash);
}

bool NicCache::erase(uint32_t key, uint32_t hash) {
  const uint64_t row = row_of(hash);
  const uint32_t way = way_of(row, tag_of(hash));
  if (way == kNoWay || dram_[row * geometry_.ways + way].key != key) return false;
  release(row, way);
  return true;
}

bool NicCache::erase_tag(uint32_t hash) {
  const uint64_t row = row_of(hash);
  const uint32_t way = way_of(row, tag_of(hash));
  if (way == kNoWay) return false;
  release(row, way);
  return true;
}

uint32_t NicCache::way_of(uint64_t row, uint32_t tag) const {
  const uint32_t* tags = tags_.data() + row * geometry_.ways;
  for (uint32_t way = 0; way < geometry_.ways; ++way) {
    if (tags[way] == tag) return way;
  }
  return kNoWay;
}

uint32_t NicCache::blocks_of(uint32_t bytes) const {
  return std::max(1u, (bytes + geometry_.block_bytes - 1) / geometry_.block_bytes);
}

// The entry for an item: empty, or with this key's older item still in it. One tag names at most
// one entry of a row, so another key's item of the same tag goes.
uint32_t NicCache::way_for(uint64_t row, uint32_t tag, uint32_t key, std::vector<Item>* gone) {
  const uint64_t first = row * geometry_.ways;
  uint32_t way = way_of(row, tag);
  if (way != kNoWay && dram_[first + way].key == key) return way;
  if (way != kNoWay) {
    ++counters_.tag_overwrites;
  } else if ((way = way_of(row, kEmpty)) != kNoWay) {
    return way;
  } else {
    way = order_.victim(row, ~uint32_t{0} >> (32 - geometry_.ways));
    ++counters_.evictions;
  }
  gone->push_back(dram_[first + way]);
  release(row, way);
  return way;
}

// The rows evict their victims one after the other until `blocks` are free. Ends: an accepted item
// is smaller than the pool, and in each turn over all rows an entry goes if one is left.
void NicCache::reclaim(uint32_t blocks, std::vector<Item>* gone) {
  while (pool_blocks_ - used_blocks_ < blocks) {
    const uint64_t row = hand_row_;
    hand_row_ = (hand_row_ + 1) % geometry_.rows;
    uint32_t filled = 0;
    for (uint32_t way = 0; way < geometry_.ways; ++way) {
      if (tags_[row * geometry_.ways + way] != kEmpty) filled |= 1u << way;
    }
    if (filled == 0) continue;
    const uint32_t way = order_.victim(row, filled);
    gone->push_back(dram_[row * geometry_.ways + way]);
    release(row, way);
    ++counters_.room_evictions;
  }
}

void NicCache::release(uint64_t row, uint32_t way) {
  order_.removed(row, way);
  free_entry(row * geometry_.ways + way);
}

void NicCache::free_entry(uint64_t at) {
  if (geometry_.storage == Storage::kBlocks) used_blocks_ -= blocks_of(dram_[at].bytes);
  tags_[at] = kEmpty;
  --items_;
}

}  // namespace warpcache::nic
