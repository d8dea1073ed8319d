// SPDX-License-Identifier: Apache-2.0
//
// Limits of the GPU and its bus, measured beside the requests.
#pragma once

#include <cstdint>

namespace warpcache::offline {

// Host memory is read and written at the same time; 10^9 bytes a second in each direction.
struct BusLimits {
  double copy_engines = 0;
  double kernel = 0;  // loads and stores of a kernel, in place

  double best() const { return copy_engines > kernel ? copy_engines : kernel; }
};

// Measures the current device. Needs pinned and device memory of 256 MB in each direction for a
// moment. Throws std::runtime_error.
BusLimits measure_bus();

// Energy that the GPU has used since its driver was loaded, by NVML: the GPU alone, without the
// rest of the machine. Negative if NVML does not report it.
class EnergyMeter {
 public:
  explicit EnergyMeter(uint32_t gpu);
  ~EnergyMeter();
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  double joules() const;

 private:
  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace warpcache::offline
