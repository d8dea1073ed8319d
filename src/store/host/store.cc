// SPDX-License-Identifier: Apache-2.0
#include "store/host/store.h"

#include <algorithm>
#include <mutex>

#include "store/host/early_free.h"
#include "store/host/maintenance.h"
#include "store/host/memory.h"
#include "store/host/restart_file.h"

namespace warpcache::store {

namespace {

// Readers that the owner registers: for maintenance, for inspect() and for walk(). They use no
// append point.
constexpr uint32_t kOwnReaders = 3;
constexpr uint64_t kPairsWalkedAtOnce = 8;
constexpr uint32_t kFreedForReservation = 4;    // retired segments and chains, at each reservation
constexpr uint32_t kRetiredForReservation = 4;  // of the newest segments
constexpr uint32_t kLooksMax = 4;               // looks at a pair, before it is locked

struct PairItems {
  uint32_t count = 0;
  const Item* item[(2 + kOverflowChainMax) * kWays];
};

PairItems look_at(const Core& core, Set* pair) {
  PairItems seen;
  const PairSets sets = sets_of(core, pair);
  for (uint32_t i = 0; i < sets.count * kWays; ++i) {
    const Slot slot = load_acquire(&sets.set[i / kWays]->slots[i % kWays]);
    if (slot != 0) seen.item[seen.count++] = core.item_in(slot);
  }
  return seen;
}

// All items of a pair. It may lack keys that moved within the pair meanwhile.
PairItems items_of(const Core& core, Set* pair) {
  for (uint32_t look = 0; look < kLooksMax; ++look) {
    const uint32_t before = load_acquire(&pair->state);
    const PairItems seen = look_at(core, pair);
    if (same_places(before, load_acquire(&pair->state))) return seen;
  }
  const SpinGuard guard(&pair->lock);
  return look_at(core, pair);
}

}  // namespace

struct Store::Memory {
  RestartFile file;  // open as long as the arena is mapped
  Mapping arena;
  Mapping tables;
  ThreadContext maintenance_thread;
  std::mutex registration;
  std::mutex inspection;  // guards what follows
  ThreadContext inspector;
  std::mutex walking;  // guards what follows
  ThreadContext walker;
};

Store::Store(const StoreConfig& config)
    : StoreOwner(config.manual_clock), config_(config), memory_(std::make_unique<Memory>()) {}

Store::~Store() {
  if (maintenance_ != nullptr) maintenance_->stop();
}

Status Store::create(const StoreConfig& config, std::unique_ptr<Store>* store, std::string* why) {
  std::string unused;
  std::unique_ptr<Store> made(new Store(config));
  const Status status = made->start(why == nullptr ? &unused : why);
  if (status == Status::kOk) *store = std::move(made);
  return status;
}

namespace {

// Raise it with each change of Item, Set, SegmentEntry or Shared, and of what their fields mean.
constexpr uint32_t kLayoutVersion = 4;

RestartHeader header_for(const StoreConfig& config, const Geometry& geometry) {
  RestartHeader header = restart_header(config.version);
  header.layout = kLayoutVersion;
  header.base_depth = geometry.base_depth;
  header.segment_size = geometry.segment_size;
  header.arena_bytes = geometry.arena_bytes();
  return header;
}

}  // namespace

bool Store::map_arena(Geometry& geometry, std::string* why) {
  Memory& memory = *memory_;
  if (config_.file.empty()) {
    if (memory.arena.map(geometry.arena_bytes(), config_.huge_pages)) return true;
    // Where the system counts address space as memory, the limit alone must do.
    geometry.segments_max = geometry.segments_limit;
    return memory.arena.map(geometry.arena_bytes(), config_.huge_pages);
  }
  // The file is as large as the limit: it cannot be raised.
  geometry.segments_max = geometry.segments_limit;
  *why = memory.file.open(config_.file, header_for(config_, geometry));
  return why->empty() && memory.file.map(memory.arena, config_.huge_pages);
}

// Continues with the items of the file. Threads' counts go to the first reader.
void Store::take_over() {
  RestartFile& file = memory_->file;
  if (!file.found()) return;
  const RestartHeader& header = file.header();
  const bool restored = tables_.restore(file.tables(), core_);
  WC_ASSERT(restored);
  file.forget_tables();
  continue_clock(header.unix_start, header.now, header.flush_at);
  flush_copies(core_, core_.shared->flush_generation);
  core_.shared->unix_start = header.unix_start;
  counters_[0].add(StoreCounter::kItems, header.items);
  counters_[0].add(StoreCounter::kTotalItems, header.items);
  counters_[0].add(StoreCounter::kBytes, header.item_bytes);
  counters_[0].add(StoreCounter::kOverflowSets, header.overflow_sets);
}

const std::string& Store::file_note() const { return memory_->file.note(); }

bool Store::took_over() const { return memory_->file.found(); }

std::string Store::save() {
  maintenance_->stop();
  for (ThreadContext* own : {&memory_->maintenance_thread, &memory_->inspector, &memory_->walker}) {
    unregister_thread(own);
  }
  maintenance_->seal_all();
  for (uint32_t i = 0; i < core_.shared->append_point_count; ++i) {
    for (SegmentId& open : core_.append_points[i].open) {
      if (open != kNoSegment) seal_segment(core_, open);
      open = kNoSegment;
    }
  }
  const Shared& shared = *core_.shared;
  if (shared.pinned_segments != 0 || shared.reserved_segments != 0) {
    return "-e " + config_.file + ": memory is still in use, so the items are not kept.";
  }
  const StoreStats totals = stats();
  Geometry geometry = geometry_of(config_);
  geometry.segments_max = geometry.segments_limit;
  RestartHeader header = header_for(config_, geometry);
  header.seed = core_.seed.value;
  header.unix_start = shared.unix_start;
  header.now = shared.now;
  header.flush_at = flush_at();
  header.items = totals.get(StoreCounter::kItems);
  header.item_bytes = totals.get(StoreCounter::kBytes);
  header.overflow_sets = totals.get(StoreCounter::kOverflowSets);
  return memory_->file.save(header, tables_.saved(core_));
}

Status Store::start(std::string* why) {
  Geometry geometry = geometry_of(config_);
  if (!map_arena(geometry, why)) return Status::kOutOfMemory;
  tables_ = Tables(config_, geometry);
  if (!memory_->tables.map(tables_.bytes(), false)) return Status::kOutOfMemory;
  core_ = tables_.core_at(memory_->tables.data(), memory_->arena.data(),
                          memory_->file.found() ? memory_->file.header().seed : seed_of(config_));
  counters_ = tables_.counters_at(memory_->tables.data());
  tables_.fill(config_, core_, unix_start());
  take_over();
  core_.shared->drop_pages_context = this;
  core_.shared->drop_pages = [](void* self, SegmentId id) {
    const Store& store = *static_cast<Store*>(self);
    store.memory_->arena.drop(uint64_t{id} << store.core_.segment_shift,
                              store.core_.segment_size());
  };

  for (ThreadContext* own : {&memory_->maintenance_thread, &memory_->inspector, &memory_->walker}) {
    const Status registered = register_thread(own);
    WC_ASSERT(registered == Status::kOk);
  }
  maintenance_ = std::make_unique<Maintenance>(
      core_, &memory_->maintenance_thread, config_.reclaim_wait_ms_max, [this](uint32_t segments) {
        memory_->arena.ask_for_huge_pages(uint64_t{segments} << core_.segment_shift);
      });
  // A limit that was lowered while the file was used.
  if (took_over()) (void)maintenance_->set_limit(geometry.segments_limit);
  tick();
  if (config_.maintenance_thread) {
    core_.shared->low_on_segments = [](void* maintenance) {
      static_cast<Maintenance*>(maintenance)->wake();
    };
    core_.shared->low_on_segments_context = maintenance_.get();
    maintenance_->start(
        next_second(), [](void* store) { static_cast<Store*>(store)->tick(); }, this);
  }
  return Status::kOk;
}

// --- Threads

Status Store::register_thread(ThreadContext* thread) {
  const std::lock_guard guard(memory_->registration);
  for (uint32_t i = 0; i < tables_.readers_max(); ++i) {
    EpochSlot& slot = core_.epochs[i];
    if (slot.taken != 0) continue;
    slot.taken = 1;
    // Before its owner can enter: a thread that unlinks later looks at this slot.
    if (i >= core_.shared->epoch_slots) exchange_seq_cst(&core_.shared->epoch_slots, i + 1);
    *thread = {};
    thread->slot = &slot;
    thread->counters = &counters_[i];
    thread->index = i;
    thread->append_point =
        (i < kOwnReaders ? 0 : i - kOwnReaders) % core_.shared->append_point_count;
    return Status::kOk;
  }
  return Status::kOutOfMemory;
}

void Store::unregister_thread(ThreadContext* thread) {
  settle_growth(core_, *thread);
  const std::lock_guard guard(memory_->registration);
  WC_ASSERT(load_acquire(&thread->slot->epoch) == kEpochIdle);
  thread->slot->taken = 0;
  *thread = {};
}

// --- Free space

Status Store::reclaim(uint64_t bytes) { return maintenance_->reclaim(bytes); }

void Store::maintain() { maintenance_->maintain(); }

bool Store::set_memory_limit(uint64_t bytes) {
  const uint64_t segments = std::min<uint64_t>(bytes >> core_.segment_shift, UINT32_MAX);
  return maintenance_->set_limit(static_cast<uint32_t>(segments));
}

Status Store::reserve(uint8_t key_size, uint32_t value_size, uint32_t* id,
                      const ThreadContext* thread) {
  const uint32_t append_point = thread == nullptr ? kApart : thread->append_point;
  // A reservation may take a whole segment, also for a small item.
  const uint64_t bytes =
      std::max<uint64_t>(item_bytes(key_size, value_size), core_.plain_size_max() + 1);
  maintenance_->retire_dead(kRetiredForReservation);
  free_some_retired(core_, kFreedForReservation);
  for (uint32_t round = 0; round < kReserveRoundsMax; ++round) {
    const Status status = reserve_item(core_, key_size, value_size, append_point, id);
    // Others hold all that may be reserved: reclaim() would not help.
    if (status == Status::kOutOfMemory) return Status::kDeferred;
    if (status != Status::kDeferred) return status;
    if (maintenance_->reclaim(bytes) != Status::kOk) break;
  }
  return Status::kOutOfMemory;
}

MutableBytes Store::reservation_window(uint32_t id, uint32_t offset) const {
  const Item* item = reservation_item(core_, id);
  WC_ASSERT(item != nullptr && offset < item->value_size);
  return value_window(core_, *item, offset);
}

void Store::abandon_reservation(uint32_t id) { store::abandon_reservation(core_, id); }

// --- Clock

void Store::apply_clock(uint32_t now) {
  report_clock(core_, now);
  store_release(&core_.shared->now, now);
  flush_due_prefixes(core_, now);
}

void Store::apply_flush() { flush_store(core_); }

Status Store::apply_prefix_flush(Bytes prefix, uint32_t due) {
  return store::flush_prefix(core_, prefix, due);
}

void Store::apply_expiry() { maintenance_->expire(); }

// --- Inspection

bool Store::inspect(Bytes key, Item* header) {
  const std::lock_guard guard(memory_->inspection);
  const StoreRef store = ref();
  store.enter_batch(memory_->inspector);
  const Found found = store.find(store.hash(key), key);
  const bool alive = found && store.alive(*found.item, store.clock().now);
  if (alive) *header = *found.item;
  store.leave_batch(memory_->inspector);
  return alive;
}

void Store::note_read(Bytes key) {
  const std::lock_guard guard(memory_->inspection);
  const StoreRef store = ref();
  store.enter_batch(memory_->inspector);
  const Found found = store.find(store.hash(key), key);
  const uint32_t now = store.clock().now;
  if (found && store.alive(*found.item, now)) record_hit(found, now);
  store.leave_batch(memory_->inspector);
}

bool Store::visit_locked(Bytes key, const std::function<void(const Item&)>& visit) {
  const std::lock_guard guard(memory_->inspection);
  const StoreRef store = ref();
  const uint64_t hash = store.hash(key);
  store.enter_batch(memory_->inspector);
  bool alive = false;
  {
    LockedPair pair(store, hash);
    const Found found = pair.find(key);
    alive = found && pair.alive(*found.item, store.clock().now);
    if (alive) {
      pair.renew(*found.item);
      visit(*found.item);
    }
  }
  store.leave_batch(memory_->inspector);
  return alive;
}

// Reads like any reader, so that no request waits for a walk: a pair is locked only if keys of it
// move during each of kLooksMax looks.
Status Store::walk(uint64_t& cursor, const std::function<void(const WalkedItem&)>& visit) {
  const std::lock_guard guard(memory_->walking);
  const uint32_t now = load_relaxed(&core_.shared->now);
  const StoreRef store = ref();
  uint64_t pairs = load_acquire(&core_.shared->pair_count);
  store.enter_batch(memory_->walker);
  const uint64_t end = std::min(pairs, cursor + kPairsWalkedAtOnce);
  for (; cursor < end; ++cursor) {
    const PairItems seen = items_of(core_, pair_at(core_, static_cast<PairNumber>(cursor)));
    for (uint32_t i = 0; i < seen.count; ++i) {
      const Item* item = seen.item[i];
      if (is_alive(core_, *item, now)) visit({item, item->key(), item_footprint(*item)});
    }
  }
  store.leave_batch(memory_->walker);
  if (cursor < pairs) return Status::kOk;
  // A split in progress may have moved keys to the pair after the last.
  {
    const SpinGuard splits(&core_.shared->split_lock);
    pairs = load_acquire(&core_.shared->pair_count);
  }
  if (cursor == pairs) cursor = kWalkEnd;
  return Status::kOk;
}

}  // namespace warpcache::store
