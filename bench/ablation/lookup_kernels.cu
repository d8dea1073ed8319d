// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ablation/kernels.h"
#include "ablation/stage.cuh"
#include "engine/cuda/packets/past_l1.cuh"

namespace warpcache::ablation {

namespace {

using engine::cuda::past_l1_detail::load_past_l1;
using engine::cuda::past_l1_detail::same_key;
using gpu::kAllLanes;
using gpu::kWarpSize;
using gpu::lane_id;
using gpu::warp_id;

constexpr uint32_t kThreads = 64;
constexpr uint32_t kBlocksMin = 14;  // of a multiprocessor: a thread has 72 registers

using KeyBytes = WordBytes<kKeyInSlot % 4>;

struct SetIndex {
  static constexpr bool kSpills = true;  // a key may be where find() does not look

  uint32_t pairs;

  // The item; null: the key may be outside its home set (one key in some thousands). Like all
  // functions here it is called by one thread and bypasses the first-level cache.
  __device__ const store::Item* find(const store::Core& core, uint64_t hash, const uint8_t* key,
                                     uint32_t key_size) const {
    return engine::cuda::find_past_l1(core, pairs, hash, KeyBytes{{key, key_size}}).item;
  }
};

struct HopscotchIndex {
  static constexpr bool kSpills = false;

  HopscotchView table;

