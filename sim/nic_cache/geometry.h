// SPDX-License-Identifier: Apache-2.0
//
// The shape of a NIC cache, and the FPGA block memory that its table needs (Fukuda et al.,
// sections 5 and 6). The table lies in block memory; keys and values lie in the NIC's DRAM.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace warpcache::nic {

// Which entry of a full set is evicted.
enum class Replacement : uint8_t {
  kFifo,      // the oldest
  kLru,       // the least recently used
  kLfu,       // the least frequently used since it was stored; of several the least recently used
  kTreePlru,  // tree pseudo-LRU: each node of a binary tree over the ways points away from the last
              // use
  kBitPlru,   // the paper's: a use sets the entry's bit; the first entry without a bit is evicted
  kSieve,     // see sim::SetSieve
  kS3Fifo,    // see sim::SetS3Fifo
  kTwoGenerations,  // the server's, see sim::SetTwoGenerations
};

// Whether the order is kept in queues of a row's ways. These need kSlots.
inline bool is_queued(Replacement replacement) { return replacement >= Replacement::kSieve; }

// How DRAM is allocated to items.
enum class Storage : uint8_t {
  kSlots,   // the paper's: each entry owns one slot, whose address follows from row and way
  kBlocks,  // an item takes as many small blocks of a common pool as it needs
};

inline constexpr uint32_t kWaysMax = 32;     // a set's tree and its bits lie in one 32-bit word
inline constexpr uint32_t kTagBitsMax = 31;  // the 32nd bit marks empty entries
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

  // Null if the shape is valid, else an error message.
  const char* fault() const;
};

// Bits of block memory of a row: a tag and a valid bit for each way, the state of the replacement,
// and with kBlocks a pointer into the pool. With tags of width 0 only one way is used; such a row
// of one way needs only its valid bit (section 6).
uint64_t row_bits(const Geometry& geometry);

inline uint64_t block_memory_bits(const Geometry& geometry) {
  return row_bits(geometry) * geometry.rows;
}

// The largest power of two of rows that fit into `bits` of block memory; 0 if none fits.
uint32_t rows_within(const Geometry& geometry, uint64_t bits);

std::string_view name(Replacement replacement);
std::optional<Replacement> replacement_of(std::string_view name);

}  // namespace warpcache::nic
