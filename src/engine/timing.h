// SPDX-License-Identifier: Apache-2.0
//
// Who is told how long bursts took (`stats latency`, `stats slowlog`). The layers above the engine
// implement the interface; see admin/timings.h.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/engine.h"

namespace warpcache::engine {

// Any thread may call all functions.
class Timing {
 public:
  virtual ~Timing() = default;

  // Usually false; asked once for each burst.
  bool wanted() const { return wanted_.load(std::memory_order_relaxed); }

  // A burst whose replies have been handed over: `duration_ns` after its bytes were received. Its
  // input has not been overwritten yet.
  virtual void burst_ended(const Batch& batch, uint64_t duration_ns) = 0;

 protected:
  void set_wanted(bool wanted) { wanted_.store(wanted, std::memory_order_relaxed); }

 private:
  std::atomic<bool> wanted_{false};
};

}  // namespace warpcache::engine
