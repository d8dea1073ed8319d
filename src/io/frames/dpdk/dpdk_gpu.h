// SPDX-License-Identifier: Apache-2.0
//
// Memory of a GPU for the frames of a port, by DPDK's library gpudev: a network card writes there
// and sends from there (GPUDirect), and no frame crosses the host's memory.
#pragma once

#include <cstdint>
#include <string>

#include "io/frames/dpdk/dpdk_pools.h"

namespace warpcache::io {

class DpdkGpuMemory {
 public:
  DpdkGpuMemory() = default;
  DpdkGpuMemory(const DpdkGpuMemory&) = delete;
  DpdkGpuMemory& operator=(const DpdkGpuMemory&) = delete;
  // REQUIRES: the device does not use it any more.
  ~DpdkGpuMemory();

  // Takes at least `bytes` of the GPU with this number among those that DPDK knows, and makes them
  // known to the device. Returns the error as text, or "".
  std::string allocate(uint32_t gpu, uint16_t device, uint64_t bytes);

  const FrameMemory& memory() const { return memory_; }

 private:
  std::string make_known(uint16_t device);

  int16_t gpu_ = -1;
  FrameMemory memory_;
  bool is_mapped_ = false;      // for the CPU
  bool is_registered_ = false;  // as memory that is not DPDK's
};

}  // namespace warpcache::io
