// SPDX-License-Identifier: Apache-2.0
#include "store/cuda/cuda_store.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <future>

#include "store/reclaim/maintainer.h"

namespace warpcache::store {

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto kEpochPause = std::chrono::microseconds(50);
constexpr uint64_t kReachFactor = 4;
constexpr uint64_t kIndexShareAtStart = 12;  // of the memory, one part in 12: enough for items of
                                             // 200 bytes
constexpr uint64_t kReclaimShare = 16;  // one part in 16 of the memory is reclaimed by one call at
                                        // most
// One batch takes as much memory as many clients of a CPU in a second: more is kept free. Where the
// batches under way take more than that, requests wait, and up to a sixteenth is kept free.
constexpr uint32_t kLowWaterShare = 64;
constexpr uint32_t kLowWaterShareMax = 16;
constexpr uint32_t kEvacuatorsMax = kEvacuationsMax - 1;
// The limit can be raised later if the tables for that take at most this share of the free memory.
constexpr uint64_t kReachShare = 4;
// The device holds at least this share of the memory: twice what the index starts with.
constexpr uint64_t kNearShare = kIndexShareAtStart / 2;
// Share of the free device memory that is kept for others, and for the buffers of engines if these
// do not need more.
constexpr uint64_t kSpareShare = 8;

// Free memory of the device; 0 after an error.
uint64_t free_bytes(gpu::DeviceFaults& faults) {
  size_t free = 0;
  size_t total = 0;
  return faults.check(cudaMemGetInfo(&free, &total), "asking for the GPU's memory") ? free : 0;
}

}  // namespace

CudaStore::CudaStore(const CudaStoreConfig& config, gpu::DeviceFaults& faults)
    : StoreOwner(config.store.manual_clock),
      config_(config),
      faults_(faults),
      copies_(config.store.copies),
      evictions_(config.store.observer, faults) {
  config_.store.copies = {};  // device code has no use for them, nor for the observer
  config_.store.observer = nullptr;
}

std::string CudaStore::create(const CudaStoreConfig& config, gpu::DeviceFaults& faults,
                              std::unique_ptr<CudaStore>* store) {
  std::unique_ptr<CudaStore> made(new CudaStore(config, faults));
  std::string failure = made->start();
  if (failure.empty()) *store = std::move(made);
  return failure;
}

CudaStore::~CudaStore() {
  {
    const std::lock_guard guard(wake_mutex_);
    stopping_ = true;
  }
  wake_condition_.notify_one();
  if (thread_.joinable()) thread_.join();
  evictions_.stop();
}

std::string CudaStore::start() {
  StoreConfig& config = config_.store;
  config.readers_max = 1 + config_.engines * config_.blocks_per_engine;
  config.threads = config.readers_max;
  config.low_water_share = kLowWaterShare;
  config.low_water_share_max = kLowWaterShareMax;
  config.evacuators_max = kEvacuatorsMax;
  if (!stream_.create(gpu::CudaStream::Priority::kHigh) ||
      !stats_stream_.create(gpu::CudaStream::Priority::kHigh)) {
    return "the GPU gives no stream";
  }
  take_kernel_memory(stream_.get());
  const cudaError_t first = cudaGetLastError();
  if (first == cudaErrorMemoryAllocation) return "the GPU has too little memory for kernels alone";
  if (!faults_.check(first, "starting a kernel") || !wait("starting a kernel"))
    return faults_.why();
  const uint64_t free = free_bytes(faults_);
  if (faults_.failed()) return faults_.why();
  if (config.memory_reach == 0) {
    const bool may_grow =
        !config_.values_on_host && kReachFactor * config.memory_limit <= free / kReachShare;
    config.memory_reach = config.memory_limit * (may_grow ? kReachFactor : 1);
  }
  // Keys come by the hundred thousand at a time: an index that is large from the start need not
  // grow at that rate.
  if (config.hash_power == 0) {
    const uint64_t slots = config.memory_limit / kIndexShareAtStart / sizeof(Set) * kWays;
    config.hash_power = static_cast<uint32_t>(std::bit_width(slots)) - 1;
  }
  const Geometry geometry = geometry_of(config);
  evacuators_ = evacuators_for(geometry.segments_limit, kEvacuatorsMax);
  tables_ = Tables(config, geometry);
  const std::string refusal = take_memory(geometry);
  if (!refusal.empty()) return refusal;

  std::vector<uint8_t> filled(tables_.bytes(), 0);
  const bool is_split = far_arena_.bytes() != 0;
  const uint64_t seed = seed_of(config);
  Core shadow = tables_.core_at(filled.data(), arena_.data(), seed);
  if (is_split) shadow.near_bytes = arena_.bytes();
  tables_.fill(config, shadow, unix_start());
  shadow.shared->epoch_slots = config.readers_max;
  shadow.shared->evicted_mail = mail_.as<EvictedMail>();
  core_ = tables_.core_at(device_tables_.data(), arena_.data(), seed);
  if (is_split) {
    core_.near_bytes = arena_.bytes();
    core_.far_arena = far_arena_.data() - arena_.bytes();
  }
  const cudaError_t error = cudaMemcpyAsync(device_tables_.data(), filled.data(), tables_.bytes(),
                                            cudaMemcpyHostToDevice, stream_.get());
  if (!faults_.check(error, "filling the store's tables") || !wait("filling the store's tables")) {
    return faults_.why();
  }
  if (!call(ServiceOp::kStart, 0)) return faults_.why();
  if (evictions_.on()) {
    const std::string why = evictions_.start(
        [this](uint64_t address) { return call(ServiceOp::kLogEvictions, address); });
    if (!why.empty()) return why;
  }
  tick();
  if (config.maintenance_thread) start_thread();
  return faults_.failed() ? faults_.why() : "";
}

