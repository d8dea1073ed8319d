// SPDX-License-Identifier: Apache-2.0
#include "edge/device/program.cuh"

namespace warpcache::edge {

namespace {

// Its code is the sum of its parameters.
struct Add {
  struct Parameters {
    uint32_t a;
    uint32_t b;
  };
  static __device__ uint32_t run(const Parameters& parameters, const EventBlock&) {
    return parameters.a + parameters.b;
  }
};

}  // namespace

const edge_program* program_of_example() { return Program<Add>::table(); }

}  // namespace warpcache::edge
