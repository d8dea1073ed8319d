// SPDX-License-Identifier: Apache-2.0
#include "store/host/tables.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include "store/host/memory.h"
#include "store/log/reservation.h"
#include "store/reclaim/maintainer.h"

namespace warpcache::store {

namespace {

constexpr uint64_t kSegmentSizeMin = 16 * 1024;
static_assert(kChainItemAt + item_bytes(UINT8_MAX, kFirstPieceMin) <= kSegmentSizeMin);
constexpr uint64_t kSegmentSizeMax = 1024 * 1024;
// The memory is divided into about this number of segments, but a segment is no larger than the
// most frequent large values, or many times as large: two of 64 KiB do not fit into 128 KiB with
// their headers.
constexpr uint64_t kSegmentsWanted = 1024;
constexpr uint64_t kSegmentSizeSmall = 64 * 1024;
constexpr uint64_t kMemcachedPairs = (uint64_t{1} << 16) / (2 * kWays);  // its hashpower: 16
constexpr uint64_t kMemcachedShareMax = 128;  // they take at most one part in this number
constexpr uint32_t kIndexShareAtStart = 256;  // the index starts with one part in this number of
                                              // the memory
constexpr uint32_t kBaseDepthMin = 8;         // 256 pairs: the hash bits in slots begin at bit 8
constexpr uint32_t kBaseDepthMax = 24;
constexpr uint32_t kSegmentsPerAppendPoint =
    64;  // open segments take at most a sixteenth, in all classes together
constexpr uint32_t kSegmentsForExpiryClasses = 4096;
constexpr uint64_t kReachFactor = 4;
constexpr uint64_t kReachMax = uint64_t{1} << 44;  // 16 TiB: 40 bits of granules

uint64_t segment_size_for(uint64_t limit) {
  const uint64_t size = std::bit_floor(limit / kSegmentsWanted);
  if (size >= kSegmentSizeMax) return kSegmentSizeMax;
  return std::clamp(size, kSegmentSizeMin, kSegmentSizeSmall);
}

// A configured size above half the memory is cut to half. Without one it is at least memcached's
// where that is little of the memory: its own tests look for it.
uint32_t base_depth_for(uint64_t limit, uint32_t hash_power) {
  const uint64_t share = hash_power == 0 ? limit / kIndexShareAtStart : limit / 2;
  uint64_t pairs = share / (2 * sizeof(Set));
  if (hash_power != 0) pairs = std::min(pairs, (uint64_t{1} << hash_power) / (2 * kWays));
  if (hash_power == 0 && kMemcachedPairs * 2 * sizeof(Set) <= limit / kMemcachedShareMax)
    pairs = std::max(pairs, kMemcachedPairs);
  const uint32_t depth = pairs == 0 ? 0 : static_cast<uint32_t>(std::bit_width(pairs)) - 1;
  return std::clamp(depth, kBaseDepthMin, kBaseDepthMax);
}

}  // namespace

uint64_t seed_of(const StoreConfig& config) {
  if (config.seed != 0) return config.seed;
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

Geometry geometry_of(const StoreConfig& config) {
  Geometry geometry;
  geometry.segment_size =
      config.segment_size != 0 ? config.segment_size : segment_size_for(config.memory_limit);
  geometry.base_depth = base_depth_for(config.memory_limit, config.hash_power);
  const uint64_t index_blocks = (uint64_t{1} << geometry.base_depth) / kBlockPairs + 1;
  geometry.index_segments = static_cast<uint32_t>(
      (index_blocks * kBlockSize + geometry.segment_size - 1) / geometry.segment_size);
  const uint64_t least = segments_min(geometry.index_segments);
  const uint64_t limit = std::max(config.memory_limit / geometry.segment_size, least);
  uint64_t reach = config.memory_reach;
  if (reach == 0) reach = std::max(kReachFactor * config.memory_limit, physical_memory_bytes());
  geometry.segments_limit = static_cast<uint32_t>(limit);
  geometry.segments_max =
      static_cast<uint32_t>(std::max(std::min(reach, kReachMax) / geometry.segment_size, limit));
  return geometry;
}

Tables::Tables(const StoreConfig& config, const Geometry& geometry)
    : geometry_(geometry), readers_max_(config.readers_max) {
  const auto place = [this](uint64_t bytes) {
    const uint64_t at = bytes_;
    bytes_ = (bytes_ + bytes + 63) / 64 * 64;
    return at;
  };
  shared_ = place(sizeof(Shared));
  epochs_ = place(sizeof(EpochSlot) * readers_max_);
  counters_ = place(sizeof(ThreadCounters) * readers_max_);
  append_points_ = place(sizeof(AppendPoint) * readers_max_);
  reservations_ = place(sizeof(Reservation) * kReservationsMax);
  free_words_ = place(free_words_bytes());
  segments_ = place(segments_bytes());
}

Core Tables::core_at(uint8_t* data, uint8_t* arena, uint64_t seed) const {
  Core core;
  core.arena = arena;
  core.shared = reinterpret_cast<Shared*>(data + shared_);
  core.epochs = reinterpret_cast<EpochSlot*>(data + epochs_);
  core.append_points = reinterpret_cast<AppendPoint*>(data + append_points_);
  core.reservations = reinterpret_cast<Reservation*>(data + reservations_);
  core.free_words = reinterpret_cast<uint64_t*>(data + free_words_);
  core.segments = reinterpret_cast<SegmentEntry*>(data + segments_);
  core.seed = make_hash_seed(seed);
  core.segment_shift = static_cast<uint32_t>(std::bit_width(geometry_.segment_size)) - 1;
  core.base_depth = geometry_.base_depth;
  return core;
}

void Tables::fill(const StoreConfig& config, const Core& core, int64_t unix_start) const {
  const uint32_t limit = geometry_.segments_limit;
  Shared& shared = *core.shared;
  shared.seed = core.seed.value;
  shared.segment_shift = core.segment_shift;
  shared.segments_max = geometry_.segments_max;
  shared.base_depth = core.base_depth;
  shared.append_point_count =
      std::clamp(limit / kSegmentsPerAppendPoint, 1u, std::clamp(config.threads, 1u, readers_max_));
  shared.expiry_classes = limit >= kSegmentsForExpiryClasses ? kExpiryClassesMax : 1;
  shared.low_water_share = config.low_water_share;
  shared.low_water_share_max = config.low_water_share_max;
  shared.copy_reserve = kLeaderReserve + evacuators_for(limit, config.evacuators_max);
  shared.keep_all = config.keep_all;
  shared.observer = config.observer;
  shared.faults = config.faults;
  shared.copies = config.copies;
  shared.flushed_prefix_limit = std::min(config.flushed_prefixes_max, kFlushedPrefixesMax);
  shared.pair_count = 1u << core.base_depth;
  shared.index_segments = geometry_.index_segments;
  shared.now = kClockStart;
  shared.unix_start = unix_start;
  shared.segment_limit = limit;
  shared.segment_top = limit;
  shared.segment_wanted = kNoSegment;
  shared.epoch = kEpochFirst;
  shared.young_share = kYoungShareStart;
  shared.low_water = low_water_for(shared, limit);
  SpinGuard guard(&shared.segment_lock);
  for (SegmentId id = 0; id < limit; ++id) {
    const bool index = id < geometry_.index_segments;
    detail::reset_entry(core.segment(id), index ? SegmentState::kIndex : SegmentState::kFree,
                        Generation::kMain);
    if (!index) detail::mark_free(core, id);
  }
}

uint64_t Tables::free_words_bytes() const {
  return sizeof(uint64_t) * (geometry_.segments_max / kFreeWordSegments + 1);
}

uint64_t Tables::segments_bytes() const {
  return sizeof(SegmentEntry) * uint64_t{geometry_.segments_max};
}

std::vector<uint8_t> Tables::saved(const Core& core) const {
  std::vector<uint8_t> bytes(sizeof(Shared) + free_words_bytes() + segments_bytes());
  Shared shared = *core.shared;
  shared.observer = nullptr;
  shared.faults = nullptr;
  shared.copies = {};
  shared.evicted_mail = nullptr;
  shared.eviction_log = 0;
  shared.low_on_segments = nullptr;
  shared.low_on_segments_context = nullptr;
  shared.drop_pages = nullptr;
  shared.drop_pages_context = nullptr;
  std::memcpy(bytes.data(), &shared, sizeof(Shared));
  std::memcpy(bytes.data() + sizeof(Shared), core.free_words, free_words_bytes());
  std::memcpy(bytes.data() + sizeof(Shared) + free_words_bytes(), core.segments, segments_bytes());
  return bytes;
}

bool Tables::restore(const std::vector<uint8_t>& from, const Core& core) const {
  if (from.size() != sizeof(Shared) + free_words_bytes() + segments_bytes()) return false;
  const Shared fresh = *core.shared;
  Shared& shared = *core.shared;
  std::memcpy(static_cast<void*>(&shared), from.data(), sizeof(Shared));
  // What follows from the command line, and what only a process has.
  shared.append_point_count = fresh.append_point_count;
  shared.expiry_classes = fresh.expiry_classes;
  shared.low_water_share = fresh.low_water_share;
  shared.low_water_share_max = fresh.low_water_share_max;
  shared.copy_reserve = fresh.copy_reserve;
  shared.keep_all = fresh.keep_all;
  shared.observer = fresh.observer;
  shared.faults = fresh.faults;
  shared.copies = fresh.copies;
  shared.evicted_mail = nullptr;
  shared.eviction_log = 0;
  shared.flushed_prefix_limit = fresh.flushed_prefix_limit;
  shared.low_on_segments = nullptr;
  shared.drop_pages = nullptr;
  shared.epoch_slots = 0;
  shared.low_water = low_water_for(shared, shared.segment_limit);
  std::memcpy(core.free_words, from.data() + sizeof(Shared), free_words_bytes());
  std::memcpy(static_cast<void*>(core.segments), from.data() + sizeof(Shared) + free_words_bytes(),
              segments_bytes());
  return true;
}

StoreStats Tables::stats(const Core& core, const ThreadCounters* counters) const {
  const Shared& shared = *core.shared;
  StoreStats stats;
  for (uint32_t thread = 0; thread < readers_max_; ++thread) {
    for (uint32_t i = 0; i < static_cast<uint32_t>(StoreCounter::kCount); ++i) {
      stats.counter[i] += counters[thread].read(static_cast<StoreCounter>(i));
    }
  }
  stats.segment_size = core.segment_size();
  stats.segment_limit = load_relaxed(&shared.segment_limit);
  stats.memory_limit = stats.segment_limit << core.segment_shift;
  stats.index_pairs = load_relaxed(&shared.pair_count);
  stats.index_bytes = uint64_t{load_relaxed(&shared.index_segments)} << core.segment_shift;
  stats.flushed_prefixes = flushed_prefixes(shared);
  stats.pinned_segments = load_relaxed(&shared.pinned_segments);
  // Without the segment lock, whose holder may not be running: each number is right, and together
  // they may be of moments that follow each other.
  stats.reserved_segments = load_relaxed(&shared.reserved_segments);
  stats.young_segments = load_relaxed(&shared.young.segments);
  stats.main_segments = load_relaxed(&shared.main.segments);
  stats.retired_segments = load_relaxed(&shared.retired.segments);
  stats.free_segments = std::min<uint64_t>(load_relaxed(&shared.free_count), stats.segment_limit);
  stats.used_bytes = (stats.segment_limit - stats.free_segments) << core.segment_shift;
  return stats;
}

SegmentCensus Tables::census(const Core& core) const {
  SegmentCensus census;
  for (SegmentId id = 0; id < geometry_.segments_max; ++id) {
    const SegmentEntry& entry = core.segment(id);
    const SegmentState state = entry.load_state();
    ++census.segments[static_cast<uint32_t>(state)];
    const bool holds_items = state == SegmentState::kOpen || state == SegmentState::kYoung ||
                             state == SegmentState::kMain || state == SegmentState::kChain ||
                             state == SegmentState::kHeld;
    if (holds_items) census.live_bytes += load_relaxed(&entry.live);
  }
  return census;
}

}  // namespace warpcache::store
