// SPDX-License-Identifier: Apache-2.0
//
// Measures EDGE on a GPU: lines of JSON. With the simulated GPU it only shows that the program
// runs. Usage: edge_bench [--quick] PART...: latency rate programs power convolution barriers
#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "edge/bench.h"

namespace warpcache::edge {

double quantile(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  const auto at = static_cast<size_t>(static_cast<double>(values.size()) * share);
  return values[std::min(at, values.size() - 1)];
}

Energy::Energy() {
  library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (library_ == nullptr) return;
  const auto init = reinterpret_cast<int (*)()>(dlsym(library_, "nvmlInit_v2"));
  const auto handle =
      reinterpret_cast<int (*)(unsigned, void**)>(dlsym(library_, "nvmlDeviceGetHandleByIndex_v2"));
  void* device = nullptr;
  if (init != nullptr && handle != nullptr && init() == 0 && handle(0, &device) == 0) {
    device_ = device;
  }
}

double Energy::millijoules() const {
  if (device_ == nullptr) return 0;
  const auto read = reinterpret_cast<int (*)(void*, unsigned long long*)>(
      dlsym(library_, "nvmlDeviceGetTotalEnergyConsumption"));
  unsigned long long value = 0;
  return read != nullptr && read(device_, &value) == 0 ? static_cast<double>(value) : 0;
}

double Energy::watts_now() const {
  if (device_ == nullptr) return 0;
  const auto read =
      reinterpret_cast<int (*)(void*, unsigned*)>(dlsym(library_, "nvmlDeviceGetPowerUsage"));
  unsigned value = 0;
  return read != nullptr && read(device_, &value) == 0 ? value * 1e-3 : 0;
}

namespace {

struct Part {
  const char* name;
  void (*run)(const Scale&);
};

constexpr Part kParts[] = {{"latency", measure_latency},
                           {"rate", measure_rates},
                           {"programs", measure_beside_programs},
                           {"power", measure_power},
                           {"convolution", measure_beside_convolution},
                           {"barriers", measure_barriers},
                           {"profiled-poll", measure_profiled_polls},
                           {"profiled-release-all", measure_profiled_releases},
                           {"profiled-targeted", measure_profiled_targeted}};

int run(int count, char** words) {
  Scale scale;
  int failures = 0;
  bool any = false;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(words[i], "--quick") == 0) {
      scale = {0.05, 120, 16, 3, 128, 64, 1 << 20, false, 1};
      continue;
    }
    const auto* const part =
        std::find_if(std::begin(kParts), std::end(kParts),
                     [&](const Part& each) { return std::strcmp(each.name, words[i]) == 0; });
    if (part == std::end(kParts)) {
      (void)std::fprintf(stderr, "edge_bench: unknown part %s\n", words[i]);
      return 2;
    }
    if (!any) {
      gpu::DeviceFacts facts;
      const std::string refusal = gpu::open_device(0, &facts);
      if (!refusal.empty()) {
        (void)std::fprintf(stderr, "edge_bench: %s\n", refusal.c_str());
        return 1;
      }
      Line("machine")
          .add("gpu", facts.name)
          .add("multiprocessors", facts.multiprocessors)
          .add("cores", std::thread::hardware_concurrency())
          .print();
      any = true;
    }
    const auto begin = Clock::now();
    part->run(scale);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) ++failures;
    Line("part")
        .add("part", part->name)
        .add("seconds", seconds_since(begin))
        .add("error", error == cudaSuccess ? "" : cudaGetErrorString(error))
        .print();
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace

}  // namespace warpcache::edge

int main(int count, char** words) { return warpcache::edge::run(count, words); }
