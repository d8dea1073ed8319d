// SPDX-License-Identifier: Apache-2.0
//
// Headers and requests are processed on the GPU. Frames that it leaves to the host run on the
// host's path, with an engine on the same store.
#include "engine/cuda/messages/cuda_engine.h"
#include "engine/cuda/packets/packet_engine.h"
#include "engine/cuda/packets/reply_frames.h"
#include "engine/testing/store_admin.h"
#include "packets/backend.h"
#include "packets/host_path.h"

namespace warpcache::packets {

namespace {

using engine::cuda::CudaEngine;
using engine::cuda::PacketEngine;
using engine::cuda::PacketResult;
using engine::cuda::PacketSlot;
using engine::cuda::PacketState;
using gpu::CudaMemory;
using store::CudaStore;

constexpr uint32_t kBlocks = 4;
constexpr uint32_t kBufferBytes = 4 * 1024 * 1024;
constexpr uint32_t kPacketsMax = PacketEngine::kPacketsMax;

class GpuBackend final : public Backend {
 public:
  GpuBackend(uint16_t udp_port, bool persistent)
      : store_(make_store()),
        admin_(*store_),
        engine_(make_engine()),
        setup_engine_(make_engine()),
        packets_(make_packets(udp_port, persistent)),
        path_(udp_port, *engine_, *setup_engine_) {
    WC_ASSERT(input_.allocate(CudaMemory::Place::kHost, kBufferBytes));
    WC_ASSERT(replies_.allocate(CudaMemory::Place::kHost, kBufferBytes));
    WC_ASSERT(slots_.allocate(CudaMemory::Place::kHost, sizeof(PacketSlot) * kPacketsMax));
    WC_ASSERT(results_.allocate(CudaMemory::Place::kHost, sizeof(PacketResult) * kPacketsMax));
  }

  // Memory can be freed only when no persistent kernel runs.
  ~GpuBackend() override { packets_->release_device(); }

  std::string set_up(const std::string& commands) override { return path_.set_up(commands); }
  void add(Bytes frame) override { frames_.emplace_back(frame.data, frame.data + frame.size); }
  std::vector<std::string> run() override {
    WC_ASSERT(frames_.size() <= kPacketsMax);
    uint32_t used = 0;
    for (size_t i = 0; i < frames_.size(); ++i) {
      const auto size = static_cast<uint32_t>(frames_[i].size());
      WC_ASSERT(used + size <= kBufferBytes);
      mem_copy(input_.data() + used, frames_[i].data(), size);
      slots_.as<PacketSlot>()[i] = {used, size};
      used += (size + 15) / 16 * 16;
    }
    engine::cuda::PacketBatch batch;
    batch.input = input_.data();
    batch.input_bytes = used;
    batch.count = static_cast<uint32_t>(frames_.size());
    batch.slots = slots_.as<PacketSlot>();
    batch.replies = replies_.data();
    batch.reply_bytes = kBufferBytes;
    batch.results = results_.as<PacketResult>();
    WC_ASSERT(packets_->run(batch));
    std::vector<std::string> replies;
    for (size_t i = 0; i < frames_.size(); ++i) take_result(i, replies);
    frames_.clear();
    return replies;
  }
  void advance(uint32_t seconds) override { store_->set_clock(store_->clock().now + seconds); }
  uint64_t malformed() const override { return malformed_ + path_.malformed(); }
  uint64_t count(net::PacketVerdict verdict) const override {
    return verdicts_[static_cast<uint32_t>(verdict)];
  }

 private:
  std::unique_ptr<CudaStore> make_store() {
    gpu::DeviceFacts facts;
    WC_ASSERT(gpu::open_device(0, &facts).empty());
    store::CudaStoreConfig config;
    config.block_scratch_bytes = engine::cuda::block_scratch_bytes();
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
  std::unique_ptr<PacketEngine> make_packets(uint16_t udp_port, bool persistent) {
    std::unique_ptr<PacketEngine> engine;
    engine::cuda::PacketEngineConfig config;
    config.udp_port = udp_port;
    config.jobs.blocks_max = kBlocks;
    config.jobs.persistent = persistent;
    WC_ASSERT(PacketEngine::create(config, *store_, faults_, &engine).empty());
    return engine;
  }

  void take_result(size_t index, std::vector<std::string>& replies) {
    const PacketResult result = results_.as<PacketResult>()[index];
    if (result.state() == PacketState::kDropped) {
      ++verdicts_[static_cast<uint32_t>(result.verdict())];
      if (result.verdict() == net::PacketVerdict::kRequest) ++malformed_;
      return;
    }
    ++verdicts_[static_cast<uint32_t>(net::PacketVerdict::kRequest)];
    if (result.state() != PacketState::kHost) {
      const engine::cuda::ReplyFrames frames(replies_.data(), result);
      for (uint32_t i = 0; i < frames.count(); ++i) {
        replies.emplace_back(reinterpret_cast<const char*>(frames[i].data), frames[i].size);
      }
      return;
    }
    path_.add({frames_[index].data(), frames_[index].size()});
    path_.run(replies);
  }

  gpu::DeviceFaults faults_;
  std::unique_ptr<CudaStore> store_;
  engine::StoreAdmin admin_;
  std::unique_ptr<CudaEngine> engine_;
  std::unique_ptr<CudaEngine> setup_engine_;
  std::unique_ptr<PacketEngine> packets_;
  HostPath path_;
  std::vector<std::vector<uint8_t>> frames_;
  CudaMemory input_;  // pinned, as the replies are
  CudaMemory replies_;
  CudaMemory slots_;
  CudaMemory results_;
  uint64_t verdicts_[net::kPacketVerdicts] = {};
  uint64_t malformed_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_gpu_backend(uint16_t udp_port, bool persistent) {
  gpu::DeviceFacts facts;
  if (!gpu::open_device(0, &facts).empty()) return nullptr;
  return std::make_unique<GpuBackend>(udp_port, persistent);
}

}  // namespace warpcache::packets
