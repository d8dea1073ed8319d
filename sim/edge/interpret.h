// SPDX-License-Identifier: Apache-2.0
// Runs a kernel on the CPU, warp by warp in lock step, on real memory, and records what it did.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "edge/launch.h"
#include "edge/trace.h"

namespace warpcache::edge_sim {

// The memory that a kernel may touch. Does not own it. Each region gets an address of its own in
// the trace, so that a trace does not depend on where the system has put the memory.
class Regions {
 public:
  void add(void* data, uint64_t bytes);
  // False if [address, address + bytes) is not in one region. Sets *place: the trace's address.
  bool find(uint64_t address, uint32_t bytes, uint64_t* place) const;

 private:
  struct Region {
    uint64_t begin, end, place;
  };
  std::vector<Region> regions_;
  uint64_t next_ = uint64_t{1} << 21;
  mutable size_t last_ = 0;
};

struct RecordOptions {
  uint32_t warp_size = 32;  // up to 64
  bool paths = false;
  uint64_t steps_max = 100'000'000;  // warp instructions, against kernels without an end
};

// Appends what the launch did to `out->ctas`; `out` is empty or holds an earlier launch of the same
// kernel. False: `why` says what the kernel did that it may not.
bool record(const Kernel& kernel, const Launch& launch, const Regions& regions,
            const RecordOptions& options, KernelTrace* out, std::string* why);

}  // namespace warpcache::edge_sim
