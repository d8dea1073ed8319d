// SPDX-License-Identifier: Apache-2.0
//
// Headers and requests on the GPU; what it leaves to the host takes the host's path, to an engine
// on the same store.
#include "engine/cuda/cuda_engine.h"
#include "engine/cuda/packet_engine.h"
#include "engine/testing/store_admin.h"
#include "packets/fabric.h"
#include "packets/host_path.h"

namespace warpcache::packets {

namespace {

using engine::cuda::CudaEngine;
using engine::cuda::CudaMemory;
using engine::cuda::CudaStore;
using engine::cuda::FrameReply;
using engine::cuda::FrameState;
using engine::cuda::PacketEngine;
using engine::cuda::PacketSlot;

constexpr uint32_t kBlocks = 4;
constexpr uint32_t kBufferBytes = 16 * 1024 * 1024;

class GpuFabric final : public Fabric {
 public:
  explicit GpuFabric(uint16_t udp_port)
      : store_(make_store()),
        admin_(*store_),
        engine_(make_engine()),
        setup_engine_(make_engine()),
        packets_(make_packets(udp_port)),
        path_(udp_port, *engine_, *setup_engine_) {
    WC_ASSERT(input_.allocate(CudaMemory::Place::kHost, kBufferBytes));
    WC_ASSERT(replies_.allocate(CudaMemory::Place::kHost, kBufferBytes));
  }

  std::string set_up(const std::string& commands) override { return path_.set_up(commands); }
  void add(Bytes frame) override { frames_.emplace_back(frame.data, frame.data + frame.size); }
  std::vector<std::string> run() override {
    uint32_t used = 0;
    std::vector<PacketSlot> slots;
    for (const std::vector<uint8_t>& frame : frames_) {
      const auto size = static_cast<uint32_t>(frame.size());
      WC_ASSERT(used + size <= kBufferBytes);
      mem_copy(input_.data() + used, frame.data(), size);
      slots.push_back({used, size});
      used += (size + 15) / 16 * 16;
    }
    results_.resize(frames_.size());
    WC_ASSERT(packets_->run({input_.data(), slots.data(), static_cast<uint32_t>(slots.size()),
                             replies_.data(), kBufferBytes, results_.data()}));
    std::vector<std::string> replies;
    for (size_t i = 0; i < frames_.size(); ++i) take_result(i, replies);
    frames_.clear();
    return replies;
  }
  void advance(uint32_t seconds) override { store_->set_clock(store_->clock().now + seconds); }
  uint64_t malformed() const override { return malformed_ + path_.malformed(); }
  uint64_t count(wire::PacketVerdict verdict) const override {
    return verdicts_[static_cast<uint32_t>(verdict)];
  }

 private:
  std::unique_ptr<CudaStore> make_store() {
    engine::cuda::DeviceFacts facts;
    WC_ASSERT(engine::cuda::open_device(0, &facts).empty());
    engine::cuda::CudaStoreConfig config;
    config.store.memory_limit = uint64_t{64} << 20;
    config.store.maintenance_thread = false;
    config.store.manual_clock = true;
    config.engines = 3;
    config.blocks_per_engine = kBlocks;
    std::unique_ptr<CudaStore> store;
    WC_ASSERT(CudaStore::create(config, faults_, &store).empty());
    return store;
  }
  std::unique_ptr<CudaEngine> make_engine() {
    std::unique_ptr<CudaEngine> engine;
    engine::cuda::CudaEngineConfig config;
    config.jobs.blocks_max = kBlocks;
    WC_ASSERT(CudaEngine::create(config, *store_, faults_, admin_, &engine).empty());
    return engine;
  }
  std::unique_ptr<PacketEngine> make_packets(uint16_t udp_port) {
    std::unique_ptr<PacketEngine> engine;
    engine::cuda::PacketEngineConfig config;
    config.udp_port = udp_port;
    config.jobs.blocks_max = kBlocks;
    WC_ASSERT(PacketEngine::create(config, *store_, faults_, &engine).empty());
    return engine;
  }

  void take_result(size_t index, std::vector<std::string>& replies) {
    const FrameReply& reply = results_[index];
    if (reply.state == FrameState::kDropped) {
      const auto verdict = static_cast<wire::PacketVerdict>(reply.bytes);
      ++verdicts_[reply.bytes];
      if (verdict == wire::PacketVerdict::kRequest) ++malformed_;
      return;
    }
    ++verdicts_[static_cast<uint32_t>(wire::PacketVerdict::kRequest)];
    if (reply.state != FrameState::kHost) {
      const auto* data = reinterpret_cast<const char*>(replies_.data()) + reply.offset;
      if (reply.size != 0) replies.emplace_back(data, reply.size);
      return;
    }
    path_.add({frames_[index].data(), frames_[index].size()});
    path_.run(replies);
  }

  engine::cuda::DeviceFaults faults_;
  std::unique_ptr<CudaStore> store_;
  engine::StoreAdmin admin_;
  std::unique_ptr<CudaEngine> engine_;
  std::unique_ptr<CudaEngine> setup_engine_;
  std::unique_ptr<PacketEngine> packets_;
  HostPath path_;
  std::vector<std::vector<uint8_t>> frames_;
  CudaMemory input_;  // pinned, as the replies are
  CudaMemory replies_;
  std::vector<FrameReply> results_;
  uint64_t verdicts_[wire::kPacketVerdicts] = {};
  uint64_t malformed_ = 0;
};

}  // namespace

std::unique_ptr<Fabric> make_gpu_fabric(uint16_t udp_port) {
  engine::cuda::DeviceFacts facts;
  if (!engine::cuda::open_device(0, &facts).empty()) return nullptr;
  return std::make_unique<GpuFabric>(udp_port);
}

}  // namespace warpcache::packets
