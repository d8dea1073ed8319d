// SPDX-License-Identifier: Apache-2.0
#include <new>

#include "gpu/start_kernel.cuh"
#include "gpu/warp.cuh"
#include "store/cuda/service_kernels.h"
#include "store/reclaim/maintainer.h"

namespace warpcache::store {

namespace {

struct DeviceMaintainer {
  ThreadContext thread;
  WorkerGroup worker_group;
  Evacuators evacuators;
  Maintainer maintainer;
};

// They lie directly after the state.
__device__ Evacuator* evacuators_of(DeviceMaintainer* state) {
  return reinterpret_cast<Evacuator*>(state + 1);
}
static_assert(sizeof(DeviceMaintainer) % alignof(Evacuator) == 0);

// A block of maintenance: one thread leads, whole warps work. The leader's warp has no worker: its
// threads would have to wait for the leader's branch, and the leader would wait for them. Each
// evacuator is such a block too.
constexpr uint32_t kWorkers = 256;
constexpr uint32_t kServiceThreads = gpu::kWarpSize + kWorkers;
// The block runs beside the persistent kernel and must fit into the registers that one leaves free:
// a third of a multiprocessor's.
constexpr uint32_t kServiceBlocksMin = 3;

// Steps of one launch: other calls of the store wait for its end.
constexpr uint32_t kMaintainSteps = 64;

__device__ void inspect(const Core& core, ServiceCall& call) {
  const StoreRef store{core};
  uint8_t key[256];
  for (uint32_t i = 0; i < call.key_size; ++i) key[i] = call.key[i];
  const Bytes bytes = {key, call.key_size};
  const Found found = store.find(store.hash(bytes), bytes);
  call.result = 0;
  if (!found || !store.alive(*found.item, store.clock().now)) return;
  call.item = *found.item;
  call.result = 1;
}

// The value is copied without the lock: the reader's epoch keeps its bytes. Whether the item is
// still the same is the host's to know (copy_guard.h).
__device__ void read(const Core& core, ServiceCall& call) {
  const StoreRef store{core};
  uint8_t key[256];
  for (uint32_t i = 0; i < call.key_size; ++i) key[i] = call.key[i];
  const Bytes bytes = {key, call.key_size};
  const Item* item = nullptr;
  {
    LockedPair pair(store, store.hash(bytes));
    const Found found = pair.find(bytes);
    call.result = found && pair.alive(*found.item, store.clock().now) ? 1 : 0;
    if (call.result == 0) return;
    found.item->store_bits(static_cast<uint8_t>(found.item->load_bits() | kItemCopied));
    call.item = *found.item;
    item = found.item;
  }
  if (item->chained()) return;
  const uint32_t size = item->value_size < kReadValueMax ? item->value_size : kReadValueMax;
  for (uint32_t i = 0; i < size; ++i) call.key[call.key_size + i] = item->value_data()[i];
}

// The next second at which a prefix is flushed; 0: none.
__device__ uint32_t next_flush_due(const Core& core) {
  Shared& shared = *core.shared;
  uint32_t next = 0;
  if (load_relaxed(&shared.flushes_due) == 0) return next;
  const SpinGuard flushes(&shared.flush_lock);
  for (uint32_t i = 0; i < load_relaxed(&shared.flushed_prefix_count); ++i) {
    const uint32_t due = load_relaxed(&shared.flushed_prefixes[i].due);
    if (due != 0 && (next == 0 || due < next)) next = due;
  }
  return next;
}

__device__ void reserve(const Core& core, ServiceCall& call) {
  uint32_t id = 0;
  call.status = reserve_item(core, static_cast<uint8_t>(call.argument >> 32),
                             static_cast<uint32_t>(call.argument), kApart, &id);
  call.result = id;
  if (call.status != Status::kOk) return;
  ValuePieces pieces(core, *reservation_item(core, id));
  uint32_t count = 0;
  for (MutableBytes piece = pieces.first_writable(); !piece.empty();
       piece = pieces.next_writable()) {
    call.parts[count++] = piece;
  }
}

__device__ void note_missed_evictions(const Core& core, ServiceCall& call) {
  const EvictionLog* const log = eviction_log(core);
  if (log != nullptr) call.missed_evictions = load_relaxed(&log->missed);
}

__device__ void serve(const Core& core, Maintainer& maintainer, ServiceCall& call) {
  switch (call.op) {
    case ServiceOp::kStart:
      break;
    case ServiceOp::kMaintain:
      call.result = maintainer.maintain(kMaintainSteps) ? 1 : 0;
      break;
    case ServiceOp::kReclaim: {
      Maintainer::Space space = Maintainer::Space::kProgress;
      while (space == Maintainer::Space::kProgress) space = maintainer.reclaim(call.argument);
      call.result = static_cast<uint64_t>(space);
      break;
    }
    case ServiceOp::kFlush:
      flush_store(core);
      break;
    case ServiceOp::kFlushPrefix:
      call.status =
          flush_prefix(core, {call.key, call.key_size}, static_cast<uint32_t>(call.argument));
      call.next_due = next_flush_due(core);
      break;
    case ServiceOp::kClock:
      store_relaxed(&core.shared->now, static_cast<uint32_t>(call.argument));
      flush_due_prefixes(core, static_cast<uint32_t>(call.argument));
      call.next_due = next_flush_due(core);
      break;
    case ServiceOp::kExpire:
      for (uint32_t i = 0; i < Maintainer::kExpireStepsMax && maintainer.expire(); ++i) {
      }
      for (uint32_t i = 0; i < Maintainer::kSweepStepsMax && maintainer.sweep(); ++i) {
      }
      break;
    case ServiceOp::kSetTarget:
      call.result = maintainer.set_target(static_cast<uint32_t>(call.argument)) ? 1 : 0;
      break;
    case ServiceOp::kReserve:
      reserve(core, call);
      break;
    case ServiceOp::kAbandon:
      abandon_reservation(core, static_cast<uint32_t>(call.argument));
      break;
    case ServiceOp::kLogEvictions:
      note_missed_evictions(core, call);
      store_relaxed(&core.shared->eviction_log, call.argument);
      break;
    case ServiceOp::kInspect:
      inspect(core, call);
      break;
    case ServiceOp::kRead:
      read(core, call);
      break;
  }
}

// The leader's work. Reader 0 is maintenance's; it enters an epoch only to inspect.
__device__ void lead(const Core& core, DeviceMaintainer& state, ServiceCall& call) {
  const StoreRef store{core};
  const bool reads = call.op == ServiceOp::kInspect || call.op == ServiceOp::kRead;
  if (reads) store.enter_batch(state.thread);
  serve(core, state.maintainer, call);
  if (reads) store.leave_batch(state.thread);
  call.free_segments = load_relaxed(&core.shared->free_count);
  call.low_water = load_relaxed(&core.shared->low_water);
  call.segment_limit = load_relaxed(&core.shared->segment_limit);
  call.clock = store.clock();
  note_missed_evictions(core, call);
  state.evacuators.stop();
  state.worker_group.stop();
}

__device__ void build(const Core& core, ThreadCounters* counters, DeviceMaintainer& state,
                      uint32_t evacuators) {
  state.thread = {};
  state.thread.slot = &core.epochs[0];
  state.thread.counters = &counters[0];
  new (&state.worker_group) WorkerGroup();
  new (&state.evacuators) Evacuators();
  state.evacuators.list = evacuators_of(&state);
  state.evacuators.count = evacuators;
  for (uint32_t i = 0; i < evacuators; ++i)
    new (&state.evacuators.list[i]) Evacuator(core, &counters[0]);
  new (&state.maintainer) Maintainer(core, &state.thread, &state.worker_group, &state.evacuators);
}

// Block 0 leads; the others are evacuators. Without `host_call` the kernel does nothing.
__global__ void __launch_bounds__(kServiceThreads, kServiceBlocksMin)
    service_kernel(Core core, ThreadCounters* counters, DeviceMaintainer* state,
                   ServiceCall* host_call, uint32_t launch_number, uint32_t evacuators) {
  __shared__ uint16_t sizes[kWindowGranules];
  if (host_call == nullptr) return;
  const bool leads = blockIdx.x == 0;
  Evacuator* const evacuator = leads ? nullptr : evacuators_of(state) + (blockIdx.x - 1);
  WorkerGroup& worker_group = leads ? state->worker_group : evacuator->worker_group;
  if (threadIdx.x == 0) {
    if (leads && host_call->op == ServiceOp::kStart) build(core, counters, *state, evacuators);
    if (leads) state->evacuators.launch_number = launch_number;
    worker_group.start(kWorkers, sizes);
  }
  __syncthreads();  // the last barrier: from here on the group communicates by words in memory
  if (threadIdx.x == 0) {
    if (leads) {
      lead(core, *state, *host_call);
    } else {
      evacuator->serve(launch_number, &state->evacuators.last_ended);
    }
  }
  if (threadIdx.x < gpu::kWarpSize) return;
  ThreadContext thread;
  thread.counters = &counters[0];
  worker_group.serve(core, thread, threadIdx.x - gpu::kWarpSize);
}

// Warps that walk, one pair each at a time. Like maintenance's blocks they must fit beside the
// persistent kernel.
constexpr uint32_t kWalkWarps = 8;
// Items that they find in one round at most. A launch ends when the buffer cannot hold one more
// round.
constexpr uint32_t kWalkedAtOnce = kWalkWarps * (2 + kOverflowChainMax) * kWays;
static_assert(kWalkedAtOnce <= kWalkedMax);
// It also ends after some milliseconds: other calls of the store wait meanwhile.
constexpr uint32_t kWalkRoundsMax = 2048;

// Called by a warp: one lane for each slot.
__device__ void walk_pair(const Core& core, PairNumber number, uint8_t* buffer, uint32_t* count) {
  Set* pair = pair_at(core, number);
  const uint32_t now = load_relaxed(&core.shared->now);
  if (gpu::lane_id() == 0) spin_lock(&pair->lock);
  __syncwarp();
  const PairSets sets = sets_of(core, pair);
  for (uint32_t i = gpu::lane_id(); i < sets.count * kWays; i += gpu::kWarpSize) {
    const Slot slot = load_relaxed(&sets.set[i / kWays]->slots[i % kWays]);
    if (slot == 0) continue;
    const Item* item = core.item_in(slot);
    if (!is_alive(core, *item, now)) continue;
    uint8_t* out = buffer + uint64_t{atomicAdd(count, 1u)} * kWalkedBytes;
    *reinterpret_cast<Item*>(out) = *item;
    mem_copy(out + sizeof(Item), item->key_data(), item->key_size);
  }
  __syncwarp();
  if (gpu::lane_id() == 0) spin_unlock(&pair->lock);
}

__global__ void __launch_bounds__(kWalkWarps* gpu::kWarpSize, kServiceBlocksMin)
    walk_kernel(Core core, WalkCall* call, uint8_t* buffer) {
  __shared__ uint32_t first;  // of the pairs of a round
  __shared__ uint32_t pairs;
  __shared__ uint32_t count;
  __shared__ bool goes_on;
  if (threadIdx.x == 0) {
    first = call->first_pair;
    pairs = load_acquire(&core.shared->pair_count);
    count = 0;
  }
  for (uint32_t round = 0;; ++round) {
    if (threadIdx.x == 0) {
      if (round != 0) first += kWalkWarps;
      goes_on = first < pairs && count + kWalkedAtOnce <= kWalkedMax && round < kWalkRoundsMax;
    }
    __syncthreads();
    if (!goes_on) break;
    if (first + gpu::warp_id() < pairs) walk_pair(core, first + gpu::warp_id(), buffer, &count);
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  call->next_pair = first;
  call->pair_count = pairs;
  call->count = count;
}

// A warp notes one key at a time. Like the walk's it must fit beside the persistent kernel.
__global__ void __launch_bounds__(kWalkWarps* gpu::kWarpSize, kServiceBlocksMin)
    note_read_kernel(Core core, NotedKeys* noted) {
  if (gpu::lane_id() != 0) return;
  const StoreRef store{core};
  const uint32_t now = store.clock().now;
  for (uint32_t i = gpu::warp_id(); i < noted->count; i += kWalkWarps) {
    NotedKeys::Key& key = noted->keys[i];
    const Bytes text = {key.text, key.size};
    LockedPair pair(store, store.hash(text));
    const Found found = pair.find(text);
    key.found = found && pair.alive(*found.item, now) ? 1 : 0;
    if (key.found != 0) record_hit(found, now);
  }
}

}  // namespace

uint64_t maintainer_bytes(uint32_t evacuators) {
  return sizeof(DeviceMaintainer) + evacuators * sizeof(Evacuator);
}

void take_kernel_memory(cudaStream_t stream) {
  gpu::start_kernel(service_kernel, {1, kServiceThreads}, 0, stream, Core{}, nullptr, nullptr,
                    nullptr, 0u, 0u);
}

void launch_service(const Core& core, ThreadCounters* counters, void* maintainer, ServiceCall* call,
                    uint32_t launch_number, uint32_t evacuators, cudaStream_t stream) {
  const bool frees = call->op == ServiceOp::kMaintain || call->op == ServiceOp::kReclaim;
  gpu::start_kernel(service_kernel, {frees ? 1 + evacuators : 1, kServiceThreads}, 0, stream, core,
                    counters, static_cast<DeviceMaintainer*>(maintainer), call, launch_number,
                    evacuators);
}

void launch_note_read(const Core& core, NotedKeys* noted, cudaStream_t stream) {
  gpu::start_kernel(note_read_kernel, {1, kWalkWarps * gpu::kWarpSize}, 0, stream, core, noted);
}

void launch_walk(const Core& core, WalkCall* call, uint8_t* buffer, cudaStream_t stream) {
  gpu::start_kernel(walk_kernel, {1, kWalkWarps * gpu::kWarpSize}, 0, stream, core, call, buffer);
}

}  // namespace warpcache::store
