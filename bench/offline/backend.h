// SPDX-License-Identifier: Apache-2.0
//
// A backend turns request frames into reply frames, on the CPU or on a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "offline/background.h"
#include "offline/workload.h"
#include "offline/yardstick.h"

namespace warpcache::offline {

struct BackendConfig {
  uint64_t memory_bytes = uint64_t{1} << 30;  // of the store
  uint32_t hash_power = 0;                    // log2 of the slots that the index starts with
  uint32_t threads = 1;                       // of the host
  uint32_t depth = 1;                         // of the GPU: batches in progress for each thread
  uint32_t blocks = 0;            // of the GPU, for a batch; 0: one for each multiprocessor
  uint32_t copied_batch_min = 0;  // batches of this size and above cross the bus by copy engines;
                                  // 0: none
  bool persistent = false;        // a persistent kernel instead of a launch for each batch
  bool device_memory = false;     // frames and replies are in the GPU's memory
  bool nic = false;               // with device_memory: a stand-in for a network card writes the
                                  // frames there and reads the replies, while the pass runs
  bool maintenance = true;        // of the GPU's store, by a thread; filling works without it too
  bool high_priority = false;     // of the GPU's streams: requests go before background work
  uint32_t gpu = 0;
};

// Frames in slots of one size: request `i` of `count` is at input + i * slot_bytes.
struct Pass {
  uint64_t count = 0;
  uint32_t slot_bytes = 0;
  uint32_t reply_slot_bytes = 0;
  uint32_t batch = 1;         // requests in one batch
  bool writes = false;        // some are not gets
  double requests_per_s = 0;  // batches come at this rate, at equal intervals; 0: without pause
};

struct PassResult {
  double seconds = 0;
  // Latency of each batch, up to its last reply: from its start, or with a rate from the time at
  // which it was due.
  std::vector<float> batch_us;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string describe() const = 0;
  // Memory for the frames of the next pass, valid until the next call. Throws std::bad_alloc.
  virtual uint8_t* input(uint64_t bytes) = 0;
  // Turns all frames into replies. Throws std::runtime_error if that fails.
  virtual PassResult run(const Pass& pass) = 0;
  // Background work runs from begin to end, whatever else runs meanwhile. end waits for at least
  // one run of it, and returns how long a run took, in ms. Throws std::runtime_error without a GPU.
  virtual void begin_background(const BackgroundConfig&) {
    throw std::runtime_error("background work needs --engine cuda");
  }
  virtual double end_background() { return 0; }
  // Of the GPU, see yardstick.h. Without a GPU energy is negative and limits are 0.
  virtual double joules() const { return -1; }
  virtual BusLimits bus() const { return {}; }
  // One frame of the reply to a request of the last pass; empty: there was none.
  virtual Bytes reply(uint64_t request, uint32_t datagram) const = 0;
};

std::unique_ptr<Backend> make_cpu_backend(const BackendConfig& config);
// Throws std::runtime_error without a GPU, or if this was built without CUDA.
std::unique_ptr<Backend> make_gpu_backend(const BackendConfig& config);

}  // namespace warpcache::offline
