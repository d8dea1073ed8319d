// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/geometry.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

namespace warpcache::nic {
namespace {

constexpr uint32_t kLfuCounterBits = 8;    // what a hardware counter would have
constexpr uint32_t kQueueCounterBits = 2;  // of uses, and one more: in which queue
constexpr uint32_t kFingerprintBits = 16;  // of a ghost

constexpr std::array<std::pair<Replacement, std::string_view>, 8> kNames{{
    {Replacement::kFifo, "fifo"},
    {Replacement::kLru, "lru"},
    {Replacement::kLfu, "lfu"},
    {Replacement::kTreePlru, "tree-plru"},
    {Replacement::kBitPlru, "bit-plru"},
    {Replacement::kSieve, "sieve"},
    {Replacement::kS3Fifo, "s3fifo"},
    {Replacement::kTwoGenerations, "two-generations"},
}};

// Bits that number the orders in which `ways` entries can have been used.
uint64_t order_bits(uint32_t ways) {
  double bits = 0;
  for (uint32_t way = 2; way <= ways; ++way) bits += std::log2(way);
  return static_cast<uint64_t>(std::ceil(bits));
}

uint64_t replacement_bits(const Geometry& geometry) {
  if (geometry.ways == 1) return 0;
  switch (geometry.replacement) {
    case Replacement::kFifo:
      return std::bit_width(geometry.ways - 1);  // the way that is next
    case Replacement::kLru:
      return order_bits(geometry.ways);
    case Replacement::kLfu:
      return uint64_t{kLfuCounterBits} * geometry.ways + order_bits(geometry.ways);
    case Replacement::kTreePlru:
      return geometry.ways - 1;
    case Replacement::kBitPlru:
      return geometry.ways;
    case Replacement::kSieve:
      return order_bits(geometry.ways) + geometry.ways + std::bit_width(geometry.ways);
    case Replacement::kS3Fifo:
      return order_bits(geometry.ways) +
             uint64_t{geometry.ways} * (kQueueCounterBits + 1 + kFingerprintBits);
    case Replacement::kTwoGenerations:
      return order_bits(geometry.ways) + uint64_t{geometry.ways} * (kQueueCounterBits + 1);
  }
  return 0;
}

}  // namespace

const char* Geometry::fault() const {
  if (!std::has_single_bit(rows) || rows > kRowsMax) return "rows are no power of two in bounds";
  if (!std::has_single_bit(ways) || ways > kWaysMax) return "ways are no power of two in bounds";
  if (tag_bits > kTagBitsMax) return "the tag is too wide";
  if (slot_bytes == 0 || block_bytes == 0) return "a slot or block has no bytes";
  if (storage == Storage::kBlocks && is_queued(replacement)) {
    return "sieve, s3fifo and two-generations need slots";
  }
  if (storage == Storage::kBlocks && dram_bytes() < block_bytes) return "the pool has no block";
  return nullptr;
}

uint64_t row_bits(const Geometry& geometry) {
  uint64_t bits = uint64_t{geometry.ways} * (geometry.tag_bits + 1) + replacement_bits(geometry);
  if (geometry.storage == Storage::kBlocks) {
    const uint64_t blocks = geometry.dram_bytes() / geometry.block_bytes;
    bits += uint64_t{geometry.ways} * static_cast<uint64_t>(std::bit_width(blocks));
  }
  return bits;
}

uint32_t rows_within(const Geometry& geometry, uint64_t bits) {
  Geometry trial = geometry;
  uint32_t found = 0;
  for (trial.rows = 1; trial.rows <= kRowsMax; trial.rows *= 2) {
    if (block_memory_bits(trial) > bits) break;
    found = trial.rows;
  }
  return found;
}

std::string_view name(Replacement replacement) {
  const auto* found = std::find_if(kNames.begin(), kNames.end(),
                                   [&](const auto& pair) { return pair.first == replacement; });
  return found->second;
}

std::optional<Replacement> replacement_of(std::string_view name) {
  for (const auto& [replacement, known] : kNames) {
    if (known == name) return replacement;
  }
  return std::nullopt;
}

}  // namespace warpcache::nic