// The arena comes last and gets what the rest leaves.
std::string CudaStore::take_memory(const Geometry& geometry) {
  const auto device = gpu::CudaMemory::Place::kDevice;
  const auto host = gpu::CudaMemory::Place::kHost;
  if (!device_tables_.allocate(device, tables_.bytes()) ||
      !maintainer_.allocate(device, maintainer_bytes(evacuators_)) ||
      !scratch_.allocate(device, config_.block_scratch_bytes * config_.store.readers_max)) {
    return "the GPU has too few megabytes free for the tables of -m " +
           std::to_string(config_.store.memory_limit >> 20);
  }
  if (!stats_copy_.allocate(host, tables_.stats_bytes()) ||
      !call_.allocate(host, sizeof(ServiceCall)) || !walk_call_.allocate(host, sizeof(WalkCall)) ||
      !walk_buffer_.allocate(host, uint64_t{kWalkedBytes} * kWalkedMax)) {
    return "the system does not give pinned memory";
  }
  if (copies_.on() &&
      (!mail_.allocate(host, sizeof(EvictedMail)) || !noted_.allocate(host, sizeof(NotedKeys)))) {
    return "the system does not give pinned memory";
  }
  if (evictions_.on() && !evictions_.take_memory()) {
    return "the system does not give pinned memory for the log of evictions";
  }
  return take_arena(geometry);
}

// The device's part has whole segments at the low end, where the index is; the host's part follows.
std::string CudaStore::take_arena(const Geometry& geometry) {
  const uint64_t free = free_bytes(faults_);
  if (faults_.failed()) return faults_.why();
  const uint64_t bytes = geometry.arena_bytes();
  const uint64_t piece = geometry.segment_size * kFreeWordSegments;
  const uint64_t index = geometry.segment_size * geometry.index_segments;
  const uint64_t spare = std::max(free / kSpareShare, config_.engines * config_.engine_bytes);
  const uint64_t most = free - std::min(free, spare);
  uint64_t near = config_.values_on_host ? std::max(bytes / kNearShare, index + piece) : bytes;
  near = std::min(near, bytes);
  if (near < bytes || near > most) near = std::min(near, most) / piece * piece;
  if (near <= index) {
    return "the GPU has " + std::to_string(free >> 20) +
           " megabytes free, too few for the index of -m " +
           std::to_string(config_.store.memory_limit >> 20);
  }
  if (!arena_.allocate(gpu::CudaMemory::Place::kDevice, near)) {
    return "the GPU does not give " + std::to_string(near >> 20) + " megabytes";
  }
  constexpr auto kHost = gpu::CudaMemory::Place::kHost;
  constexpr auto kAny = gpu::CudaMemory::Content::kAny;
  if (near < bytes && !far_arena_.allocate(kHost, bytes - near, kAny)) {
    return "the system does not give " + std::to_string((bytes - near) >> 20) +
           " megabytes of pinned memory for what the GPU does not hold of -m " +
           std::to_string(config_.store.memory_limit >> 20);
  }
  return "";
}

