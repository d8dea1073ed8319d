// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/packets/packet_work.cuh"

namespace warpcache::engine::cuda {

namespace {

__global__ void __launch_bounds__(kPacketThreadsMax, 2)
    persistent_packet_kernel(const __grid_constant__ BlockResources resources,
                             const Doorbell<PacketJob>* bell,
                             DeviceDoorbell<PacketJob>* device_bell, uint32_t last) {
  run_jobs<PacketWork>(resources, bell, device_bell, last);
}

}  // namespace

cudaError_t prepare_persistent_packet_kernel() {
  return allow_packet_shared_bytes(persistent_packet_kernel);
}

uint32_t persistent_blocks_at_once(const PacketJob*) {
  const gpu::LaunchShape shape = persistent_shape(static_cast<PacketJob*>(nullptr), 1);
  return gpu::blocks_at_once(persistent_packet_kernel, shape, packet_shared_bytes(shape.threads));
}

void launch_persistent(const BlockResources& resources, const Doorbell<PacketJob>* bell,
                       DeviceDoorbell<PacketJob>* device_bell, uint32_t last_job,
                       const gpu::LaunchShape& shape, cudaStream_t stream) {
  gpu::start_kernel(persistent_packet_kernel, shape, packet_shared_bytes(shape.threads), stream,
                    resources, bell, device_bell, last_job);
}

}  // namespace warpcache::engine::cuda
