// SPDX-License-Identifier: Apache-2.0
//
// Another program that shares the card with the requests, after section 5.4 of MemcachedGPU (SoCC
// 2015): a multiplication of two vectors by 256 blocks of 1024 threads, cut into several launches.
#pragma once

#include <cstdint>
#include <memory>

namespace warpcache::offline {

struct BackgroundConfig {
  // What each of the launches has a share of.
  enum class Cut : uint8_t {
    kBlocks,  // as in the paper: of the blocks, each of which does all its work
    kTime,    // of every block's work
  };

  uint32_t launches = 0;  // that a run is cut into, at most kBackgroundBlocks; 0: no such work
  Cut cut = Cut::kBlocks;
};

inline constexpr uint32_t kBackgroundBlocks = 256;

// Runs, one behind the other, until it is stopped. On the device in use.
class BackgroundWork {
 public:
  // How often a block multiplies for one launch of all to take `ms` alone. Throws
  // std::runtime_error, as all here.
  static uint32_t loops_for(double ms);

  // Begins.
  BackgroundWork(const BackgroundConfig& config, uint32_t loops);
  ~BackgroundWork();
  BackgroundWork(const BackgroundWork&) = delete;
  BackgroundWork& operator=(const BackgroundWork&) = delete;

  // Waits for the end of one run at least; returns what a run took, in ms.
  double stop();

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace warpcache::offline