  // Reads a sector of entries at a time; ignores entries before the home and after its
  // neighbourhood.
  __device__ const store::Item* find(const store::Core& core, uint64_t hash, const uint8_t* key,
                                     uint32_t key_size) const {
    const uint64_t home = hopscotch_home(hash, table.homes);
    const uint64_t end = home + kNeighbourhood;
    for (uint64_t sector = home / kEntriesInSector * kEntriesInSector; sector < end;
         sector += kEntriesInSector) {
      const auto* from = reinterpret_cast<const ulonglong2*>(table.entries + sector);
      const ulonglong2 low = __ldcg(from);
      const ulonglong2 high = __ldcg(from + 1);
      const uint64_t entries[kEntriesInSector] = {low.x, low.y, high.x, high.y};
      uint32_t fitting = 0;
#pragma unroll
      for (uint32_t i = 0; i < kEntriesInSector; ++i) {
        const bool inside = sector + i >= home && sector + i < end;
        if (inside && entry_fits(entries[i], hash)) fitting |= 1u << i;
      }
      for (; fitting != 0; fitting &= fitting - 1) {
        const uint32_t way = store::first_way(fitting);
        uint64_t entry = entries[0];
#pragma unroll
        for (uint32_t i = 1; i < kEntriesInSector; ++i) {
          if (way == i) entry = entries[i];
        }
        const store::Item* const item = core.item_in(entry);
        const auto* const bytes = reinterpret_cast<const uint8_t*>(item);
        const uint4 second = load_past_l1(bytes + 16);
        const uint4 third = load_past_l1(bytes + sizeof(store::Item));
        if ((second.w & 0xff) != key_size) continue;
        if (same_key(item->key_data(), third, key, key_size, kKeyInSlot % 4)) return item;
      }
    }
    return nullptr;
  }
};

// The look-ups of a warp: up to 32 from `first` on, then `step` further, and so on.
struct Share {
  uint32_t first;
  uint32_t step;
};

// Calls visit(number, key) for the look-ups of this lane; `key` is its slot of the staging buffer.
// Called by the whole warp.
template <typename Visit>
__device__ void for_each_key(const LookupBatch& batch, const StageShape& shape, const Share& share,
                             uint4* stage, const Visit& visit) {
  const uint8_t* const key =
      reinterpret_cast<const uint8_t*>(stage + lane_id() * shape.stride()) + kKeyInSlot;
  for (uint32_t first = share.first; first < batch.count; first += share.step) {
    const uint32_t left = batch.count - first;
    const uint32_t slots = left < kWarpSize ? left : kWarpSize;
    bring_in<kWarpSize>(batch.keys + uint64_t{first} * batch.slot_bytes, slots, shape, stage,
                        lane_id());
    __syncwarp();
    if (lane_id() < slots) visit(first + lane_id(), key);
    __syncwarp();
  }
}

// Records the offset of the item's value.
__device__ uint64_t note(const store::Core& core, const LookupBatch& batch, uint32_t number,
                         const store::Item* item) {
  const uint64_t offset = core.offset_of(item) + sizeof(store::Item) + batch.key_size;
  if (batch.offsets != nullptr) batch.offsets[number] = offset;
  return offset;
}

// The sum over the keys of this lane that the fast path has not found. A separate function at the
// end, so that none of it is in the loop of the kernel.
template <typename Index>
__device__ __noinline__ uint64_t look_up_rest(const store::Core& core, const Index& index,
                                              const LookupBatch& batch, const StageShape& shape,
                                              const Share& share, uint4* stage) {
  uint64_t sum = 0;
  for_each_key(batch, shape, share, stage, [&](uint32_t number, const uint8_t* key) {
    const uint64_t hash = hash_key(core.seed, {key, batch.key_size});
    if (index.find(core, hash, key, batch.key_size) != nullptr) return;
    const store::Item* const item = store::find_key(core, hash, {key, batch.key_size}).item;
    if (item != nullptr) sum += note(core, batch, number, item);
  });
  return sum;
}

template <typename Index>
__global__ void __launch_bounds__(kThreads, kBlocksMin)
    look_up_keys(const __grid_constant__ store::Core core, const __grid_constant__ Index index,
                 const __grid_constant__ LookupBatch batch,
                 const __grid_constant__ StageShape shape) {
  extern __shared__ uint4 shared[];
  uint4* const stage = shared + warp_id() * kWarpSize * shape.stride();
  const Share share = {blockIdx.x * kThreads + warp_id() * kWarpSize, gridDim.x * kThreads};
  unsigned long long sum = 0;
  bool missed = false;
  for_each_key(batch, shape, share, stage, [&](uint32_t number, const uint8_t* key) {
    const uint64_t hash = hash_key(core.seed, {key, batch.key_size});
    const store::Item* const item = index.find(core, hash, key, batch.key_size);
    if (item != nullptr) {
      sum += note(core, batch, number, item);
    } else {
      missed = true;
    }
  });
  if constexpr (Index::kSpills) {
    if (__any_sync(kAllLanes, missed)) {
      sum += look_up_rest(core, index, batch, shape, share, stage);
    }
  }
  for (uint32_t step = kWarpSize / 2; step != 0; step /= 2) {
    sum += __shfl_sync(kAllLanes, sum, lane_id() ^ step);
  }
  if (lane_id() == 0) atomicAdd(batch.sum, sum);
}

template <typename Index>
Variant<LookupBatch> variant_of(const char* name, const Index& index, const store::Core& core,
                                const LookupBatch& shape) {
  if (shape.slot_bytes > kSlotBytesMax) throw std::runtime_error("keys are too large");
  const StageShape stage(shape.slot_bytes);
  const uint32_t shared_bytes = 16 * kThreads * stage.stride();
  const Plan plan = plan_for(look_up_keys<Index>, kThreads, shared_bytes, kThreads);
  const auto launch = [=](const LookupBatch& batch, cudaStream_t stream) {
    gpu::start_kernel(look_up_keys<Index>, plan.shape_for(batch.count), plan.shared_bytes, stream,
                      core, index, batch, stage);
  };
  return {"index", name, plan.footprint, launch};
}

}  // namespace

Variant<LookupBatch> set_lookups(const store::Core& core, uint32_t pairs,
                                 const LookupBatch& shape) {
  return variant_of("sets of 16", SetIndex{pairs}, core, shape);
}

Variant<LookupBatch> hopscotch_lookups(const store::Core& core, const HopscotchView& table,
                                       const LookupBatch& shape) {
  return variant_of("hopscotch", HopscotchIndex{table}, core, shape);
}

}  // namespace warpcache::ablation
