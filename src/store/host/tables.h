// SPDX-License-Identifier: Apache-2.0
//
// The tables beside the arena of a store: their contents at the start, and their places in one
// piece of memory. They are the same for every owner: the host uses them where they are made; for a
// device they are copied there.
#pragma once

#include <cstdint>
#include <vector>

#include "store/host/owner.h"
#include "store/layout/core.h"

namespace warpcache::store {

// Numbers that follow from a configuration.
struct Geometry {
  uint64_t segment_size = 0;    // bytes
  uint32_t segments_limit = 0;  // from the memory limit
  uint32_t segments_max = 0;    // the limit can be raised to this
  uint32_t index_segments = 0;
  uint32_t base_depth = 0;

  uint64_t arena_bytes() const { return segment_size * segments_max; }
};

Geometry geometry_of(const StoreConfig& config);

class Tables {
 public:
  Tables() = default;
  Tables(const StoreConfig& config, const Geometry& geometry);

  uint64_t bytes() const { return bytes_; }

  // A view of the tables that begin at `data`.
  Core core_at(uint8_t* data, uint8_t* arena, uint64_t seed) const;
  ThreadCounters* counters_at(uint8_t* data) const {
    return reinterpret_cast<ThreadCounters*>(data + counters_);
  }
  uint32_t readers_max() const { return readers_max_; }

  // Fills zeroed tables. `unix_start`: see Clock. REQUIRES: `core` is core_at() of memory that the
  // caller can write.
  void fill(const StoreConfig& config, const Core& core, int64_t unix_start) const;

  // What of the tables describes a store that no thread uses: shared words, free segments,
  // segments.
  std::vector<uint8_t> saved(const Core& core) const;
  // Takes over what saved() gave; threads' parts stay empty. False: the sizes differ. REQUIRES: the
  // tables are filled for the same geometry.
  bool restore(const std::vector<uint8_t>& from, const Core& core) const;

  // Sums over the tables; other threads may use them meanwhile. Reads only their first
  // stats_bytes().
  StoreStats stats(const Core& core, const ThreadCounters* counters) const;
  uint64_t stats_bytes() const { return append_points_; }
  // Scans every segment.
  SegmentCensus census(const Core& core) const;

 private:
  Geometry geometry_;
  uint32_t readers_max_ = 0;
  uint64_t bytes_ = 0;
  // Offsets of the tables.
  uint64_t shared_ = 0;
  uint64_t epochs_ = 0;
  uint64_t counters_ = 0;
  uint64_t append_points_ = 0;
  uint64_t reservations_ = 0;
  uint64_t free_words_ = 0;
  uint64_t segments_ = 0;

  uint64_t free_words_bytes() const;
  uint64_t segments_bytes() const;
};

// The seed of the hash: as configured, or random.
uint64_t seed_of(const StoreConfig& config);

}  // namespace warpcache::store
