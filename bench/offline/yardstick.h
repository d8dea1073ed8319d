// SPDX-License-Identifier: Apache-2.0
//
// What the card and its bus allow, measured beside the requests.
#pragma once

#include <cstdint>

namespace warpcache::offline {

// Host memory is read and written at the same time; 10^9 bytes a second, each way.
struct BusLimits {
  double copy_engines = 0;
  double kernel = 0;  // loads and stores of a kernel, in place

  double best() const { return copy_engines > kernel ? copy_engines : kernel; }
};

// On the device in use. Takes pinned and device memory of 256 MB each way for a moment. Throws
// std::runtime_error.
BusLimits measure_bus();

// What the card has used since its driver was loaded, by NVML: the card alone, without the machine
// around it. Negative where NVML does not tell.
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
