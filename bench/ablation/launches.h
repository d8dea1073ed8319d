// SPDX-License-Identifier: Apache-2.0
//
// The time to start a batch on the GPU: with calls on a stream, or with a CUDA graph that gets the
// parameters of the batch and is launched.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ablation/kernels.h"

namespace warpcache::ablation {

struct LaunchTimes {
  std::string variant;
  double median_us = 0;  // from the first call to the end of the kernel
};

// Runs `batches` batches, each to its end before the next one, `rounds` times. Copied frames come
// from `frames`, pinned, to the input of the batch.
std::vector<LaunchTimes> measure_launches(const Variant<GetBatch>& variant,
                                          const std::vector<GetBatch>& batches,
                                          const uint8_t* frames, uint32_t rounds,
                                          cudaStream_t stream);

}  // namespace warpcache::ablation
