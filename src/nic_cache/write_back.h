// SPDX-License-Identifier: Apache-2.0
//
// Write-back, an experiment: the program accepts sets and answers them before the store has them.
// Whoever is about to use the store takes over first what was accepted so far, so nobody sees an
// item that is older than what was answered.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

#include "nic_cache/program.h"

namespace warpcache::nic_cache {

class WriteBack {
 public:
  using Apply = std::function<void(const nic_write&)>;

  // `program` outlives it, and is loaded.
  explicit WriteBack(XdpProgram& program)
      : program_(program), accepted_(program.memory().control->accepted) {}

  // Calls `apply` for every write that was accepted before, in their order. From any thread that
  // holds no epoch of the store; all threads give the same `apply`.
  void settle(const Apply& apply);

  // Writes that were applied.
  uint64_t applied() const { return applied_.load(std::memory_order_relaxed); }

 private:
  XdpProgram& program_;
  __u64& accepted_;  // counted by the program
  std::mutex mutex_;
  std::atomic<uint64_t> applied_{0};
};

}  // namespace warpcache::nic_cache
