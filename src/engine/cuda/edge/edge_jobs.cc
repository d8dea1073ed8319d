// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/edge/edge_jobs.h"

#include <unistd.h>

#include "base/atomic.h"

namespace warpcache::engine::cuda {

namespace {

// The runner sees the end of its job a moment before the entry is free again.
constexpr uint32_t kDepth = 4;
// The simulated GPU on a busy machine takes seconds to begin and to end.
constexpr uint32_t kWaitMs = 60000;

}  // namespace

std::string EdgeJobs::create(uint32_t workers, const std::string& path,
                             std::unique_ptr<EdgeJobs>* jobs) {
  edge_config config = {};
  config.program = program_of_engine();
  config.workers = workers;
  config.threads = kSliceFrames;
  config.shared_bytes = edge_shared_bytes();
  config.depth_max = kDepth;
  config.wait_ms_max = kWaitMs;
  if (!path.empty()) {
    config.path = path.c_str();
    // The events of a server that was killed are not run by the next one.
    (void)unlink(path.c_str());
  }
  std::unique_ptr<EdgeJobs> made(new EdgeJobs(config, path));
  if (made->runtime_.open() != EDGE_OK || made->runtime_.pause() != EDGE_OK) return made->why();
  *jobs = std::move(made);
  return "";
}

EdgeJobs::~EdgeJobs() {
  (void)runtime_.close();
  if (has_file()) (void)unlink(path_.c_str());
}

std::string EdgeJobs::add(EdgeFunction function, uint32_t parameter_bytes, uint32_t* event) {
  edge_event wanted = {};
  wanted.function = static_cast<uint32_t>(function);
  wanted.blocks = 1;
  wanted.parameter_bytes = parameter_bytes;
  wanted.depth = kDepth;
  wanted.flags = EDGE_SELF_FREEING | EDGE_MODIFIABLE;
  const edge_status status = runtime_.register_event(wanted, event);
  if (status == EDGE_OK) return "";
  if (status == EDGE_NO_SPACE) {
    return "--gpu-mode=edge has " + std::to_string(EDGE_EVENTS_MAX) +
           " events, and there are more batches under way: fewer threads";
  }
  return why();
}

bool EdgeJobs::enter() {
  const std::lock_guard guard(mutex_);
  if (users_ == 0 && runtime_.resume() != EDGE_OK) return false;
  ++users_;
  return true;
}

bool EdgeJobs::leave() {
  const std::lock_guard guard(mutex_);
  return --users_ != 0 || runtime_.pause() == EDGE_OK;
}

bool EdgeJobs::schedule(uint32_t event, const void* parameters, uint32_t bytes, uint32_t blocks) {
  edge_queues::Doorbell doorbell;
  if (!prepare(event, parameters, bytes, blocks, &doorbell)) return false;
  store_release(doorbell.word, doorbell.value);
  return true;
}

bool EdgeJobs::prepare(uint32_t event, const void* parameters, uint32_t bytes, uint32_t blocks,
                       edge_queues::Doorbell* doorbell) {
  constexpr uint32_t kTriesMax = 1 << 20;
  for (uint32_t tries = 0; tries < kTriesMax; ++tries) {
    const edge_status status =
        runtime_.queues().prepare(event, parameters, bytes, blocks, doorbell);
    if (status == EDGE_OK) return true;
    if (status != EDGE_FULL) return false;
    spin_wait(tries);
  }
  return false;
}

uint64_t EdgeJobs::offset_of(const edge_queues::Doorbell& doorbell) {
  return static_cast<uint64_t>(reinterpret_cast<const uint8_t*>(doorbell.word) -
                               runtime_.queues().data());
}

bool EdgeJobs::check() { return runtime_.check() == EDGE_OK; }

std::string EdgeJobs::why() { return runtime_.why(); }

}  // namespace warpcache::engine::cuda
