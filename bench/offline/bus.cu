// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>

#include "gpu/device.h"
#include "offline/yardstick.h"

namespace warpcache::offline {

namespace {

using gpu::CudaMemory;
using gpu::CudaStream;

constexpr uint64_t kBytes = uint64_t{256} << 20;
constexpr int kRounds = 5;

// Each thread reads and writes 16 bytes at a time, with several loads in progress.
__global__ void move_in_place(const uint4* from, uint4* to, uint64_t words) {
  constexpr uint64_t kBatch = 4;
  const uint64_t stride = uint64_t{gridDim.x} * blockDim.x;
  uint64_t at = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; at + (kBatch - 1) * stride < words; at += kBatch * stride) {
    uint4 loaded[kBatch];
#pragma unroll
    for (uint64_t i = 0; i < kBatch; ++i) loaded[i] = __ldcs(from + at + i * stride);
#pragma unroll
    for (uint64_t i = 0; i < kBatch; ++i) __stcs(to + at + i * stride, loaded[i]);
  }
}

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

// The best of some rounds, 10^9 bytes a second.
template <typename Move>
double measure(const Move& move) {
  double best = 0;
  for (int i = 0; i < kRounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    move();
    check(cudaDeviceSynchronize());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best = std::max(best, static_cast<double>(kBytes) / took.count() / 1e9);
  }
  return best;
}

}  // namespace

BusLimits measure_bus() {
  CudaMemory in;
  CudaMemory out;
  CudaMemory device_in;
  CudaMemory device_out;
  CudaStream down;
  CudaStream up;
  const bool taken = in.allocate(CudaMemory::Place::kHost, kBytes) &&
                     out.allocate(CudaMemory::Place::kHost, kBytes) &&
                     device_in.allocate(CudaMemory::Place::kDevice, kBytes) &&
                     device_out.allocate(CudaMemory::Place::kDevice, kBytes) &&
                     down.create(CudaStream::Priority::kNormal) &&
                     up.create(CudaStream::Priority::kNormal);
  if (!taken) throw std::runtime_error("there is too little memory to measure the bus");
  BusLimits limits;
  limits.copy_engines = measure([&] {
    check(cudaMemcpyAsync(device_in.data(), in.data(), kBytes, cudaMemcpyHostToDevice, down.get()));
    check(cudaMemcpyAsync(out.data(), device_out.data(), kBytes, cudaMemcpyDeviceToHost, up.get()));
  });
  limits.kernel = measure([&] {
    move_in_place<<<528, 256, 0, down.get()>>>(in.as<uint4>(), out.as<uint4>(),
                                               kBytes / sizeof(uint4));
    check(cudaGetLastError());
  });
  return limits;
}

}  // namespace warpcache::offline
