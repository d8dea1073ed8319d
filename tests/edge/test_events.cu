// SPDX-License-Identifier: Apache-2.0
#include "edge/device/program.cuh"
#include "edge/test_events.h"

namespace warpcache::edge {

namespace {

__device__ void count(uint64_t counters, uint32_t index) {
  if (threadIdx.x == 0) atomicAdd(reinterpret_cast<uint32_t*>(counters) + index, 1u);
}

struct Count {
  using Parameters = CountParameters;
  static __device__ uint32_t run(const Parameters& parameters, const EventBlock&) {
    count(parameters.counters, parameters.index);
    return 0;
  }
};

struct Add {
  using Parameters = AddParameters;
  static __device__ uint32_t run(const Parameters& parameters, const EventBlock&) {
    return parameters.a + parameters.b;
  }
};

struct Fail {
  using Parameters = FailParameters;
  static __device__ uint32_t run(const Parameters& parameters, const EventBlock& block) {
    return block.block == 0 && threadIdx.x == 0 ? parameters.code : 0;
  }
};

struct Spin {
  using Parameters = SpinParameters;
  static __device__ uint32_t run(const Parameters& parameters, const EventBlock&) {
    if (threadIdx.x != 0) return 0;
    const uint64_t begin = gpu::global_time_ns();
    while (gpu::global_time_ns() - begin < uint64_t{parameters.us} * 1000) __nanosleep(100);
    return 0;
  }
};

struct Trap {
  using Parameters = FailParameters;
  static __device__ uint32_t run(const Parameters&, const EventBlock&) {
    __trap();
    return 0;
  }
};

struct Chain {
  using Parameters = ChainParameters;
  static __device__ uint32_t run(const Parameters& parameters, const EventBlock& block) {
    count(parameters.counters, 0);
    if (threadIdx.x != 0 || parameters.left == 0) return 0;
    Parameters next = parameters;
    --next.left;
    return schedule(*block.view, block.event, reinterpret_cast<const uint32_t*>(&next));
  }
};

struct Wait {
  using Parameters = WaitParameters;
  static __device__ uint32_t run(const Parameters& parameters, const EventBlock& block) {
    if (threadIdx.x != 0) return 0;
    Barrier& barrier = block.view->state->barriers[parameters.barrier];
    BarrierSeen seen;
    seen.generation = load_device(&barrier.generation);
    auto* const words = reinterpret_cast<uint32_t*>(parameters.counters);
    atomicAdd(&words[0], 1u);
    if (!wait_threads(barrier, seen, parameters.looks)) return 1;
    atomicAdd(&words[1], 1u);
    return 0;
  }
};

struct SumLong {
  using Parameters = LongParameters;
  static __device__ uint32_t run(const Parameters& parameters, const EventBlock&) {
    uint32_t sum = 0;
    for (const uint32_t word : parameters.words) sum += word;
    return sum;
  }
};

struct Start {
  using Parameters = StartParameters;
  static __device__ uint32_t run(const Parameters& parameters, const EventBlock& block) {
    if (threadIdx.x != 0) return 0;
    const ChainParameters first = parameters.chain;
    return schedule(*block.view, parameters.event, reinterpret_cast<const uint32_t*>(&first));
  }
};

struct Tick {
  using Parameters = TickParameters;
  static __device__ uint32_t run(const Parameters& parameters, const EventBlock&) {
    count(parameters.counters, parameters.index);
    return 0;
  }
};

}  // namespace

const edge_program* program_of_tests() {
  return Program<Count, Add, Fail, Spin, Trap, Chain, Wait, SumLong, Start, Tick>::table();
}

}  // namespace warpcache::edge
