// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_kernels.h"
#include "store/store_ref.h"

namespace warpcache::gpu_tests {

namespace {

constexpr uint32_t kOccupierThreads = 1024;
constexpr uint32_t kOccupiersPerMultiprocessor = 2;  // together they have all threads of a
                                                     // multiprocessor
constexpr uint32_t kPollNs = 10000;                  // polls go over the bus

__device__ uint64_t now_ns() {
  uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// False: the time has passed.
__device__ bool wait_for(const uint32_t* word, uint64_t ns_max) {
  const uint64_t begin = now_ns();
  while (*static_cast<const volatile uint32_t*>(word) == 0) {
    if (now_ns() - begin > ns_max) return false;
    __nanosleep(kPollNs);
  }
  __threadfence_system();
  return true;
}

__device__ void look_up(const store::StoreRef& store, StalledKey& wanted,
                        store::ValuePieces& pieces) {
  uint8_t key[sizeof(wanted.key)];
  for (uint32_t i = 0; i < wanted.key_size; ++i) key[i] = wanted.key[i];
  const Bytes bytes = {key, wanted.key_size};
  const store::Found found = store.find(store.hash(bytes), bytes);
  wanted.found = found ? 1 : 0;
  if (!found) return;
  wanted.value_size = found.item->value_size;
  pieces = store.pieces(*found.item);
}

__device__ void copy_out(store::ValuePieces& pieces, uint8_t* out) {
  for (Bytes piece = pieces.first(); !piece.empty(); piece = pieces.next()) {
    for (size_t i = 0; i < piece.size; ++i) {
      *out++ = *static_cast<const volatile uint8_t*>(piece.data + i);
    }
  }
}

__global__ void stalled_reader_kernel(store::Core core, uint32_t reader, Stall* stall,
                                      StalledKey* keys, uint8_t* out) {
  const store::StoreRef store{core};
  store::ThreadContext thread;
  thread.slot = &core.epochs[reader];
  const bool enters = threadIdx.x == 0 && stall->guarded != 0;
  StalledKey* mine = threadIdx.x < stall->key_count ? &keys[threadIdx.x] : nullptr;
  store::ValuePieces pieces;
  if (enters) store.enter_batch(thread);
  __syncthreads();
  if (mine != nullptr) look_up(store, *mine, pieces);
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system();
    *static_cast<volatile uint32_t*>(&stall->holding) = 1;
    if (!wait_for(&stall->go_on, stall->ns_max)) stall->timed_out = 1;
  }
  __syncthreads();
  if (mine != nullptr && mine->found != 0) copy_out(pieces, out + mine->out);
  __syncthreads();
  if (enters) store.leave_batch(thread);
}

__global__ void __launch_bounds__(kOccupierThreads, kOccupiersPerMultiprocessor)
    occupier_kernel(const uint32_t* end, uint64_t ns_max) {
  if (threadIdx.x == 0) (void)wait_for(end, ns_max);
  __syncthreads();
}

__global__ void illegal_access_kernel(const uint32_t* nowhere, uint32_t* out) {
  *out = *static_cast<const volatile uint32_t*>(nowhere);
}

}  // namespace

void launch_stalled_reader(const store::Core& core, uint32_t reader, Stall* stall, StalledKey* keys,
                           uint8_t* out, cudaStream_t stream) {
  stalled_reader_kernel<<<1, kStalledKeysMax, 0, stream>>>(core, reader, stall, keys, out);
}

void launch_occupier(const uint32_t* end, uint64_t ns_max, uint32_t multiprocessors,
                     cudaStream_t stream) {
  const uint32_t blocks = multiprocessors * kOccupiersPerMultiprocessor;
  occupier_kernel<<<blocks, kOccupierThreads, 0, stream>>>(end, ns_max);
}

void launch_illegal_access(cudaStream_t stream) {
  auto* nowhere = reinterpret_cast<uint32_t*>(uintptr_t{64});
  illegal_access_kernel<<<1, 1, 0, stream>>>(nowhere, nowhere);
}

void launch_impossible(cudaStream_t stream) {
  illegal_access_kernel<<<1, 1u << 20, 0, stream>>>(nullptr, nullptr);
}

}  // namespace warpcache::gpu_tests
