// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include "offline/yardstick.h"

namespace warpcache::offline {

namespace {

// The part of NVML's C interface that is used: 0 means success, devices are opaque.
using Init = int (*)();
using Shutdown = int (*)();
using DeviceByIndex = int (*)(unsigned index, void** device);
using TotalEnergy = int (*)(void* device, unsigned long long* millijoules);

template <typename Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

EnergyMeter::EnergyMeter(uint32_t gpu) : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
  if (library_ == nullptr) return;
  const auto init = find<Init>(library_, "nvmlInit_v2");
  const auto by_index = find<DeviceByIndex>(library_, "nvmlDeviceGetHandleByIndex_v2");
  if (init == nullptr || by_index == nullptr || init() != 0) return;
  if (by_index(gpu, &device_) != 0) device_ = nullptr;
}

EnergyMeter::~EnergyMeter() {
  if (library_ == nullptr) return;
  const auto shutdown = find<Shutdown>(library_, "nvmlShutdown");
  if (device_ != nullptr && shutdown != nullptr) (void)shutdown();
  (void)dlclose(library_);
}

double EnergyMeter::joules() const {
  if (device_ == nullptr) return -1;
  const auto total = find<TotalEnergy>(library_, "nvmlDeviceGetTotalEnergyConsumption");
  unsigned long long millijoules = 0;
  if (total == nullptr || total(device_, &millijoules) != 0) return -1;
  return static_cast<double>(millijoules) / 1000;
}

}  // namespace warpcache::offline
