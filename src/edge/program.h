// SPDX-License-Identifier: Apache-2.0
//
// Event kernels that were compiled together, as the host sees them. edge/device/program.cuh makes
// one from device code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "edge/device_state.h"
#include "gpu/launch_shape.h"

struct edge_program {
  uint32_t functions;
  const uint32_t* parameter_bytes;  // of each function
  // Once for each device, before the others.
  cudaError_t (*prepare)(uint32_t shared_bytes);
  // Persistent blocks that fit on the device at the same time; 0 after an error.
  uint32_t (*workers_at_once)(uint32_t threads, uint32_t shared_bytes);
  // The scheduler is block 0. Errors are CUDA's: look for them with cudaGetLastError().
  void (*start_workers)(const warpcache::edge::View& view, const warpcache::gpu::LaunchShape& shape,
                        uint32_t shared_bytes, cudaStream_t stream);
  // The kernel of the events of `event` that use the entry given, for a graph. False: there is no
  // such function.
  bool (*start_event)(uint32_t function, const warpcache::edge::View& view, uint32_t event,
                      uint32_t entry, const warpcache::gpu::LaunchShape& shape,
                      uint32_t shared_bytes, cudaStream_t stream);
};
