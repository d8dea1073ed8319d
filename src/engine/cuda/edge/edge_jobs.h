// SPDX-License-Identifier: Apache-2.0
//
// Jobs as events of EDGE: the threads of the server ring doorbells, and the workers of one
// scheduler run the jobs of all engines. Each runner has an event of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "edge/runtime.h"
#include "engine/cuda/runtime/job.h"
#include "store/cuda/block_resources.h"

namespace warpcache::engine::cuda {

// The parameters of an event.
template <typename JobKind>
struct EdgeJob {
  const store::BlockResources* resources;  // device
  JobKind job;
};
static_assert(sizeof(EdgeJob<FrameJob>) <= EDGE_PARAMETER_BYTES_MAX &&
              sizeof(EdgeJob<PacketJob>) <= EDGE_PARAMETER_BYTES_MAX);

// The functions of the program, edge_kernels.cu.
enum class EdgeFunction : uint32_t { kFrames, kPackets };
const edge_program* program_of_engine();
uint32_t edge_shared_bytes();

inline EdgeFunction edge_function(const FrameJob*) { return EdgeFunction::kFrames; }
inline EdgeFunction edge_function(const PacketJob*) { return EdgeFunction::kPackets; }

// Its functions may be called by several threads at once.
class EdgeJobs {
 public:
  // Returns the error as text, or "". REQUIRES: gpu::open_device(). `workers`: persistent blocks.
  // `path`: a file for the queues, which peers in other processes map; it is made anew, and removed
  // at the end. Empty: only this process rings.
  static std::string create(uint32_t workers, const std::string& path,
                            std::unique_ptr<EdgeJobs>* jobs);
  ~EdgeJobs();
  EdgeJobs(const EdgeJobs&) = delete;
  EdgeJobs& operator=(const EdgeJobs&) = delete;

  // An event for a runner.
  std::string add(EdgeFunction function, uint32_t parameter_bytes, uint32_t* event);

  // The scheduler runs from the first enter() to the last leave(): while it does, memory of the GPU
  // can be neither taken nor freed. False: it does not start or end, and why() says more.
  bool enter();
  bool leave();

  // False: the entry cannot be had, which is an error: a runner has one job at a time.
  bool schedule(uint32_t event, const void* parameters, uint32_t bytes, uint32_t blocks);
  // The same, but somebody else rings.
  bool prepare(uint32_t event, const void* parameters, uint32_t bytes, uint32_t blocks,
               edge_queues::Doorbell* doorbell);
  // Of a doorbell, in the file. Only with `path`.
  uint64_t offset_of(const edge_queues::Doorbell& doorbell);
  bool has_file() const { return !path_.empty(); }
  // The GPU has not failed.
  bool check();
  std::string why();

 private:
  EdgeJobs(const edge_config& config, std::string path)
      : path_(std::move(path)), runtime_(config) {}

  std::string path_;
  std::mutex mutex_;
  uint32_t users_ = 0;
  edge_runtime runtime_;
};

}  // namespace warpcache::engine::cuda
