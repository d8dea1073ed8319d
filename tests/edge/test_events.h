// SPDX-License-Identifier: Apache-2.0
//
// Event kernels of the tests. Numbers of the functions, and their parameters.
#pragma once

#include <cstdint>

#include "warpcache/edge.h"

namespace warpcache::edge {

enum TestFunction : uint32_t {
  kCount,
  kAdd,
  kFail,
  kSpin,
  kTrap,
  kChain,
  kWait,
  kSumLong,
  kStart,
  kTick
};

struct CountParameters {
  uint64_t counters;  // address of words of four bytes, in memory that the GPU sees
  uint32_t index;     // each block adds 1 to this word
  uint32_t reserved;
};
struct AddParameters {  // the code is the sum
  uint32_t a;
  uint32_t b;
};
struct FailParameters {
  uint32_t code;
};
struct SpinParameters {
  uint32_t us;
};
struct ChainParameters {  // counts, and submits itself once less
  uint64_t counters;
  uint32_t left;
  uint32_t reserved;
};
struct WaitParameters {  // waits at a barrier; the code is 1 if that takes too long
  uint64_t counters;     // word 0 counts who arrives, word 1 who goes on
  uint32_t barrier;
  uint32_t looks;
};
struct LongParameters {  // the code is the sum of all words
  uint32_t words[EDGE_PARAMETER_BYTES_MAX / 4];
};
struct StartParameters {  // submits the first event of a chain; the code is what that says
  ChainParameters chain;
  uint32_t event;
  uint32_t reserved;
};
struct TickParameters {
  uint32_t tick;
  uint32_t index;
  uint64_t counters;
};

const edge_program* program_of_tests();

}  // namespace warpcache::edge
