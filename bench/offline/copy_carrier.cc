// SPDX-License-Identifier: Apache-2.0
#include "offline/copy_carrier.h"

#include <stdexcept>

namespace warpcache::offline {

CopyCarrier::CopyCarrier(const Ways& ways, uint32_t places, gpu::DeviceFaults& faults)
    : ways_(ways), faults_(faults) {
  bool made = in_.create(gpu::CudaStream::Priority::kNormal) &&
              out_.create(gpu::CudaStream::Priority::kNormal);
  for (uint32_t i = 0; i < places && made; ++i) {
    made = cudaEventCreateWithFlags(&ends_.emplace_back(), cudaEventDisableTiming) == cudaSuccess;
    if (!made) ends_.pop_back();
  }
  if (!made) throw std::runtime_error("the GPU has no streams or events left");
}

CopyCarrier::~CopyCarrier() {
  for (const cudaEvent_t end : ends_) (void)cudaEventDestroy(end);
}

void CopyCarrier::bring(uint32_t place, uint64_t offset, uint64_t bytes) {
  (void)(faults_.check(cudaMemcpyAsync(ways_.gpu_in + offset, ways_.wire_in + offset, bytes,
                                       cudaMemcpyHostToDevice, in_.get()),
                       "frames to the GPU") &&
         faults_.check(cudaEventRecord(ends_[place], in_.get()), "frames to the GPU"));
}

void CopyCarrier::take_away(uint32_t place, uint64_t offset, uint64_t bytes) {
  (void)(faults_.check(cudaMemcpyAsync(ways_.wire_out + offset, ways_.gpu_out + offset, bytes,
                                       cudaMemcpyDeviceToHost, out_.get()),
                       "replies from the GPU") &&
         faults_.check(cudaEventRecord(ends_[place], out_.get()), "replies from the GPU"));
}

bool CopyCarrier::is_done(uint32_t place) {
  const cudaError_t state = cudaEventQuery(ends_[place]);
  if (state == cudaErrorNotReady) return false;
  return faults_.check(state, "frames on their way");
}

}  // namespace warpcache::offline