BlockResources CudaStore::resources() const {
  return {core_, tables_.counters_at(device_tables_.data()), scratch_.data()};
}

uint32_t CudaStore::take_readers() {
  const uint32_t first = readers_taken_;
  readers_taken_ += config_.blocks_per_engine;
  WC_ASSERT(readers_taken_ <= config_.store.readers_max);
  return first;
}

// --- Maintenance

void CudaStore::wake() {
  if (awake_.load(std::memory_order_relaxed)) return;
  {
    const std::lock_guard guard(wake_mutex_);
    awake_.store(true, std::memory_order_relaxed);
  }
  wake_condition_.notify_one();
}

// Returns when the thread is ready.
void CudaStore::start_thread() {
  std::promise<void> attached;
  const std::future<void> is_attached = attached.get_future();
  thread_ = std::thread([this, attached = std::move(attached)]() mutable {
    (void)faults_.check(gpu::attach_thread(), "starting the store's maintenance");
    attached.set_value();
    run();
  });
  is_attached.wait();
}

void CudaStore::run() {
  SteadyClock::time_point second = next_second();
  while (!faults_.failed()) {
    {
      std::unique_lock lock(wake_mutex_);
      wake_condition_.wait_until(lock, second, [this] { return stopping_ || awake_.load(); });
      if (stopping_) return;
      awake_.store(false);
    }
    if (SteadyClock::now() >= second) {
      second += std::chrono::seconds(1);
      tick();
    }
    maintain();
  }
}

bool CudaStore::is_stopping() {
  const std::lock_guard guard(wake_mutex_);
  return stopping_;
}

// Several launches, so that another call of the store waits for one launch at most.
void CudaStore::maintain() {
  ServiceCall result;
  do {
    if (!call(ServiceOp::kMaintain, 0, &result)) return;
  } while (result.result != 0 && !is_stopping());
}

bool CudaStore::wait(const char* what) {
  if (!faults_.check(cudaGetLastError(), what)) return false;
  if (mail_.bytes() != 0) {
    cudaError_t state = cudaErrorNotReady;
    for (uint32_t round = 0; state == cudaErrorNotReady; ++round) {
      if (round != 0) detail::wait_round(round);
      answer_mail();
      state = cudaStreamQuery(stream_.get());
    }
    if (!faults_.check(state, what)) return false;
  }
  return faults_.check(cudaStreamSynchronize(stream_.get()), what);
}

bool CudaStore::call(ServiceOp op, uint64_t argument, ServiceCall* result, Bytes key,
                     MutableBytes* parts) {
  const std::lock_guard guard(service_mutex_);
  if (!call_locked(op, argument, key, parts)) return false;
  if (result != nullptr) *result = *call_.as<ServiceCall>();
  return true;
}

// REQUIRES: service_mutex_ is held.
bool CudaStore::call_locked(ServiceOp op, uint64_t argument, Bytes key, MutableBytes* parts) {
  if (faults_.failed()) return false;
  if (copies_.on()) flush_copies_before(op, argument);
  ServiceCall& message = *call_.as<ServiceCall>();
  message.op = op;
  message.argument = argument;
  message.parts = parts;
  message.key_size = static_cast<uint32_t>(key.size);
  std::copy_n(key.data, key.size, message.key);
  if (++launch_number_ == 0) ++launch_number_;
  launch_service(core_, tables_.counters_at(device_tables_.data()), maintainer_.data(), &message,
                 launch_number_, evacuators_, stream_.get());
  if (!wait("maintaining the store")) return false;
  if (evictions_.on()) evictions_.saw_missed(message.missed_evictions);
  if (op == ServiceOp::kFlushPrefix || op == ServiceOp::kClock) next_flush_due_ = message.next_due;
  return true;
}

Status CudaStore::reclaim(uint64_t bytes, uint64_t missing) {
  bytes = std::max(bytes, std::min(missing, config_.store.memory_limit / kReclaimShare));
  const auto patience = std::chrono::milliseconds(config_.store.reclaim_wait_ms_max);
  const SteadyClock::time_point deadline = SteadyClock::now() + patience;
  while (true) {
    ServiceCall result;
    if (!call(ServiceOp::kReclaim, bytes, &result)) return Status::kOutOfMemory;
    const auto space = static_cast<Maintainer::Space>(result.result);
    if (space == Maintainer::Space::kReady) return Status::kOk;
    if (space == Maintainer::Space::kNone) return Status::kOutOfMemory;
    if (SteadyClock::now() >= deadline) return Status::kOutOfMemory;
    std::this_thread::sleep_for(kEpochPause);
  }
}

