// SPDX-License-Identifier: Apache-2.0
//
// Runs the threads of a block of the simulated GPU, one after the other, on the calling thread of
// the host.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "simulated_gpu/thread.h"

namespace simt {

class Thread;

// Used by one thread of the host, for one block after the other; the stacks of its threads are
// kept.
class BlockRunner {
 public:
  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  // Returns when all threads of block number `block` have run `body`.
  void run(const Place& shape, uint32_t block, const std::function<void()>& body);

  // Called by the running thread. See thread.h.
  void pass();
  void rest();
  const uint64_t* exchange(uint32_t mask, uint64_t word, Together what);
  uint32_t meet(uint32_t count);

 private:
  // What its lanes do together. One exchange is complete before a lane begins the next but one, so
  // that two places for the words do.
  struct Warp {
    uint64_t words[2][kWarpSize];
    uint32_t exchanges;    // that were complete
    uint32_t arrived;      // lanes that wait for the rest of the warp, ...
    uint32_t at_barrier;   // ... for the rest of the block, ...
    uint32_t ready;        // ... and for their turn, and the one that runs
    uint64_t polls_until;  // this round: one of its lanes has rested
    Together what;         // those do that have arrived
  };

  void start(const Place& shape, uint32_t block);
  bool run_round();
  Thread* take_next();
  void leave();
  void wait(uint32_t& waiting);
  void work();
  void run_thread();
  void open_barrier();
  uint32_t chance();
  [[noreturn]] void give_up(const char* why) const;

  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Warp> warps_;
  const std::function<void()>* body_ = nullptr;
  void* host_ = nullptr;       // where run_round() goes on
  Thread* running_ = nullptr;  // or ran last
  uint32_t size_ = 0;          // threads of the block
  uint32_t left_ = 0;          // threads that have not ended
  uint32_t at_barrier_ = 0;
  uint32_t barrier_sum_ = 0;
  uint32_t barrier_result_ = 0;
  bool worked_ = false;  // in this round somebody has done more than poll
  uint64_t chance_;
  uint64_t round_ = 0;
  // What is left of the round: it begins within a warp and ends with the other lanes of the same.
  size_t warp_ = 0;          // of the running thread
  uint32_t lane_ = 0;        // its lane, as a mask
  uint32_t lanes_left_ = 0;  // of this warp
  size_t warps_left_ = 0;    // after it
  uint32_t last_lanes_ = 0;  // of the last one

  friend class Thread;
};

}  // namespace simt
