// SPDX-License-Identifier: Apache-2.0
//
// A thread of the simulated GPU, as device code sees it: its place, and what it does together with
// others. The threads of a block run one after the other on one thread of the host; another one
// continues when the running one waits, or passes.
#pragma once

#include <cstdint>

namespace simt {

inline constexpr uint32_t kWarpSize = 32;

// In one dimension.
struct Place {
  uint32_t thread = 0;
  uint32_t block = 0;
  uint32_t block_size = 0;
  uint32_t grid_size = 0;
};

// Of the running thread. Read at each use of threadIdx and the like.
extern thread_local const Place* running_place __attribute__((tls_model("initial-exec")));
inline const Place& place() { return *running_place; }

// May let another thread of the block continue: at random, so that threads meet in many orders.
void pass();
// Lets the others continue, and other threads of the host if these have nothing to do either.
void rest();

// What the threads of a warp do together. All lanes of `mask` must call the same function, else the
// process ends with a message. It also does where threads wait for each other forever.
enum class Together : uint8_t { kNone, kShuffle, kVote, kReduce, kSync };

// Every lane gives a word and gets the words of all; they stay until the lane's next call.
const uint64_t* exchange_in_warp(uint32_t mask, uint64_t word, Together what);

// A barrier for all threads of the block that have not ended. Returns the sum of `count` over them.
uint32_t meet_in_block(uint32_t count);

}  // namespace simt
