// SPDX-License-Identifier: Apache-2.0
//
// What handing a batch to the card costs: by calls on a stream, or by a CUDA graph that is told the
// batch's parameters and launched.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ablation/kernels.h"

namespace warpcache::ablation {

struct LaunchTimes {
  std::string variant;
  double median_us = 0;  // from the first call to the kernel's end
};

// Batches one behind the other, each waited for: `batches` of them, in turn, `rounds` times. Where
// frames are copied, they come from `frames`, pinned, to the batch's input.
std::vector<LaunchTimes> measure_launches(const Variant<GetBatch>& variant,
                                          const std::vector<GetBatch>& batches,
                                          const uint8_t* frames, uint32_t rounds,
                                          cudaStream_t stream);

}  // namespace warpcache::ablation
