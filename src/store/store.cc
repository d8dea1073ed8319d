// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <mutex>
#include <optional>
#include <random>

#include "store/maintenance.h"

namespace warpcache::store {

namespace {

constexpr uint64_t kSegmentSizeMin = 64 * 1024;
constexpr uint64_t kSegmentSizeMax = 1024 * 1024;
constexpr uint64_t kSegmentsWanted = 1024;    // a segment is about this share of the memory
constexpr uint32_t kIndexShareAtStart = 256;  // the index starts with this share of the memory
constexpr uint32_t kBaseDepthMin = 8;  // 256 pairs: what slots know of a hash begins at bit 8
constexpr uint32_t kBaseDepthMax = 24;
constexpr uint32_t kCopyReserve = 2;  // one segment for each lane of the copier
constexpr uint32_t kSegmentsPerLane =
    64;  // open segments take at most a sixteenth, in all classes together
constexpr uint32_t kSegmentsForTtlClasses = 4096;
constexpr uint64_t kReachFactor = 4;
constexpr uint64_t kReachMax = uint64_t{1} << 44;  // 16 TiB: 40 bits of granules

uint64_t segment_size_for(uint64_t limit) {
  return std::clamp(std::bit_floor(limit / kSegmentsWanted), kSegmentSizeMin, kSegmentSizeMax);
}

// A wish for more than half the memory is cut to that.
uint32_t base_depth_for(uint64_t limit, uint32_t hash_power) {
  const uint64_t share = hash_power == 0 ? limit / kIndexShareAtStart : limit / 2;
  uint64_t pairs = share / (2 * sizeof(Set));
  if (hash_power != 0) pairs = std::min(pairs, (uint64_t{1} << hash_power) / (2 * kWays));
  const uint32_t depth = pairs == 0 ? 0 : static_cast<uint32_t>(std::bit_width(pairs)) - 1;
  return std::clamp(depth, kBaseDepthMin, kBaseDepthMax);
}

uint64_t random_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

int64_t unix_now() {
  using std::chrono::system_clock;
  return std::chrono::duration_cast<std::chrono::seconds>(system_clock::now().time_since_epoch())
      .count();
}

int64_t seconds_since(std::chrono::steady_clock::time_point start) {
  using std::chrono::seconds;
  return std::chrono::duration_cast<seconds>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

struct Store::Memory {
  Mapping arena;
  Mapping control;  // Shared, tables
  ThreadContext maintenance_thread;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::mutex mutex;  // registration, clock, delayed flush: guards what follows
  int64_t clock_shift = 0;
  std::optional<int64_t> clock_paused_at;  // seconds since the start; while the clock stands
  uint32_t flush_at = 0;                   // server second of a delayed flush_all; 0: none
};

Store::Store(const StoreConfig& config) : config_(config), memory_(std::make_unique<Memory>()) {}

Store::~Store() {
  if (maintenance_ != nullptr) maintenance_->stop();
}

Status Store::create(const StoreConfig& config, std::unique_ptr<Store>* store) {
  std::unique_ptr<Store> made(new Store(config));
  const Status status = made->start();
  if (status == Status::kOk) *store = std::move(made);
  return status;
}

// Places the tables behind each other in one mapping.
bool Store::map_tables(uint32_t segments_max) {
  uint64_t size = 0;
  const auto place = [&size](uint64_t bytes) {
    const uint64_t at = size;
    size = (size + bytes + 63) / 64 * 64;
    return at;
  };
  const uint64_t shared = place(sizeof(Shared));
  const uint64_t epochs = place(sizeof(EpochSlot) * kThreadsMax);
  const uint64_t counters = place(sizeof(ThreadCounters) * kThreadsMax);
  const uint64_t lanes = place(sizeof(Lane) * kThreadsMax);
  const uint64_t reservations = place(sizeof(Reservation) * kReservationsMax);
  const uint64_t free_words = place(sizeof(uint64_t) * (segments_max / kFreeWordSegments + 1));
  const uint64_t segments = place(sizeof(SegmentEntry) * uint64_t{segments_max});
  if (!memory_->control.map(size, false)) return false;
  uint8_t* data = memory_->control.data();
  core_.shared = reinterpret_cast<Shared*>(data + shared);
  core_.epochs = reinterpret_cast<EpochSlot*>(data + epochs);
  counters_ = reinterpret_cast<ThreadCounters*>(data + counters);
  core_.lanes = reinterpret_cast<Lane*>(data + lanes);
  core_.reservations = reinterpret_cast<Reservation*>(data + reservations);
  core_.free_words = reinterpret_cast<uint64_t*>(data + free_words);
  core_.segments = reinterpret_cast<SegmentEntry*>(data + segments);
  return true;
}

Status Store::start() {
  const uint64_t segment_size = segment_size_for(config_.memory_limit);
  const uint32_t depth = base_depth_for(config_.memory_limit, config_.hash_power);
  const uint64_t index_blocks = (uint64_t{1} << depth) / kBlockPairs + 1;
  const uint32_t index_segments =
      static_cast<uint32_t>((index_blocks * kBlockSize + segment_size - 1) / segment_size);
  const uint64_t least = Maintenance::segments_min(index_segments);
  const uint64_t limit = std::max(config_.memory_limit / segment_size, least);
  uint64_t reach = config_.memory_reach;
  if (reach == 0) reach = std::max(kReachFactor * config_.memory_limit, physical_memory_bytes());
  uint64_t segments_max = std::max(std::min(reach, kReachMax) / segment_size, limit);
  // Where the system counts address space as memory, the limit must do.
  if (!memory_->arena.map(segments_max * segment_size, config_.huge_pages)) {
    segments_max = limit;
    if (!memory_->arena.map(segments_max * segment_size, config_.huge_pages))
      return Status::kOutOfMemory;
  }
  if (!map_tables(static_cast<uint32_t>(segments_max))) return Status::kOutOfMemory;

  core_.arena = memory_->arena.data();
  core_.seed = config_.seed != 0 ? config_.seed : random_seed();
  core_.segment_shift = static_cast<uint32_t>(std::bit_width(segment_size)) - 1;
  core_.base_depth = depth;
  init_shared(static_cast<uint32_t>(limit), static_cast<uint32_t>(segments_max), index_segments);
  init_segments(static_cast<uint32_t>(limit), index_segments);

  const Status registered = register_thread(&memory_->maintenance_thread);
  WC_ASSERT(registered == Status::kOk);
  maintenance_ = std::make_unique<Maintenance>(core_, &memory_->arena, &memory_->maintenance_thread,
                                               config_.room_wait_ms_max);
  tick();
  if (config_.maintenance_thread) {
    core_.shared->low_on_segments = [](void* maintenance) {
      static_cast<Maintenance*>(maintenance)->wake();
    };
    core_.shared->low_on_segments_context = maintenance_.get();
    maintenance_->start([](void* store) { static_cast<Store*>(store)->tick(); }, this);
  }
  return Status::kOk;
}

void Store::init_shared(uint32_t limit, uint32_t segments_max, uint32_t index_segments) {
  Shared& shared = *core_.shared;
  shared.seed = core_.seed;
  shared.segment_shift = core_.segment_shift;
  shared.segments_max = segments_max;
  shared.base_depth = core_.base_depth;
  shared.lane_count =
      std::clamp(limit / kSegmentsPerLane, 1u, std::clamp(config_.threads, 1u, kThreadsMax));
  shared.ttl_classes = limit >= kSegmentsForTtlClasses ? kTtlClassesMax : 1;
  shared.copy_reserve = kCopyReserve;
  shared.keep_all = config_.keep_all;
  shared.hooks = config_.hooks;
  shared.pair_count = 1u << core_.base_depth;
  shared.index_segments = index_segments;
  shared.now = kClockStart;
  shared.unix_start = unix_now() - kClockStart;
  shared.segment_limit = limit;
  shared.segment_top = limit;
  shared.segment_wanted = kNoSegment;
  shared.epoch = kEpochFirst;
  shared.low_water = Maintenance::low_water(limit, kCopyReserve);
}

void Store::init_segments(uint32_t limit, uint32_t index_segments) {
  SpinGuard guard(&core_.shared->segment_lock);
  for (SegmentId id = 0; id < limit; ++id) {
    const bool index = id < index_segments;
    detail::reset_entry(core_.segment(id), index ? SegmentState::kIndex : SegmentState::kFree,
                        Generation::kMain);
    if (!index) detail::mark_free(core_, id);
  }
}

// --- Threads

Status Store::register_thread(ThreadContext* thread) {
  const std::lock_guard guard(memory_->mutex);
  for (uint32_t i = 0; i < kThreadsMax; ++i) {
    EpochSlot& slot = core_.epochs[i];
    if (slot.taken != 0) continue;
    slot.taken = 1;
    // Before its owner can enter: who unlinks afterwards looks at it.
    if (i >= core_.shared->epoch_slots) exchange_seq_cst(&core_.shared->epoch_slots, i + 1);
    *thread = {};
    thread->slot = &slot;
    thread->counters = &counters_[i];
    thread->index = i;
    // The first slot is maintenance's, which uses no lane.
    thread->lane = (i == 0 ? 0 : i - 1) % core_.shared->lane_count;
    return Status::kOk;
  }
  return Status::kOutOfMemory;
}

void Store::unregister_thread(ThreadContext* thread) {
  settle_growth(core_, *thread);
  const std::lock_guard guard(memory_->mutex);
  WC_ASSERT(load_acquire(&thread->slot->epoch) == kEpochIdle);
  thread->slot->taken = 0;
  *thread = {};
}

// --- Room

Status Store::make_room(uint64_t bytes) { return maintenance_->make_room(bytes); }

void Store::maintain() { maintenance_->maintain(); }

uint64_t Store::set_memory_limit(uint64_t bytes) {
  const uint64_t segments = std::min<uint64_t>(bytes >> core_.segment_shift, UINT32_MAX);
  return maintenance_->set_limit(static_cast<uint32_t>(segments));
}

Status Store::reserve(uint8_t key_size, uint32_t value_size, uint32_t* id) {
  const Status status = reserve_item(core_, key_size, value_size, id);
  if (status != Status::kDeferred) return status;
  // A reservation takes whole segments, also for a small item.
  const uint64_t bytes =
      std::max<uint64_t>(item_bytes(key_size, value_size), core_.plain_size_max() + 1);
  if (maintenance_->make_room(bytes) != Status::kOk) return Status::kOutOfMemory;
  const Status again = reserve_item(core_, key_size, value_size, id);
  return again == Status::kDeferred ? Status::kOutOfMemory : again;
}

MutableBytes Store::reservation_window(uint32_t id, uint32_t offset) const {
  const Item* item = reservation_item(core_, id);
  WC_ASSERT(item != nullptr && offset < item->value_size);
  return value_window(core_, *item, offset);
}

void Store::abandon_reservation(uint32_t id) { store::abandon_reservation(core_, id); }

// --- Clock

void Store::flush_all(uint32_t delay) {
  const std::lock_guard guard(memory_->mutex);
  memory_->flush_at = delay == 0 ? 0 : load_relaxed(&core_.shared->now) + delay;
  if (delay == 0) maintenance_->flush();
}

void Store::move_clock(uint32_t now) {
  bool flush = false;
  {
    const std::lock_guard guard(memory_->mutex);
    store_relaxed(&core_.shared->now, now);
    flush = memory_->flush_at != 0 && memory_->flush_at <= now;
    if (flush) memory_->flush_at = 0;
  }
  if (flush) maintenance_->flush();
  maintenance_->expire();
}

void Store::tick() {
  if (config_.manual_clock) return;
  int64_t now = 0;
  {
    const std::lock_guard guard(memory_->mutex);
    const int64_t passed = memory_->clock_paused_at.value_or(seconds_since(memory_->start));
    now = kClockStart + passed + memory_->clock_shift;
  }
  move_clock(static_cast<uint32_t>(std::max<int64_t>(now, kClockStart)));
}

void Store::shift_clock(int64_t seconds) {
  {
    const std::lock_guard guard(memory_->mutex);
    memory_->clock_shift += seconds;
  }
  tick();
}

void Store::pause_clock(bool paused) {
  const std::lock_guard guard(memory_->mutex);
  if (paused && !memory_->clock_paused_at) memory_->clock_paused_at = seconds_since(memory_->start);
  if (!paused) memory_->clock_paused_at.reset();
}

void Store::set_clock(uint32_t now) {
  WC_ASSERT(config_.manual_clock);
  move_clock(now);
}

// --- Looking at it all

StoreStats Store::stats() const {
  const Shared& shared = *core_.shared;
  StoreStats stats;
  for (uint32_t thread = 0; thread < kThreadsMax; ++thread) {
    for (uint32_t i = 0; i < static_cast<uint32_t>(StoreCounter::kCount); ++i) {
      stats.counter[i] += counters_[thread].read(static_cast<StoreCounter>(i));
    }
  }
  const uint32_t top = load_relaxed(&shared.segment_top);
  for (SegmentId id = 0; id < top; ++id) {
    const SegmentEntry& entry = core_.segment(id);
    const SegmentState state = entry.load_state();
    ++stats.segments[static_cast<uint32_t>(state)];
    const bool holds_items = state == SegmentState::kOpen || state == SegmentState::kYoung ||
                             state == SegmentState::kMain || state == SegmentState::kChain;
    if (holds_items) stats.live_bytes += load_relaxed(&entry.live);
  }
  stats.segment_size = core_.segment_size();
  stats.segment_limit = load_relaxed(&shared.segment_limit);
  stats.memory_limit = stats.segment_limit << core_.segment_shift;
  stats.index_pairs = load_relaxed(&shared.pair_count);
  stats.index_bytes = uint64_t{load_relaxed(&shared.index_segments)} << core_.segment_shift;
  stats.pinned_segments = load_relaxed(&shared.pinned_segments);
  SpinGuard guard(&core_.shared->segment_lock);
  stats.reserved_segments = shared.reserved_segments;
  stats.young_segments = shared.young.segments;
  stats.main_segments = shared.main.segments;
  stats.limbo_segments = shared.limbo.segments;
  stats.used_bytes = (stats.segment_limit - shared.free_count) << core_.segment_shift;
  return stats;
}

void Store::walk(const std::function<bool(const WalkedItem&)>& visit) {
  const uint32_t now = load_relaxed(&core_.shared->now);
  for (PairNumber number = 0; number < load_acquire(&core_.shared->pair_count); ++number) {
    Set* pair = pair_at(core_, number);
    const SpinGuard guard(&pair->lock);
    const PairSets sets = sets_of(core_, pair);
    for (uint32_t i = 0; i < sets.count * kWays; ++i) {
      const Slot slot = load_relaxed(&sets.set[i / kWays]->slots[i % kWays]);
      if (slot == 0) continue;
      const Item* item = core_.item_in(slot);
      if (!is_alive(core_, *item, now)) continue;
      if (!visit({item, item->key(), item_footprint(*item)})) return;
    }
  }
}

}  // namespace warpcache::store
