// SPDX-License-Identifier: Apache-2.0
//
// Event kernels of the measurements, and the same work by launches.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "warpcache/edge.h"

namespace warpcache::edge {

enum BenchFunction : uint32_t { kPing, kProduct, kPackets, kLookups, kConvolution };

struct PingParameters {
  uint64_t words;  // address: each thread adds 1 to one
};

// c = a * b, square matrices of floats. A block makes a tile of 64 x 64.
inline constexpr uint32_t kTile = 64;
struct ProductParameters {
  uint64_t a;
  uint64_t b;
  uint64_t c;
  uint32_t size;  // a multiple of kTile
  uint32_t reserved;
};

// Answers packets of 64 bytes: the addresses change places.
inline constexpr uint32_t kPacketBytes = 64;
struct PacketsParameters {
  uint64_t in;
  uint64_t out;
  uint32_t count;
  uint32_t reserved;
};

// Finds keys of 16 bytes in a table, by two dependent reads of 64 bytes each, and writes 16 bytes.
struct LookupsParameters {
  uint64_t index;  // words of four bytes: a place in `items`
  uint64_t items;  // of 64 bytes
  uint64_t out;    // 16 bytes a key
  uint32_t mask;   // places - 1
  uint32_t count;
  uint32_t seed;
  uint32_t reserved;
};

// A 5 x 5 convolution over an image of floats. A block makes kRows rows.
inline constexpr uint32_t kRows = 8;
struct ConvolutionParameters {
  uint64_t in;
  uint64_t out;
  uint32_t width;
  uint32_t height;
};

const edge_program* program_of_bench();

// By a launch. `done` (host) gets `number` at the end, if it is not null.
// One thread that answers the numbers 1 to `count` in `bell` in `done`, both in host memory, and
// ends by itself after 20 s without one.
void program_of_bench_launch_answers(uint32_t* bell, uint32_t* done, uint32_t count,
                                     cudaStream_t stream);
void program_of_bench_launch_ping(const PingParameters& parameters, uint32_t blocks, uint32_t* done,
                                  uint32_t number, cudaStream_t stream);
void program_of_bench_launch_product(const ProductParameters& parameters, cudaStream_t stream);
void program_of_bench_launch_packets(const PacketsParameters& parameters, uint32_t* done,
                                     uint32_t number, cudaStream_t stream);
void program_of_bench_launch_lookups(const LookupsParameters& parameters, uint32_t* done,
                                     uint32_t number, cudaStream_t stream);
void program_of_bench_launch_convolution(const ConvolutionParameters& parameters,
                                         cudaStream_t stream);

}  // namespace warpcache::edge