void CudaStore::apply_clock(uint32_t now) { (void)call(ServiceOp::kClock, now); }

void CudaStore::apply_flush() { (void)call(ServiceOp::kFlush, 0); }

// What a device stored that has failed is gone: it counts as flushed.
Status CudaStore::apply_prefix_flush(Bytes prefix, uint32_t due) {
  ServiceCall result;
  return call(ServiceOp::kFlushPrefix, due, &result, prefix) ? result.status : Status::kOk;
}

void CudaStore::apply_expiry() { (void)call(ServiceOp::kExpire, 0); }

// The clock of the host, not the copy on the device: that one may be seconds old while others keep
// the device busy.
Clock CudaStore::clock() const {
  const uint32_t now = read_clock();
  if (copies_.on()) copies_.report_clock(now);
  return {now, unix_start()};
}

bool CudaStore::set_memory_limit(uint64_t bytes) {
  const uint64_t segments = std::min<uint64_t>(bytes >> core_.segment_shift, UINT32_MAX);
  ServiceCall result;
  if (!call(ServiceOp::kSetTarget, segments, &result) || result.result == 0) return false;
  wake();
  return true;
}

// --- Copies

// What the operation flushes. Items are not read for copies meanwhile: that is an operation too.
void CudaStore::flush_copies_before(ServiceOp op, uint64_t argument) {
  const bool due = next_flush_due_ != 0 && next_flush_due_ <= argument;
  if (op == ServiceOp::kClock) copies_.report_clock(static_cast<uint32_t>(argument));
  if (op == ServiceOp::kFlush || (op == ServiceOp::kFlushPrefix && argument == 0) ||
      (op == ServiceOp::kClock && due)) {
    copies_.flush();
  }
}

Status CudaStore::visit_item(Bytes key, const std::function<void(const Item&)>& visit) {
  if (key.size == 0 || key.size > UINT8_MAX) return Status::kOk;
  const std::lock_guard guard(service_mutex_);
  if (faults_.failed() || !faults_.check(gpu::attach_thread(), "reading an item")) {
    return Status::kOk;
  }
  const CopyGuard::Seen seen = copies_.look(key);
  if (seen.changing) return Status::kDeferred;
  if (!call_locked(ServiceOp::kRead, 0, key, nullptr)) return Status::kOk;
  ServiceCall& message = *call_.as<ServiceCall>();
  if (message.result == 0) return Status::kOk;
  message.item.store_flush_generation(copies_.generation());
  const bool filled = copies_.fill(seen, [&] { visit(message.item); });
  return filled ? Status::kOk : Status::kDeferred;
}

void CudaStore::note_read(const std::vector<std::vector<uint8_t>>& keys) {
  for (size_t first = 0; first < keys.size(); first += kNotedMax) {
    const std::lock_guard guard(service_mutex_);
    if (faults_.failed() || !faults_.check(gpu::attach_thread(), "noting reads")) return;
    NotedKeys& noted = *noted_.as<NotedKeys>();
    noted.count = static_cast<uint32_t>(std::min<size_t>(keys.size() - first, kNotedMax));
    for (uint32_t i = 0; i < noted.count; ++i) {
      const std::vector<uint8_t>& key = keys[first + i];
      WC_ASSERT(key.size() <= sizeof noted.keys[i].text);
      noted.keys[i].size = static_cast<uint32_t>(key.size());
      std::copy(key.begin(), key.end(), noted.keys[i].text);
    }
    launch_note_read(core_, &noted, stream_.get());
    if (!wait("noting reads")) return;
    for (uint32_t i = 0; i < noted.count; ++i) {
      const NotedKeys::Key& key = noted.keys[i];
      if (key.found == 0) copies_.drop({key.text, key.size});
    }
  }
}

