// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for a GPU and its driver in DPDK's library gpudev, to be preloaded: one GPU, whose
// memory is the host's. With the simulated GPU, which reads such memory too, a server's path of
// frames in GPU memory runs to its end without a GPU.
#include <rte_gpudev.h>
#include <stdlib.h>

namespace {

constexpr size_t kPageBytes = 65536;

}  // namespace

extern "C" {

uint16_t rte_gpu_count_avail() { return 1; }

int16_t rte_gpu_find_next(int16_t from, int16_t /*parent*/) { return from == 0 ? 0 : -1; }

int rte_gpu_info_get(int16_t gpu, rte_gpu_info* info) {
  if (gpu != 0) return -1;
  *info = {};
  info->page_size = kPageBytes;
  return 0;
}

void* rte_gpu_mem_alloc(int16_t /*gpu*/, size_t bytes, unsigned align) {
  void* memory = nullptr;
  return posix_memalign(&memory, align, bytes) == 0 ? memory : nullptr;
}

int rte_gpu_mem_free(int16_t /*gpu*/, void* memory) {
  free(memory);
  return 0;
}

void* rte_gpu_mem_cpu_map(int16_t /*gpu*/, size_t /*bytes*/, void* memory) { return memory; }

int rte_gpu_mem_cpu_unmap(int16_t /*gpu*/, void* /*memory*/) { return 0; }

}  // extern "C"
