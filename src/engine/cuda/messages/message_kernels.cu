// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/messages/frame_work.cuh"
#include "gpu/start_kernel.cuh"

namespace warpcache::engine::cuda {

namespace {

__global__ void __launch_bounds__(kSliceFrames)
    frame_kernel(const __grid_constant__ BlockResources resources,
                 const __grid_constant__ FrameJob job) {
  run_job<FrameWork>(resources, job);
}

__global__ void __launch_bounds__(kSliceFrames)
    persistent_frame_kernel(const __grid_constant__ BlockResources resources,
                            const Doorbell<FrameJob>* bell, DeviceDoorbell<FrameJob>* device_bell,
                            uint32_t last) {
  run_jobs<FrameWork>(resources, bell, device_bell, last);
}

}  // namespace

uint32_t persistent_blocks_at_once(const FrameJob*) {
  return gpu::blocks_at_once(persistent_frame_kernel,
                             persistent_shape(static_cast<FrameJob*>(nullptr), 1), sizeof(Slice));
}

uint64_t block_scratch_bytes() { return kScratchBytes; }

cudaError_t prepare_frame_kernels() {
  constexpr auto kAttribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  const cudaError_t error = cudaFuncSetAttribute(frame_kernel, kAttribute, sizeof(Slice));
  if (error != cudaSuccess) return error;
  return cudaFuncSetAttribute(persistent_frame_kernel, kAttribute, sizeof(Slice));
}

void launch_job(const BlockResources& resources, const FrameJob& job, const gpu::LaunchShape& shape,
                cudaStream_t stream) {
  gpu::start_kernel(frame_kernel, shape, sizeof(Slice), stream, resources, job);
}

void launch_persistent(const BlockResources& resources, const Doorbell<FrameJob>* bell,
                       DeviceDoorbell<FrameJob>* device_bell, uint32_t last_job,
                       const gpu::LaunchShape& shape, cudaStream_t stream) {
  gpu::start_kernel(persistent_frame_kernel, shape, sizeof(Slice), stream, resources, bell,
                    device_bell, last_job);
}

}  // namespace warpcache::engine::cuda
