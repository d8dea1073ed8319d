// SPDX-License-Identifier: Apache-2.0
//
// The GPU's way: several engines, each with a thread of the host, take one batch after the other.
#include "offline/gpu_fabric.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "engine/cuda/packet_engine.h"

namespace warpcache::offline {

namespace {

using engine::cuda::CudaMemory;
using engine::cuda::CudaStore;
using engine::cuda::PacketBatch;
using engine::cuda::PacketEngine;
using engine::cuda::PacketResult;
using engine::cuda::PacketState;
using SteadyClock = std::chrono::steady_clock;

double us_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double, std::micro>(SteadyClock::now() - begin).count();
}

void check(const std::string& failure) {
  if (!failure.empty()) throw std::runtime_error(failure);
}

class GpuFabric final : public Fabric {
 public:
  explicit GpuFabric(const FabricConfig& config) : config_(config), energy_(config.gpu) {
    check(engine::cuda::open_device(static_cast<int>(config.gpu), &facts_));
    if (config_.blocks == 0) {
      config_.blocks = config.persistent ? staying_blocks() : facts_.multiprocessors;
    }
    engine::cuda::CudaStoreConfig store;
    store.store.memory_limit = config.memory_bytes;
    store.store.hash_power = config.hash_power;
    store.store.maintenance_thread = config.maintenance;
    store.engines = config.threads;
    store.blocks_per_engine = config_.blocks;
    check(CudaStore::create(store, faults_, &store_));
    for (uint32_t i = 0; i < config.threads; ++i) {
      engine::cuda::PacketEngineConfig packets;
      packets.udp_port = Workload::kPort;
      packets.jobs.blocks_max = config_.blocks;
      packets.jobs.persistent = config.persistent;
      if (config.high_priority) packets.jobs.priority = engine::cuda::CudaStream::Priority::kHigh;
      packets.copied_packets_min = config.copied_batch_min;
      check(PacketEngine::create(packets, *store_, faults_, &engines_.emplace_back()));
    }
  }

  CudaStore* store() const { return store_.get(); }

  std::string describe() const override {
    return facts_.name + ", " + std::to_string(config_.blocks) + " blocks, " +
           std::to_string(config_.threads) + " batches at a time, " +
           (config_.persistent ? "one kernel that stays" : "a launch for each") +
           (config_.device_memory ? ", frames in the GPU's memory" : "");
  }

  uint8_t* input(uint64_t bytes) override {
    input_.reset();
    if (!input_.allocate(CudaMemory::Place::kHost, bytes)) throw std::bad_alloc();
    return input_.data();
  }

  double joules() const override { return energy_.joules(); }
  BusLimits bus() const override { return measure_bus(); }

