// SPDX-License-Identifier: Apache-2.0
//
// Runs the threads of a block of the simulated GPU, one after the other, on the calling thread of
// the host.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
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
  struct Warp {
    uint64_t given[kWarpSize];
    uint64_t taken[kWarpSize];  // of the last exchange that was complete
    Together what[kWarpSize];
    uint32_t arrived;
    uint32_t turn;
  };

  void start(const Place& shape, uint32_t block);
  bool take_turns();
  void work();
  void wait_while(const uint32_t& word, uint32_t value);
  void open_barrier();
  [[noreturn]] void give_up(const char* why) const;

  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Warp> warps_;
  const std::function<void()>* body_ = nullptr;
  Thread* running_ = nullptr;
  uint32_t size_ = 0;  // threads of the block
  uint32_t left_ = 0;  // threads that have not ended
  uint32_t at_barrier_ = 0;
  uint32_t barrier_turn_ = 0;
  uint32_t barrier_sum_ = 0;
  uint32_t barrier_result_ = 0;
  bool worked_ = false;  // in this round somebody has done more than poll
  std::minstd_rand chance_;

  friend class Thread;
  friend const Place& place();
};

}  // namespace simt
