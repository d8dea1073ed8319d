// SPDX-License-Identifier: Apache-2.0
// edge-sim-gpu: the kernels of edge-sim on a GPU, and what the model's parameters are there. JSON
// lines on standard output.
//
//   edge-sim-gpu          micro-benchmarks; cycles of each kernel, a few blocks and a full GPU
//   edge-sim-gpu plain    each kernel once, a full GPU, for a profiler
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "edge/cases.h"
#include "edge/gpu/micro.cuh"
#include "edge/gpu/timed.cuh"

namespace warpcache::edge_sim {
namespace {

constexpr size_t kScratchBytes = size_t{192} << 20;  // more than an L2
constexpr uint32_t kBlocksAlone = 8;
constexpr double kFullScale = 16;
constexpr int kRepeats = 3;

void require(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "edge-sim-gpu: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

using LaunchFunction = CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                    unsigned, unsigned, CUstream, void**, void**);

struct Entry {
  const void* plain;
  const void* timed;
};
#define EDGE_ENTRY(NAME)                                                                        \
  {                                                                                             \
#NAME, { reinterpret_cast<const void*>(NAME), reinterpret_cast<const void*>(NAME##_timed) } \
  }
const std::map<std::string, Entry> kEntries = {
    EDGE_ENTRY(matmul), EDGE_ENTRY(conv),   EDGE_ENTRY(stencil), EDGE_ENTRY(reduce),
    EDGE_ENTRY(bfs),    EDGE_ENTRY(kmeans), EDGE_ENTRY(needle),  EDGE_ENTRY(strings),
    EDGE_ENTRY(rays),   EDGE_ENTRY(get)};

class Device {
 public:
  Device() {
    require(cudaSetDevice(0), "no GPU");
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    require(cudaGetDriverEntryPointByVersion("cuLaunchKernel", &function, 12000, cudaEnableDefault,
                                             &found),
            "cuLaunchKernel");
    launch_ = reinterpret_cast<LaunchFunction>(function);
    require(cudaMalloc(&scratch_, kScratchBytes), "memory");
    require(cudaMalloc(&result_, sizeof(MicroResult)), "memory");
  }

  void* scratch() const { return scratch_; }
  void flush_caches() { require(cudaMemset(scratch_, 1, kScratchBytes), "memset"); }

  template <typename Launch>
  double micro(Launch launch) {
    MicroResult result{};
    launch(result_);  // the code's first time
    require(cudaDeviceSynchronize(), "micro-benchmark");
    require(cudaMemset(result_, 0, sizeof result), "memset");
    launch(result_);
    require(cudaMemcpy(&result, result_, sizeof result, cudaMemcpyDeviceToHost), "micro-benchmark");
    return static_cast<double>(result.cycles);
  }

  void launch(const void* kernel, const Launch& how, const std::vector<uint8_t>& parameters) {
    cudaFunction_t function = nullptr;
    require(cudaGetFuncBySymbol(&function, kernel), "kernel");
    size_t bytes = parameters.size();
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<uint8_t*>(parameters.data()),
                     CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    const CUresult status = launch_(reinterpret_cast<CUfunction>(function), how.grid_x, how.grid_y,
                                    1, how.block_x, how.block_y, 1, 0, nullptr, nullptr, extra);
    if (status != CUDA_SUCCESS) {
      std::fprintf(stderr, "edge-sim-gpu: a launch failed: %d\n", static_cast<int>(status));
      std::exit(1);
    }
    require(cudaDeviceSynchronize(), "kernel");
  }

 private:
  LaunchFunction launch_ = nullptr;
  void* scratch_ = nullptr;
  MicroResult* result_ = nullptr;
};

// A case's memory on the device, and its parameters with the pointers that hold there.
class OnDevice {
 public:
  explicit OnDevice(const Case& one) : case_(one), parameters_(one.launch.parameters) {
    for (const Buffer& buffer : one.buffers) {
      void* copy = nullptr;
      require(cudaMalloc(&copy, buffer.bytes), "memory");
      copies_.push_back(copy);
    }
    for (size_t at = 0; at + 8 <= parameters_.size(); at += 8) relocate(at);
    reset();
  }
  ~OnDevice() {
    for (void* const copy : copies_) cudaFree(copy);
  }

