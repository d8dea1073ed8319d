// SPDX-License-Identifier: Apache-2.0
//
// The server's side of the copies: makes them, takes them away, and reuses their memory. The memory
// itself (layout.h) is mapped by the program too, or, in tests, is any memory.
//
// A copy does not change while the program may read it. A copy that was taken away is retired; its
// memory is used again after a grace period, in which every run of the program that may have seen
// it has ended:
//
//   if (table.retire_begin()) { wait until all runs have ended; table.retire_end(); }
//
// Any number of threads may call drop(), fill(), flush() and set_clock(); the others are for one
// thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "nic_cache/layout.h"

namespace warpcache::nic_cache {

// Mapped memory. Owned by the caller, zeroed.
struct CopyMemory {
  nic_control* control = nullptr;
  nic_versions* versions = nullptr;
  nic_set* sets = nullptr;
  uint32_t set_count = 0;  // a power of two
  uint8_t* blocks = nullptr;
  uint32_t block_count = 0;  // of kNicBlockBytes
};

// The item that a copy is made of.
struct CopiedItem {
  Bytes key;
  Bytes value;
  uint64_t cas = 0;
  uint32_t client_flags = 0;
  uint32_t expiry = 0;  // server second; 0: never
  uint32_t generation = 0;
  uint32_t version = 0;  // with write-back: version_of() before the item was read
};

struct CopyCounts {
  uint64_t copies = 0;  // that can be read now
  uint64_t bytes = 0;   // of their memory
  uint64_t filled = 0;
  uint64_t refused = 0;   // items of a form that is not copied
  uint64_t no_space = 0;  // not filled: memory was not free yet
  uint64_t dropped = 0;   // because the item changed
  uint64_t evicted = 0;   // for other copies
};

// Sets for this much memory of copies.
uint32_t set_count_for(uint32_t block_count);

class CopyTable {
 public:
  // Sets the mask and the seed of `memory.control`.
  CopyTable(const CopyMemory& memory, uint64_t seed);
  CopyTable(const CopyTable&) = delete;
  CopyTable& operator=(const CopyTable&) = delete;

  // Makes a copy. The caller holds what keeps the item from changing, and drop() is called under
  // the same lock. False: there is none, and the counts say why.
  bool fill(const CopiedItem& item);

  uint64_t hash(Bytes key) const;
  // Whether a copy of the key would put no other one out.
  bool has_space(Bytes key) const;

  // Of the writes of a key that the program has accepted.
  uint32_t version_of(Bytes key) const;

  // Takes the copy of a key away, if there is one: from now on no run of the program that begins
  // finds it.
  void drop(Bytes key);

  // Copies of another generation than this are dead.
  void flush(uint32_t generation);
  // The server's second, by which copies expire.
  void set_clock(uint32_t now);

  // True: copies wait for the end of a grace period, which begins now.
  bool retire_begin();
  void retire_end();

  CopyCounts counts() const;

  // From now on the keys of copies that drop() takes away are kept for take_dropped(), up to some
  // thousand at a time. Before other threads use the table.
  void keep_dropped();
  // The keys that were kept since the last call.
  void take_dropped(std::vector<std::vector<uint8_t>>* keys);

  // The keys of copies that were hit since the last call, in the next `sets` sets.
  void take_touched(uint32_t sets, std::vector<std::vector<uint8_t>>* keys);

 private:
  static constexpr uint32_t kPageBytes = 16 * 1024;
  static constexpr uint32_t kPagesPerBlock = kNicBlockBytes / kPageBytes;
  static constexpr uint8_t kNoClass = 0xff;
  static constexpr size_t kDroppedBytes = 128 * 1024;  // of keys, each with a byte for its size

  struct Page {
    uint8_t size_class = kNoClass;
    bool leaving = false;  // its copies are retired, and it becomes free with the last of them
    uint32_t used = 0;     // copies, retired ones included
  };

  nic_copy* copy_at(uint32_t slot) const;
  bool allocate(uint8_t size_class, uint32_t* slot);
  bool take_page(uint8_t size_class);
  void empty_some_page();
  void give_back(uint32_t slot);
  void note_dropped(Bytes key);
  void clear_way(nic_set& set, uint32_t way);
  uint32_t victim_way(const nic_set& set) const;

  const CopyMemory memory_;
  mutable uint32_t lock_ = 0;  // guards what follows, and the changes of sets
  std::vector<Page> pages_;
  std::vector<uint32_t> free_pages_;
  std::vector<std::vector<uint32_t>> free_slots_;  // of each class
  std::vector<uint32_t> retired_;
  std::vector<uint32_t> waiting_;  // retired before the grace period
  std::vector<uint8_t> dropped_;   // reserved at the start: drop() allocates nothing
  uint32_t hand_ = 0;              // the next page to be emptied
  uint32_t touched_at_ = 0;        // the next set of take_touched()
  CopyCounts counts_;
};

}  // namespace warpcache::nic_cache
