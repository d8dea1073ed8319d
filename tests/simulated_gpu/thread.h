// SPDX-License-Identifier: Apache-2.0
//
// A thread of the simulated GPU, as device code sees it: where it is, and what it does together
// with others. The threads of a block take turns on one thread of the host; one goes on when
// another waits, or passes.
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

// Of the thread that runs.
const Place& place();

// May let another thread of the block go on: chance decides, so that threads meet in many ways.
void pass();
// Lets the others go on, and the host's other threads where they have nothing to do either.
void rest();

// What threads of a warp do together. All lanes of `mask` call the same function, or the process
// ends with a message, as it does where threads wait for each other in vain.
enum class Together : uint8_t { kNone, kShuffle, kVote, kReduce, kSync };

// Every lane gives a word and gets those of the warp; they stay until the lane's next call.
const uint64_t* exchange_in_warp(uint32_t mask, uint64_t word, Together what);

// All threads of the block that have not ended. Gives the sum of `count` over them.
uint32_t meet_in_block(uint32_t count);

}  // namespace simt
