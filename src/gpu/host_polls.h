// SPDX-License-Identifier: Apache-2.0
//
// How the host waits for a job: it reads a word again and again. tests/simulated_gpu has another
// file of this name, since there the blocks need the host's processors.
#pragma once

#include <cstdint>

namespace warpcache::gpu {

// A query of the driver takes longer than reading the word, and delays launches of other threads:
// one about every 0.1 milliseconds.
inline constexpr uint32_t kPollsPerLook = 1 << 17;

// No job takes so long.
inline constexpr uint32_t kJobMsMax = 10'000;

// Called after each poll that has found nothing; `polls` counts them from 1.
inline void between_polls(uint32_t polls) { (void)polls; }

}  // namespace warpcache::gpu
