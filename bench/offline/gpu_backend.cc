// SPDX-License-Identifier: Apache-2.0
//
// CUDA engines, one for each thread, on one store.
#include "offline/gpu_backend.h"

#include <algorithm>
#include <stdexcept>

#include "engine/cuda/cuda_engine.h"
#include "engine/testing/store_admin.h"
#include "offline/copy_carrier.h"
#include "offline/engine_backend.h"

namespace warpcache::offline {

namespace {

using engine::cuda::CudaEngine;
using engine::cuda::CudaEngineConfig;
using gpu::CudaMemory;
using store::CudaStore;

void check(const std::string& failure) {
  if (!failure.empty()) throw std::runtime_error(failure);
}

class GpuBackend final : public EngineBackend {
 public:
  explicit GpuBackend(const BackendConfig& config) : EngineBackend(config), energy_(config.gpu) {
    check(gpu::open_device(static_cast<int>(config.gpu), &facts_));
    if (config_.blocks == 0) {
      config_.blocks = config.persistent ? persistent_blocks() : facts_.multiprocessors;
    }
    store::CudaStoreConfig store;
    store.block_scratch_bytes = engine::cuda::block_scratch_bytes();
    store.store.memory_limit = config.memory_bytes;
    store.store.hash_power = config.hash_power;
    store.store.maintenance_thread = config.maintenance;
    store.engines = config.threads * (1 + config.depth);
    store.blocks_per_engine = config_.blocks;
    check(CudaStore::create(store, faults_, &store_));
    admin_ = std::make_unique<engine::StoreAdmin>(*store_);
    for (uint32_t i = 0; i < config.threads; ++i) {
      CudaEngineConfig engine;
      engine.jobs.blocks_max = config_.blocks;
      engine.jobs.persistent = config.persistent;
      // Each engine has kernels for messages as well, and they run alone at the start.
      engine.jobs.resident = 1;
      engine.packets_resident = config.threads * config.depth;
      if (config.high_priority) engine.jobs.priority = gpu::CudaStream::Priority::kHigh;
      engine.packet_bursts = config.depth;
      engine.copied_packets_min = config.copied_batch_min;
      check(CudaEngine::create(engine, *store_, faults_, *admin_, &cuda_engines_.emplace_back()));
      add(*cuda_engines_.back());
    }
  }
  // Kernels end before the memory that they use is freed.
  ~GpuBackend() override {
    for (const auto& engine : cuda_engines_) engine->release_device();
  }

  CudaStore* store() const { return store_.get(); }

  std::string describe() const override {
    return facts_.name + ", " + std::to_string(config_.blocks) + " blocks, " +
           std::to_string(config_.threads * config_.depth) + " batches at a time from " +
           std::to_string(config_.threads) + (config_.threads == 1 ? " thread, " : " threads, ") +
           (config_.persistent ? "one persistent kernel" : "a launch for each") +
           (config_.device_memory ? ", frames in the GPU's memory" : "") +
           (config_.nic ? ", brought and taken away by copy engines" : "");
  }

  uint8_t* input(uint64_t bytes) override { return take(Use::kInput, bytes); }

  double joules() const override { return energy_.joules(); }
  BusLimits bus() const override { return measure_bus(); }

  PassResult run(const Pass& pass) override {
    if (pass.batch > engine::cuda::kPacketsMax) {
      throw std::runtime_error("a batch has at most " + std::to_string(engine::cuda::kPacketsMax) +
                               " requests");
    }
    return EngineBackend::run(pass);
  }

  void begin_background(const BackgroundConfig& config) override {
    if (background_loops_ == 0) background_loops_ = BackgroundWork::loops_for(kBackgroundMs);
    background_ = std::make_unique<BackgroundWork>(config, background_loops_);
  }

  double end_background() override {
    const double ms = background_->stop();
    background_.reset();
    return ms;
  }

 private:
  // Persistent kernels leave one multiprocessor to the store's own kernels, and a third of each
  // other one. Otherwise both would wait for each other's end.
  uint32_t persistent_blocks() const {
    constexpr uint32_t kBlocksEach = 5;  // of the 8 for which a multiprocessor has registers
    const uint32_t all = facts_.multiprocessors * kBlocksEach;
    return std::clamp(all / (config_.threads * config_.depth), 1u, facts_.multiprocessors - 1);
  }

  // A run of background work in one launch, alone, takes as long as the paper's.
  static constexpr double kBackgroundMs = 30;

  static void allocate(CudaMemory& memory, CudaMemory::Place place, uint64_t bytes) {
    memory.reset();
    if (!memory.allocate(place, bytes)) throw std::bad_alloc();
  }

  CudaMemory& memory(Use use) { return memory_[static_cast<size_t>(use)]; }
  uint8_t* take(Use use, uint64_t bytes) override {
    allocate(memory(use), CudaMemory::Place::kHost, bytes);
    return memory(use).data();
  }
  uint8_t* frames() override {
    return config_.device_memory ? device_input_.data() : memory(Use::kInput).data();
  }
  uint8_t* reply_space() override {
    return config_.device_memory ? device_replies_.data() : replies_;
  }
  bool failed() const override { return faults_.failed(); }

  std::unique_ptr<Carrier> make_carrier(uint32_t places) override {
    if (!config_.nic) return nullptr;
    return std::make_unique<CopyCarrier>(
        CopyCarrier::Ways{memory(Use::kInput).data(), device_input_.data(), device_replies_.data(),
                          replies_},
        places, faults_);
  }

  void begin_pass(uint64_t reply_bytes) override {
    if (!config_.device_memory) return;
    const CudaMemory& input = memory(Use::kInput);
    allocate(device_input_, CudaMemory::Place::kDevice, input.bytes());
    allocate(device_replies_, CudaMemory::Place::kDevice, reply_bytes);
    if (config_.nic) return;
    const cudaError_t error =
        cudaMemcpy(device_input_.data(), input.data(), input.bytes(), cudaMemcpyHostToDevice);
    if (!faults_.check(error, "frames to the GPU")) throw std::runtime_error(faults_.why());
  }

  void end_pass() override {
    if (faults_.failed()) throw std::runtime_error(faults_.why());
    if (!config_.device_memory || config_.nic) return;
    const cudaError_t error = cudaMemcpy(replies_, device_replies_.data(), device_replies_.bytes(),
                                         cudaMemcpyDeviceToHost);
    if (!faults_.check(error, "replies from the GPU")) throw std::runtime_error(faults_.why());
  }

  EnergyMeter energy_;
  gpu::DeviceFacts facts_;
  gpu::DeviceFaults faults_;
  std::unique_ptr<CudaStore> store_;
  std::unique_ptr<engine::StoreAdmin> admin_;
  std::vector<std::unique_ptr<CudaEngine>> cuda_engines_;
  std::unique_ptr<BackgroundWork> background_;
  uint32_t background_loops_ = 0;  // of a block; 0: not measured yet
  CudaMemory memory_[3];           // by Use, pinned
  CudaMemory device_input_;
  CudaMemory device_replies_;
};

}  // namespace

std::unique_ptr<Backend> make_gpu_backend(const BackendConfig& config) {
  return std::make_unique<GpuBackend>(config);
}

std::unique_ptr<Backend> make_gpu_backend(const BackendConfig& config, CudaStore** store) {
  auto backend = std::make_unique<GpuBackend>(config);
  *store = backend->store();
  return backend;
}

}  // namespace warpcache::offline
