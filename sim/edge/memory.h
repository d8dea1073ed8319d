// SPDX-License-Identifier: Apache-2.0
// Caches and DRAM: when a request that is made now is answered. Requests are made in the order of
// time.
#pragma once

#include <cstdint>
#include <vector>

#include "edge/machine.h"

namespace warpcache::edge_sim {

using Cycle = uint64_t;
inline constexpr Cycle kNever = ~Cycle{0};
inline constexpr uint32_t kSectorsPerLineMax = 4;

// Tags, least recently used; a line's sectors are valid from a time on.
class TagArray {
 public:
  explicit TagArray(const CacheShape& shape);

  struct Line {
    uint64_t tag = ~uint64_t{0};
    uint64_t used = 0;
    Cycle ready[kSectorsPerLineMax] = {kNever, kNever, kNever, kNever};
  };

  // The line of this number, or null.
  Line* find(uint64_t line);
  // Its line, in place of the least recently used of its set.
  Line* insert(uint64_t line);

 private:
  Line* set_of(uint64_t line) { return lines_.data() + line % sets_ * ways_; }
  uint32_t sets_, ways_;
  uint64_t clock_ = 0;
  std::vector<Line> lines_;
};

// L2 and DRAM, shared by all SMs.
class SharedMemory {
 public:
  explicit SharedMemory(const Machine& machine);

  // `sectors`: a bit each of 32 bytes of the line of this number (of l2.line_bytes). Returns when
  // they arrive. With `write` nobody waits.
  Cycle request(uint64_t line, uint32_t sectors, bool write, Cycle now);

  uint64_t accesses = 0, misses = 0;  // sectors read

 private:
  const Machine& machine_;
  TagArray tags_;
  double l2_free_ = 0, dram_free_ = 0;
};

struct L1Counts {
  uint64_t requests = 0;           // lines of loads
  uint64_t sectors = 0, hits = 0;  // of loads; a hit: valid, or under way
  uint64_t misses = 0;             // lines of which a sector had to be fetched
};

// An SM's L1 and its load-store unit.
class L1 {
 public:
  L1(const Machine& machine, SharedMemory* below);

  // Sectors by number (address / 32), ascending; line numbers begin at `base`.
  struct Sectors {
    const uint32_t* first;
    uint32_t count;
    uint64_t base;
  };
  // Returns when the last has arrived. `skip`: not through the L1.
  Cycle load(const Sectors& all, bool skip, Cycle now);
  void store(const Sectors& all, Cycle now);
  // Shared memory goes through the same unit, `degree` times.
  Cycle shared(uint32_t degree, Cycle now);
  // When the unit can take another instruction.
  Cycle free_at() const { return free_; }

  L1Counts counts;

 private:
  Cycle take_port(Cycle now);
  Cycle fetch(uint64_t line, uint32_t sectors, Cycle now);

  const Machine& machine_;
  SharedMemory* below_;
  TagArray tags_;
  Cycle free_ = 0;
  double port_free_ = 0;           // from the L2
  std::vector<Cycle> miss_slots_;  // when each is free
};

}  // namespace warpcache::edge_sim
