// SPDX-License-Identifier: Apache-2.0
//
// The stand-in for a network card with GPUDirect: the GPU's copy engines write frames from the
// host's memory (the wire) into the GPU's memory, and replies back. One object for each thread.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/device.h"
#include "offline/carrier.h"

namespace warpcache::offline {

class CopyCarrier final : public Carrier {
 public:
  // Memory of all frames and all replies of a pass, on both sides. The caller owns it.
  struct Ways {
    const uint8_t* wire_in;
    uint8_t* gpu_in;
    const uint8_t* gpu_out;
    uint8_t* wire_out;
  };

  // Throws std::runtime_error. Errors of copies go to `faults`.
  CopyCarrier(const Ways& ways, uint32_t places, gpu::DeviceFaults& faults);
  CopyCarrier(const CopyCarrier&) = delete;
  CopyCarrier& operator=(const CopyCarrier&) = delete;
  ~CopyCarrier() override;

  void bring(uint32_t place, uint64_t offset, uint64_t bytes) override;
  void take_away(uint32_t place, uint64_t offset, uint64_t bytes) override;
  bool is_done(uint32_t place) override;

 private:
  const Ways ways_;
  gpu::DeviceFaults& faults_;
  gpu::CudaStream in_;
  gpu::CudaStream out_;
  std::vector<cudaEvent_t> ends_;  // of what was begun last at each place
};

}  // namespace warpcache::offline
