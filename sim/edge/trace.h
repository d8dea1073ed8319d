// SPDX-License-Identifier: Apache-2.0
// What a kernel did when it ran: each warp's instructions in order, what each waits for, and the
// memory it touches. The timing model replays it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "edge/ptx.h"

namespace warpcache::edge_sim {

inline constexpr uint32_t kWaitsMax = 3;
inline constexpr uint32_t kSectorBytes = 32;
inline constexpr uint32_t kNoAccess = UINT32_MAX;

// One instruction of a warp. `waits`: steps of this warp whose results it needs, as index + 1; 0:
// none.
struct Step {
  uint32_t instruction = 0;  // of the kernel's code
  uint32_t access = kNoAccess;
  uint32_t waits[kWaitsMax] = {};
  uint8_t lanes = 0;  // that execute it
};

// Global memory: `count` different sectors of the trace's list. Shared memory and atomics:
// `degree` is how many times the bank or word that most lanes want is visited.
struct Access {
  uint32_t first = 0;
  uint16_t count = 0;
  uint16_t degree = 1;
};

using WarpTrace = std::vector<Step>;
using CtaTrace = std::vector<WarpTrace>;

struct KernelTrace {
  const Kernel* kernel = nullptr;  // outlives the trace
  std::string name;
  uint32_t warp_size = 32;
  uint32_t threads = 0;  // of a block
  std::vector<CtaTrace> ctas;
  std::vector<Access> accesses;
  std::vector<uint32_t>
      sectors;  // addresses / kSectorBytes, in an address space of the trace's own
  // Per thread, in the order of blocks and threads, the blocks of kernel->graph that it executed.
  // Empty unless asked for.
  std::vector<std::vector<uint32_t>> paths;

  uint64_t machine_instructions() const;  // of all warps
  uint64_t lane_instructions() const;     // the same times their active lanes
};

}  // namespace warpcache::edge_sim