  void reset() {
    for (size_t i = 0; i < copies_.size(); ++i) {
      require(cudaMemcpy(copies_[i], case_.buffers[i].data, case_.buffers[i].bytes,
                         cudaMemcpyHostToDevice),
              "copy");
    }
  }
  std::string fetch_and_check() {
    for (size_t i = 0; i < copies_.size(); ++i) {
      require(cudaMemcpy(case_.buffers[i].data, copies_[i], case_.buffers[i].bytes,
                         cudaMemcpyDeviceToHost),
              "copy");
    }
    return case_.check();
  }
  const std::vector<uint8_t>& parameters() const { return parameters_; }

 private:
  void relocate(size_t at) {
    uint64_t word = 0;
    std::memcpy(&word, parameters_.data() + at, 8);
    for (size_t i = 0; i < copies_.size(); ++i) {
      const auto begin = reinterpret_cast<uint64_t>(case_.buffers[i].data);
      if (word < begin || word >= begin + case_.buffers[i].bytes) continue;
      word += reinterpret_cast<uint64_t>(copies_[i]) - begin;
      std::memcpy(parameters_.data() + at, &word, 8);
      return;
    }
  }

  const Case& case_;
  std::vector<void*> copies_;
  std::vector<uint8_t> parameters_;
};

void print_micro(const char* what, double value) {
  std::printf("{\"measure\":\"edge-gpu-micro\",\"what\":\"%s\",\"value\":%.3f}\n", what, value);
}

// A ring of pointers `stride` bytes apart over `bytes`.
void make_ring(void* memory, size_t bytes, size_t stride) {
  std::vector<char> host(bytes);
  const size_t count = bytes / stride;
  for (size_t i = 0; i < count; ++i) {
    char* const next = static_cast<char*>(memory) + (i + 1) % count * stride;
    std::memcpy(host.data() + i * stride, &next, sizeof next);
  }
  require(cudaMemcpy(memory, host.data(), bytes, cudaMemcpyHostToDevice), "copy");
}

void run_micro(Device* device) {
  const auto chain = [&](const char* what, auto launch) {
    print_micro(what, device->micro(launch) / kChain);
  };
  chain("alu_latency", [](MicroResult* out) { alu_chain<<<1, 1>>>(out, 1.0f); });
  chain("wide_latency", [](MicroResult* out) { wide_chain<<<1, 1>>>(out, 3); });
  chain("sqrt_latency", [](MicroResult* out) { special_chain<<<1, 1>>>(out, 2.0f); });
  chain("shared_latency", [](MicroResult* out) { shared_chain<<<1, 1>>>(out); });
  chain("barrier_latency_1_warp", [](MicroResult* out) { barrier_chain<<<1, 32>>>(out); });
  chain("barrier_latency_8_warps", [](MicroResult* out) { barrier_chain<<<1, 256>>>(out); });
  const auto memory = [&](const char* what, size_t bytes, size_t stride, int warm, int steps,
                          bool flush) {
    make_ring(device->scratch(), bytes, stride);
    if (flush) {
      void* other = nullptr;
      require(cudaMalloc(&other, kScratchBytes), "memory");
      require(cudaMemset(other, 1, kScratchBytes), "memset");
      require(cudaFree(other), "free");
    }
    MicroResult* out = nullptr;
    require(cudaMalloc(&out, sizeof *out), "memory");
    memory_chain<<<1, 1>>>(out, static_cast<void**>(device->scratch()), warm, steps);
    MicroResult result{};
    require(cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost), "chain");
    require(cudaFree(out), "free");
    print_micro(what, static_cast<double>(result.cycles) / steps);
  };
  memory("l1_latency", 16 << 10, 128, 256, 1024, false);
  memory("l2_latency", 4 << 20, 1024, 8192, 1024, false);
  memory("dram_latency", size_t{128} << 20, 64 << 10, 0, 1024, true);
  const auto stream_of = [&](const char* what, size_t bytes, int times, bool flush) {
    MicroResult* out = nullptr;
    require(cudaMalloc(&out, sizeof *out), "memory");
    const int count = static_cast<int>(bytes / 16);
    for (int i = 0; i < 2; ++i) {
      if (flush) device->flush_caches();
      stream<<<1, 1024>>>(out, static_cast<const uint4*>(device->scratch()), count, times);
      require(cudaDeviceSynchronize(), "stream");
    }
    MicroResult result{};
    require(cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost), "stream");
    require(cudaFree(out), "free");
    print_micro(what, static_cast<double>(bytes) * times / static_cast<double>(result.cycles));
  };
  stream_of("l1_bytes_per_cycle", 64 << 10, 64, false);
  stream_of("l2_bytes_per_cycle", 8 << 20, 2, false);
  stream_of("dram_bytes_per_cycle", 16 << 20, 1, true);
}

