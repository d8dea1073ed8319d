// SPDX-License-Identifier: Apache-2.0
//
// Background work: another program that shares the GPU with the requests, after section 5.4 of
// MemcachedGPU (SoCC 2015). It multiplies two vectors with 256 blocks of 1024 threads, cut into
// several launches.
#pragma once

#include <cstdint>
#include <memory>

namespace warpcache::offline {

struct BackgroundConfig {
  // What the launches divide among them.
  enum class Cut : uint8_t {
    kBlocks,  // blocks, as in the paper: each does its whole work
    kTime,    // the work of every block
  };

  uint32_t launches = 0;  // parts of a run, at most kBackgroundBlocks; 0: no background work
  Cut cut = Cut::kBlocks;
};

inline constexpr uint32_t kBackgroundBlocks = 256;

// Runs again and again until it is stopped. On the current device.
class BackgroundWork {
 public:
  // Multiplications of a block with which a single launch takes `ms` when it has the GPU alone.
  // Throws std::runtime_error, like all functions here.
  static uint32_t loops_for(double ms);

  // Starts.
  BackgroundWork(const BackgroundConfig& config, uint32_t loops);
  ~BackgroundWork();
  BackgroundWork(const BackgroundWork&) = delete;
  BackgroundWork& operator=(const BackgroundWork&) = delete;

  // Waits for the end of at least one run; returns how long a run took, in ms.
  double stop();

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

// A process that does nothing but background work, beside a server in another process.
struct BackgroundProcess {
  BackgroundConfig config;
  uint32_t gpu = 0;
  uint32_t loops = 0;  // as of loops_for(); 0: measured first, while nothing else should run
  double seconds = 0;  // of work
};
struct BackgroundFigures {
  uint32_t loops = 0;
  double run_ms = 0;
};
// Throws std::runtime_error without a GPU, or if this was built without CUDA.
BackgroundFigures run_background(const BackgroundProcess& process);

}  // namespace warpcache::offline
