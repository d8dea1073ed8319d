// SPDX-License-Identifier: Apache-2.0
//
// The shape of a NIC cache, and what of the FPGA's block memory its table takes (Fukuda et al.,
// sections 5 and 6). The table lies in block memory; keys and values lie in the NIC's DRAM.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace warpcache::nic {

// Which entry of a full set makes room for another.
enum class Replacement : uint8_t {
  kFifo,      // the one stored first
  kLru,       // the one used longest ago
  kLfu,       // the one used least since it was stored, of several the one used longest ago
  kTreePlru,  // tree pseudo-LRU: each node of a binary tree over the ways points away from the last
              // use
  kBitPlru,   // the paper's: a bit an entry is set by its use; the first without one goes
};

// How DRAM is given to items.
enum class Storage : uint8_t {
  kSlots,   // the paper's: each entry owns one slot, whose address follows from row and way
  kBlocks,  // an item takes as many small blocks of a common pool as it needs
};

inline constexpr uint32_t kWaysMax = 32;     // a set's tree and its bits lie in one 32-bit word
inline constexpr uint32_t kTagBitsMax = 31;  // the 32nd bit tells empty entries
inline constexpr uint32_t kRowsMax = 1u << 28;

struct Geometry {
  uint32_t rows = 1u << 15;  // power of two
  uint32_t ways = 8;         // power of two
  uint32_t tag_bits = 17;    // of the hash's lower end; the row is its upper end
  Replacement replacement = Replacement::kBitPlru;
  Storage storage = Storage::kSlots;
  uint32_t slot_bytes = 512;  // DRAM for each entry: a slot, or an entry's share of the pool
  uint32_t block_bytes = 64;  // of kBlocks

  uint64_t entries() const { return uint64_t{rows} * ways; }
  uint64_t dram_bytes() const { return entries() * slot_bytes; }

  // Empty if the shape is sound, else what is wrong with it.
  const char* fault() const;
};

// Bits of block memory that one row takes: a tag and a valid bit for each way, what the replacement
// keeps, and with kBlocks a pointer into the pool. Tags of width 0 leave one way in use: such a row
// of a single way needs its valid bit only (section 6).
uint64_t row_bits(const Geometry& geometry);

inline uint64_t block_memory_bits(const Geometry& geometry) {
  return row_bits(geometry) * geometry.rows;
}

// The largest power of two of rows that fits `bits` of block memory; 0 if not one does.
uint32_t rows_within(const Geometry& geometry, uint64_t bits);

std::string_view name(Replacement replacement);
std::optional<Replacement> replacement_of(std::string_view name);

}  // namespace warpcache::nic
