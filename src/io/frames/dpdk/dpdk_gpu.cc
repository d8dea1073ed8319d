// SPDX-License-Identifier: Apache-2.0
#include "io/frames/dpdk/dpdk_gpu.h"

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_gpudev.h>
#include <rte_memory.h>

#include <algorithm>
#include <cstring>

namespace warpcache::io {
namespace {

std::string failed(const char* what, int error) {
  return std::string(what) + ": " + rte_strerror(error < 0 ? -error : error);
}

// The GPU with this number, or -1.
int16_t find_gpu(uint32_t number) {
  int16_t gpu = -1;
  RTE_GPU_FOREACH_PARENT(gpu) {
    if (number-- == 0) return gpu;
  }
  return -1;
}

// Whether the device's driver moves frames with the CPU.
bool writes_with_cpu(const rte_eth_dev_info& info) {
  const char* const bus = rte_bus_name(rte_dev_bus(info.device));
  return std::strcmp(bus, "vdev") == 0;
}

}  // namespace

DpdkGpuMemory::~DpdkGpuMemory() {
  if (is_registered_) (void)rte_extmem_unregister(memory_.data, memory_.bytes);
  if (is_mapped_) (void)rte_gpu_mem_cpu_unmap(gpu_, memory_.data);
  if (memory_.data != nullptr) (void)rte_gpu_mem_free(gpu_, memory_.data);
}

std::string DpdkGpuMemory::allocate(uint32_t gpu, uint16_t device, uint64_t bytes) {
  if (rte_gpu_count_avail() == 0) {
    return "DPDK finds no GPU: it needs one, and its own driver gpu_cuda, which knows it and "
           "is not part of every DPDK";
  }
  gpu_ = find_gpu(gpu);
  rte_gpu_info info = {};
  if (gpu_ < 0 || rte_gpu_info_get(gpu_, &info) != 0) {
    return "DPDK has no GPU " + std::to_string(gpu);
  }
  memory_.page_bytes = std::max<uint64_t>(info.page_size, kDpdkPage);
  memory_.bytes = (bytes + memory_.page_bytes - 1) / memory_.page_bytes * memory_.page_bytes;
  memory_.data = static_cast<uint8_t*>(
      rte_gpu_mem_alloc(gpu_, memory_.bytes, static_cast<unsigned>(memory_.page_bytes)));
  if (memory_.data == nullptr) return failed("memory of the GPU", rte_errno);
  memory_.seen = static_cast<uint8_t*>(rte_gpu_mem_cpu_map(gpu_, memory_.bytes, memory_.data));
  if (memory_.seen == nullptr) {
    return failed("showing the GPU's memory to the CPU (GDRCopy)", rte_errno);
  }
  is_mapped_ = true;
  memory_.device_address = RTE_BAD_IOVA;
  return make_known(device);
}

std::string DpdkGpuMemory::make_known(uint16_t device) {
  rte_eth_dev_info info = {};
  if (const int error = rte_eth_dev_info_get(device, &info); error != 0) {
    return failed("the device's properties", error);
  }
  if (writes_with_cpu(info) && memory_.seen != memory_.data) {
    return "the device has no DMA: it cannot write to a GPU's memory";
  }
  int error = rte_extmem_register(memory_.data, memory_.bytes, nullptr, 0,
                                  static_cast<size_t>(memory_.page_bytes));
  if (error != 0) return failed("registering the GPU's memory", rte_errno);
  is_registered_ = true;
  error = rte_dev_dma_map(info.device, memory_.data, RTE_BAD_IOVA, memory_.bytes);
  if (error != 0 && !(writes_with_cpu(info) && rte_errno == ENOTSUP)) {
    return failed("the GPU's memory for the device's DMA", rte_errno);
  }
  return "";
}

}  // namespace warpcache::io