void CudaStore::answer_mail() {
  EvictedMail& mail = *mail_.as<EvictedMail>();
  const uint32_t sent = load_acquire(&mail.sent);
  if (WC_LIKELY(sent == load_relaxed(&mail.answered)) || !spin_try_lock(&mail_lock_)) return;
  const uint32_t answered = load_relaxed(&mail.answered);
  if (answered != EvictedMail::kClosed && answered != load_acquire(&mail.sent)) {
    const uint32_t number = load_acquire(&mail.sent);
    copies_.drop({mail.key, mail.key_size});
    store_release(&mail.answered, number);
  }
  spin_unlock(&mail_lock_);
}

void CudaStore::stop_copies() {
  if (!copies_.on()) return;
  copies_.flush();
  const SpinGuard guard(&mail_lock_);
  store_release(&mail_.as<EvictedMail>()->answered, EvictedMail::kClosed);
}

// --- Reservations

Status CudaStore::reserve(uint8_t key_size, uint32_t value_size, MutableBytes* parts,
                          uint32_t* id) {
  const uint64_t sizes = uint64_t{key_size} << 32 | value_size;
  // A reservation takes whole segments, also for a small item.
  const uint64_t bytes =
      std::max<uint64_t>(item_bytes(key_size, value_size), core_.plain_size_max() + 1);
  for (uint32_t round = 0; round < kReserveRoundsMax; ++round) {
    ServiceCall result;
    if (!call(ServiceOp::kReserve, sizes, &result, {}, parts)) break;
    *id = static_cast<uint32_t>(result.result);
    // Others hold all that may be reserved: reclaim() would not help.
    if (result.status == Status::kOutOfMemory) return Status::kDeferred;
    if (result.status != Status::kDeferred) return result.status;
    if (reclaim(bytes, bytes) != Status::kOk) break;
  }
  return Status::kOutOfMemory;
}

void CudaStore::abandon(uint32_t id) { (void)call(ServiceOp::kAbandon, id); }

bool CudaStore::is_on_host(const MutableBytes* parts, uint32_t value_size) const {
  for (uint64_t seen = 0; seen < value_size; seen += parts->size, ++parts) {
    const auto offset = static_cast<uint64_t>(parts->data - core_.arena);
    if (offset < core_.near_bytes) return false;
  }
  return true;
}

// --- Looking at it all

StoreStats CudaStore::stats() const {
  const std::lock_guard guard(stats_mutex_);
  if (faults_.failed()) return {};
  const cudaError_t error =
      cudaMemcpyAsync(stats_copy_.data(), device_tables_.data(), tables_.stats_bytes(),
                      cudaMemcpyDeviceToHost, stats_stream_.get());
  if (!faults_.check(error, "reading the store's tables") ||
      !faults_.check(cudaStreamSynchronize(stats_stream_.get()), "reading the store's tables")) {
    return {};
  }
  const Core copy = tables_.core_at(stats_copy_.data(), arena_.data(), core_.seed.value);
  copy.shared->segment_lock = 0;  // the copy may show it as held
  return tables_.stats(copy, tables_.counters_at(stats_copy_.data()));
}

Status CudaStore::walk(uint64_t& cursor, const std::function<void(const WalkedItem&)>& visit) {
  const std::lock_guard walker(walk_mutex_);
  WalkCall& message = *walk_call_.as<WalkCall>();
  message = {};
  message.first_pair = static_cast<uint32_t>(cursor);
  {
    const std::lock_guard guard(service_mutex_);
    if (faults_.failed()) return Status::kNotSupported;
    // The caller is a thread that makes long replies; it has not used the device before.
    if (!faults_.check(gpu::attach_thread(), "walking the store")) return Status::kNotSupported;
    launch_walk(core_, &message, walk_buffer_.data(), stream_.get());
    if (!wait("walking the store")) return Status::kNotSupported;
  }
  for (uint32_t i = 0; i < message.count; ++i) {
    const auto* item =
        reinterpret_cast<const Item*>(walk_buffer_.data() + uint64_t{i} * kWalkedBytes);
    visit({item, item->key(), item_footprint(*item)});
  }
  cursor = message.next_pair < message.pair_count ? message.next_pair : kWalkEnd;
  return Status::kOk;
}

bool CudaStore::inspect(Bytes key, Item* header) {
  ServiceCall result;
  if (!call(ServiceOp::kInspect, 0, &result, key) || result.result == 0) return false;
  *header = result.item;
  return true;
}

void CudaStore::watch_evictions() {
  if (evictions_.on()) evictions_.begin();
}

}  // namespace warpcache::store
