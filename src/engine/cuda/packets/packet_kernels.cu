// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/packets/packet_work.cuh"

namespace warpcache::engine::cuda {

namespace {

__global__ void __launch_bounds__(kPacketThreadsMax, 2)
    packet_kernel(const __grid_constant__ BlockResources resources,
                  const __grid_constant__ PacketJob job) {
  run_job<PacketWork>(resources, job);
}

}  // namespace

cudaError_t prepare_packet_kernels() {
  const cudaError_t error = allow_packet_shared_bytes(packet_kernel);
  return error != cudaSuccess ? error : prepare_persistent_packet_kernel();
}

void launch_job(const BlockResources& resources, const PacketJob& job,
                const gpu::LaunchShape& shape, cudaStream_t stream) {
  gpu::start_kernel(packet_kernel, shape, packet_shared_bytes(shape.threads), stream, resources,
                    job);
}

}  // namespace warpcache::engine::cuda
