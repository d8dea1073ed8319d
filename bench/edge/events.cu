// SPDX-License-Identifier: Apache-2.0
#include "edge/device/program.cuh"
#include "edge/events.h"

namespace warpcache::edge {

namespace {

constexpr uint32_t kThreads = 256;

template <typename T>
__device__ T* at(uint64_t address) {
  return reinterpret_cast<T*>(address);
}

struct Ping {
  using Parameters = PingParameters;
  static __device__ uint32_t run(const Parameters& parameters, const EventBlock& block) {
    auto* const words = at<uint32_t>(parameters.words);
    words[block.block * blockDim.x + threadIdx.x] += 1;
    return 0;
  }
};

// 256 threads make 4 x 4 values each; the tiles of a and b go through shared memory.
struct Product {
  using Parameters = ProductParameters;
  static constexpr uint32_t kDepth = 16;
  static __device__ uint32_t run(const Parameters& parameters, const EventBlock& block) {
    __shared__ float a[kDepth][kTile + 1];
    __shared__ float b[kDepth][kTile];
    const uint32_t size = parameters.size;
    const uint32_t tiles = size / kTile;
    const uint32_t row0 = block.block / tiles * kTile;
    const uint32_t column0 = block.block % tiles * kTile;
    const uint32_t x = threadIdx.x % 16;
    const uint32_t y = threadIdx.x / 16;
    float sums[4][4] = {};
    for (uint32_t k0 = 0; k0 < size; k0 += kDepth) {
      for (uint32_t i = threadIdx.x; i < kTile * kDepth; i += blockDim.x) {
        a[i % kDepth][i / kDepth] =
            at<float>(parameters.a)[(row0 + i / kDepth) * size + k0 + i % kDepth];
        b[i / kTile][i % kTile] =
            at<float>(parameters.b)[(k0 + i / kTile) * size + column0 + i % kTile];
      }
      __syncthreads();
      for (uint32_t k = 0; k < kDepth; ++k) {
        for (uint32_t i = 0; i < 4; ++i) {
          for (uint32_t j = 0; j < 4; ++j) sums[i][j] += a[k][y * 4 + i] * b[k][x * 4 + j];
        }
      }
      __syncthreads();
    }
    for (uint32_t i = 0; i < 4; ++i) {
      for (uint32_t j = 0; j < 4; ++j) {
        at<float>(parameters.c)[(row0 + y * 4 + i) * size + column0 + x * 4 + j] = sums[i][j];
      }
    }
    return 0;
  }
};

struct Packets {
  using Parameters = PacketsParameters;
  static __device__ uint32_t run(const Parameters& parameters, const EventBlock& block) {
    constexpr uint32_t kWords = kPacketBytes / sizeof(uint4);
    const auto* const in = at<uint4>(parameters.in);
    auto* const out = at<uint4>(parameters.out);
    const uint32_t step = block.blocks * blockDim.x;
    for (uint32_t i = block.block * blockDim.x + threadIdx.x; i < parameters.count * kWords;
         i += step) {
      uint4 word = __ldcv(in + i);
      if (i % kWords == 0) word = {word.z, word.w, word.x, word.y};
      out[i] = word;
    }
    return 0;
  }
};

struct Lookups {
  using Parameters = LookupsParameters;
  static __device__ uint32_t run(const Parameters& parameters, const EventBlock& block) {
    const uint32_t step = block.blocks * blockDim.x;
    for (uint32_t i = block.block * blockDim.x + threadIdx.x; i < parameters.count; i += step) {
      uint32_t key = (parameters.seed + i) * 2654435761u;
      key ^= key >> 15;
      const uint32_t place = at<uint32_t>(parameters.index)[(key & parameters.mask) & ~15u];
      const uint4 item =
          __ldcg(at<uint4>(parameters.items) + uint64_t{place & parameters.mask} * 4);
      at<uint4>(parameters.out)[i] = {item.x, item.y, key, place};
    }
    return 0;
  }
};

struct Convolution {
  using Parameters = ConvolutionParameters;
  static __device__ uint32_t run(const Parameters& parameters, const EventBlock& block) {
    const auto* const in = at<float>(parameters.in);
    auto* const out = at<float>(parameters.out);
    for (uint32_t i = threadIdx.x; i < kRows * parameters.width; i += blockDim.x) {
      const uint32_t x = i % parameters.width;
      const uint32_t y = block.block * kRows + i / parameters.width;
      if (y < 2 || y + 2 >= parameters.height || x < 2 || x + 2 >= parameters.width) continue;
      float sum = 0;
      for (uint32_t dy = 0; dy < 5; ++dy) {
        for (uint32_t dx = 0; dx < 5; ++dx) {
          sum += in[(y + dy - 2) * parameters.width + x + dx - 2] * 0.04f;
        }
      }
      out[y * parameters.width + x] = sum;
    }
    return 0;
  }
};

// Blocks that have ended, of launches of several blocks: one such launch is in flight at a time.
__device__ uint32_t blocks_ended;

// The same by a launch.
template <typename Event>
__global__ void __launch_bounds__(kThreads)
    launched(const __grid_constant__ typename Event::Parameters parameters, uint32_t* done,
             uint32_t number) {
  const EventBlock block = {blockIdx.x, gridDim.x, 0, number, nullptr, nullptr, nullptr};
  (void)Event::run(parameters, block);
  if (done == nullptr) return;
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (gridDim.x > 1) {
    fence_all();
    if (atomicAdd(&blocks_ended, 1u) + 1 != gridDim.x) return;
    atomicExch(&blocks_ended, 0u);
  }
  store_release_system(done, number);
}

__global__ void answers(uint32_t* bell, uint32_t* done, uint32_t count) {
  constexpr uint64_t kPatienceNs = 20'000'000'000;
  for (uint32_t number = 1; number <= count; ++number) {
    const uint64_t begin = gpu::global_time_ns();
    while (load_system(bell) != number) {
      if (gpu::global_time_ns() - begin > kPatienceNs) return;
    }
    store_release_system(done, number);
  }
}

template <typename Event>
void launch(const typename Event::Parameters& parameters, uint32_t blocks, uint32_t* done,
            uint32_t number, cudaStream_t stream, uint32_t shared_bytes = 0) {
  gpu::start_kernel(launched<Event>, {blocks, kThreads}, shared_bytes, stream, parameters, done,
                    number);
}

}  // namespace

const edge_program* program_of_bench() {
  return Program<Ping, Product, Packets, Lookups, Convolution>::table();
}

void program_of_bench_launch_answers(uint32_t* bell, uint32_t* done, uint32_t count,
                                     cudaStream_t stream) {
  gpu::start_kernel(answers, {1, 1}, 0, stream, bell, done, count);
}
void program_of_bench_launch_ping(const PingParameters& parameters, uint32_t blocks, uint32_t* done,
                                  uint32_t number, cudaStream_t stream) {
  launch<Ping>(parameters, blocks, done, number, stream);
}
void program_of_bench_launch_product(const ProductParameters& parameters, cudaStream_t stream) {
  const uint32_t tiles = parameters.size / kTile;
  launch<Product>(parameters, tiles * tiles, nullptr, 0, stream);
}
void program_of_bench_launch_packets(const PacketsParameters& parameters, uint32_t* done,
                                     uint32_t number, cudaStream_t stream) {
  launch<Packets>(parameters, 1, done, number, stream);
}
void program_of_bench_launch_lookups(const LookupsParameters& parameters, uint32_t* done,
                                     uint32_t number, cudaStream_t stream) {
  launch<Lookups>(parameters, 1, done, number, stream);
}
void program_of_bench_launch_convolution(const ConvolutionParameters& parameters,
                                         cudaStream_t stream) {
  // Asked for, not used: blocks that take nearly all shared memory keep it off their
  // multiprocessors.
  constexpr uint32_t kSharedBytes = 32 * 1024;
  launch<Convolution>(parameters, parameters.height / kRows, nullptr, 0, stream, kSharedBytes);
}

}  // namespace warpcache::edge