double clock_mhz() {
  int khz = 0;
  cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0);
  return khz / 1000.0;
}

struct Timed {
  double block_cycles = 0;  // mean over blocks
  double sm_cycles = 0;     // mean over SMs: from the first begin to the last end
  uint32_t sms = 0, blocks = 0;
};

Timed read_times(uint32_t blocks) {
  std::vector<BlockTime> times(blocks);
  require(cudaMemcpyFromSymbol(times.data(), edge_times, blocks * sizeof(BlockTime)), "times");
  std::map<unsigned, std::pair<unsigned long long, unsigned long long>> sms;
  Timed out;
  out.blocks = blocks;
  for (const BlockTime& time : times) {
    out.block_cycles += static_cast<double>(time.end - time.begin) / blocks;
    auto [at, added] = sms.try_emplace(time.sm, time.begin, time.end);
    at->second.first = std::min(at->second.first, time.begin);
    at->second.second = std::max(at->second.second, time.end);
  }
  out.sms = static_cast<uint32_t>(sms.size());
  for (const auto& [sm, span] : sms)
    out.sm_cycles += static_cast<double>(span.second - span.first) / out.sms;
  return out;
}

// Few blocks, each alone on an SM, or all of a larger case.
void run_kernel(Device* device, const std::string& name, bool alone) {
  Case one;
  std::string why;
  CaseOptions options;
  options.scale = alone ? 1 : kFullScale;
  options.blocks_max = alone ? kBlocksAlone : 0;
  if (!make_case(name, options, &one, &why)) {
    std::fprintf(stderr, "edge-sim-gpu: %s\n", why.c_str());
    std::exit(1);
  }
  const Entry& entry = kEntries.at(one.kernel);
  const uint32_t blocks = one.launch.grid_x * one.launch.grid_y;
  if (blocks > kBlocksTimedMax) return;
  OnDevice memory(one);
  std::string list;
  Timed timed;
  for (int i = 0; i <= kRepeats; ++i) {
    memory.reset();
    device->flush_caches();
    const std::vector<BlockTime> fresh(blocks, BlockTime{~0ull, 0, 0});
    require(cudaMemcpyToSymbol(edge_times, fresh.data(), blocks * sizeof(BlockTime)), "times");
    device->launch(entry.timed, one.launch, memory.parameters());
    if (i == 0) continue;  // the code's first time
    timed = read_times(blocks);
    char text[96];
    std::snprintf(text, sizeof text, "%s[%.1f,%.1f]", list.empty() ? "" : ",", timed.block_cycles,
                  timed.sm_cycles);
    list += text;
  }
  const std::string wrong = alone ? "" : memory.fetch_and_check();
  std::printf(
      "{\"measure\":\"edge-gpu-kernel\",\"kernel\":\"%s\",\"mode\":\"%s\",\"scale\":%g,\"blocks\":%"
      "u,\"sms\":%u,\"block_and_sm_cycles\":[%s],\"wrong\":\"%s\"}\n",
      name.c_str(), alone ? "alone" : "full", options.scale, timed.blocks, timed.sms, list.c_str(),
      wrong.c_str());
  std::fflush(stdout);
}

void run_plain(Device* device, const std::string& name) {
  for (const bool alone : {true, false}) {
    Case one;
    std::string why;
    CaseOptions options;
    options.scale = alone ? 1 : kFullScale;
    options.blocks_max = alone ? kBlocksAlone : 0;
    if (!make_case(name, options, &one, &why)) std::exit(1);
    OnDevice memory(one);
    device->launch(kEntries.at(one.kernel).plain, one.launch, memory.parameters());
  }
}

}  // namespace
}  // namespace warpcache::edge_sim

int main(int argc, char** argv) {
  using namespace warpcache::edge_sim;
  Device device;
  const bool plain = argc > 1 && std::strcmp(argv[1], "plain") == 0;
  if (!plain) {
    cudaDeviceProp properties{};
    require(cudaGetDeviceProperties(&properties, 0), "no GPU");
    std::printf(
        "{\"measure\":\"edge-gpu\",\"gpu\":\"%s\",\"sms\":%d,\"clock_mhz\":%.0f,\"l2_bytes\":%d}\n",
        properties.name, properties.multiProcessorCount, clock_mhz(), properties.l2CacheSize);
    run_micro(&device);
  }
  for (const CaseName& name : case_names()) {
    if (plain) {
      run_plain(&device, name.name);
    } else {
      run_kernel(&device, name.name, true);
      run_kernel(&device, name.name, false);
    }
  }
  return 0;
}