  PassResult run(const Pass& pass) override {
    prepare(pass);
    PassResult result;
    const uint64_t batches = (pass.count + pass.batch - 1) / pass.batch;
    result.batch_us.resize(batches);
    std::atomic<uint64_t> next{0};
    std::vector<std::thread> threads;
    const SteadyClock::time_point begin = SteadyClock::now();
    for (const auto& engine : engines_) {
      threads.emplace_back([&, engine = engine.get()] {
        for (uint64_t i = next++; i < batches && !faults_.failed(); i = next++) {
          const SteadyClock::time_point came = wait_for(pass, i, begin);
          (void)engine->run(batch_of(pass, i));
          result.batch_us[i] = static_cast<float>(us_since(came));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    result.seconds = us_since(begin) / 1e6;
    for (const auto& engine : engines_) engine->yield();
    if (faults_.failed()) throw std::runtime_error(faults_.why());
    if (config_.device_memory) bring_back();
    return result;
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

  Bytes reply(uint64_t request) const override {
    const PacketResult result = results_.as<PacketResult>()[request];
    if (result.state() != PacketState::kDone) return {};
    const uint64_t batch = request / pass_.batch;
    return {replies_.data() + batch * batch_reply_bytes_ + result.offset(), result.size()};
  }

 private:
  // Kernels that stay leave one multiprocessor to the store's own work, and of the others a third:
  // what it does would wait for their end, and they for it.
  uint32_t staying_blocks() const {
    constexpr uint32_t kBlocksEach = 5;  // of the 8 that a multiprocessor has registers for
    const uint32_t all = facts_.multiprocessors * kBlocksEach;
    return std::clamp(all / config_.threads, 1u, facts_.multiprocessors - 1);
  }

  // A run of background work in one launch, alone: as long as the paper's.
  static constexpr double kBackgroundMs = 30;

  // Returns when a batch has come: now, or at its time, which is waited for.
  static SteadyClock::time_point wait_for(const Pass& pass, uint64_t batch,
                                          SteadyClock::time_point begin) {
    SteadyClock::time_point now = SteadyClock::now();
    if (pass.requests_per_s == 0) return now;
    const double after = static_cast<double>(batch * pass.batch) / pass.requests_per_s;
    const auto due = begin + std::chrono::duration_cast<SteadyClock::duration>(
                                 std::chrono::duration<double>(after));
    while (now < due) now = SteadyClock::now();
    return due;
  }

  // Everything that a pass needs is there before its time is taken.
  void prepare(const Pass& pass) {
    if (pass.batch > PacketEngine::kPacketsMax) {
      throw std::runtime_error("a batch has at most " + std::to_string(PacketEngine::kPacketsMax) +
                               " requests");
    }
    pass_ = pass;
    if (results_.bytes() < pass.count * sizeof(PacketResult)) {
      take(results_, CudaMemory::Place::kHost, pass.count * sizeof(PacketResult));
    }
    const uint32_t reply_room = pass.writes
                                    ? std::max(pass.reply_slot_bytes, engine::cuda::kPromiseBytes)
                                    : pass.reply_slot_bytes;
    batch_reply_bytes_ = uint64_t{pass.batch} * reply_room;
    if (batch_reply_bytes_ > PacketResult::kArenaMax) {
      throw std::runtime_error("the replies of a batch take more than " +
                               std::to_string(PacketResult::kArenaMax >> 20) + " MiB");
    }
    const uint64_t batches = (pass.count + pass.batch - 1) / pass.batch;
    const uint64_t reply_bytes = batches * batch_reply_bytes_;
    if (replies_.bytes() < reply_bytes) take(replies_, CudaMemory::Place::kHost, reply_bytes);
    if (!config_.device_memory) return;
    take(device_input_, CudaMemory::Place::kDevice, input_.bytes());
    take(device_replies_, CudaMemory::Place::kDevice, reply_bytes);
    const cudaError_t error =
        cudaMemcpy(device_input_.data(), input_.data(), input_.bytes(), cudaMemcpyHostToDevice);
    if (!faults_.check(error, "frames to the GPU")) throw std::runtime_error(faults_.why());
  }

  static void take(CudaMemory& memory, CudaMemory::Place place, uint64_t bytes) {
    memory.reset();
    if (!memory.allocate(place, bytes)) throw std::bad_alloc();
  }

  PacketBatch batch_of(const Pass& pass, uint64_t number) {
    const uint64_t first = number * pass.batch;
    const CudaMemory& input = config_.device_memory ? device_input_ : input_;
    const CudaMemory& replies = config_.device_memory ? device_replies_ : replies_;
    PacketBatch batch;
    batch.input = input.data() + first * pass.slot_bytes;
    batch.slot_bytes = pass.slot_bytes;
    batch.count = static_cast<uint32_t>(std::min<uint64_t>(pass.batch, pass.count - first));
    batch.replies = replies.data() + number * batch_reply_bytes_;
    batch.reply_bytes = static_cast<uint32_t>(batch_reply_bytes_);
    batch.input_bytes = batch.count * pass.slot_bytes;
    batch.results = results_.as<PacketResult>() + first;
    batch.on_device = config_.device_memory;
    return batch;
  }

  void bring_back() {
    const cudaError_t error = cudaMemcpy(replies_.data(), device_replies_.data(),
                                         device_replies_.bytes(), cudaMemcpyDeviceToHost);
    if (!faults_.check(error, "replies from the GPU")) throw std::runtime_error(faults_.why());
  }

  FabricConfig config_;
  EnergyMeter energy_;
  engine::cuda::DeviceFacts facts_;
  engine::cuda::DeviceFaults faults_;
  std::unique_ptr<CudaStore> store_;
  std::vector<std::unique_ptr<PacketEngine>> engines_;
  std::unique_ptr<BackgroundWork> background_;
  uint32_t background_loops_ = 0;  // of a block; 0: not known yet
  Pass pass_;
  uint64_t batch_reply_bytes_ = 0;
  CudaMemory input_;  // pinned, as replies and results are
  CudaMemory replies_;
  CudaMemory results_;
  CudaMemory device_input_;
  CudaMemory device_replies_;
};

}  // namespace

std::unique_ptr<Fabric> make_gpu_fabric(const FabricConfig& config) {
  return std::make_unique<GpuFabric>(config);
}

std::unique_ptr<Fabric> make_gpu_fabric(const FabricConfig& config, CudaStore** store) {
  auto fabric = std::make_unique<GpuFabric>(config);
  *store = fabric->store();
  return fabric;
}

}  // namespace warpcache::offline
