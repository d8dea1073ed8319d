// SPDX-License-Identifier: Apache-2.0
//
// Kernels are started by a function of CUDA and not by its syntax, so that the simulated GPU of the
// tests (tests/simulated_gpu) can start them as well.
#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include "gpu/launch_shape.h"

namespace warpcache::gpu {

// Starts a kernel. Errors are CUDA's: look for them with cudaGetLastError().
template <typename... Parameters, typename... Arguments>
void start_kernel(void (*kernel)(Parameters...), const LaunchShape& shape, size_t shared_bytes,
                  cudaStream_t stream, Arguments&&... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim.x = shape.blocks;
  config.blockDim.x = shape.threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  (void)cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

// Blocks of the kernel that fit on the device at the same time; 0 after an error.
template <typename... Parameters>
uint32_t blocks_at_once(void (*kernel)(Parameters...), const LaunchShape& shape,
                        size_t shared_bytes) {
  int blocks = 0;
  const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, kernel, static_cast<int>(shape.threads), shared_bytes);
  int device = 0;
  cudaDeviceProp properties;
  if (error != cudaSuccess || cudaGetDevice(&device) != cudaSuccess ||
      cudaGetDeviceProperties(&properties, device) != cudaSuccess) {
    return 0;
  }
  return static_cast<uint32_t>(blocks * properties.multiProcessorCount);
}

}  // namespace warpcache::gpu
