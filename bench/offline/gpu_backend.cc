// SPDX-License-Identifier: Apache-2.0
//
// The GPU backend: each thread of the host has one or several engines, which run one batch after
// the other.
#include "offline/gpu_backend.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "engine/cuda/packets/packet_engine.h"
#include "engine/cuda/packets/reply_frames.h"

namespace warpcache::offline {

namespace {

using engine::cuda::PacketBatch;
using engine::cuda::PacketEngine;
using engine::cuda::PacketResult;
using gpu::CudaMemory;
using store::CudaStore;
using SteadyClock = std::chrono::steady_clock;

// The batches of a pass, and when each is due: now, or at its time.
class Arrivals {
 public:
  explicit Arrivals(const Pass& pass)
      : pass_(pass), count_((pass.count + pass.batch - 1) / pass.batch) {}

  // Called by any thread. Returns the next batch; past the last one, a larger number.
  uint64_t take() { return next_++; }
  uint64_t count() const { return count_; }
  SteadyClock::time_point begin() const { return begin_; }
  // When a batch came or will come.
  SteadyClock::time_point time_of(uint64_t batch, SteadyClock::time_point now) const {
    if (pass_.requests_per_s == 0) return now;
    const double after = static_cast<double>(batch * pass_.batch) / pass_.requests_per_s;
    return begin_ +
           std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(after));
  }

 private:
  const Pass& pass_;
  uint64_t count_;
  std::atomic<uint64_t> next_{0};
  SteadyClock::time_point begin_ = SteadyClock::now();
};

double us_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double, std::micro>(SteadyClock::now() - begin).count();
}

void check(const std::string& failure) {
  if (!failure.empty()) throw std::runtime_error(failure);
}

class GpuBackend final : public Backend {
 public:
  explicit GpuBackend(const BackendConfig& config) : config_(config), energy_(config.gpu) {
    check(gpu::open_device(static_cast<int>(config.gpu), &facts_));
    const uint32_t engines = config.threads * config.depth;
    if (config_.blocks == 0) {
      config_.blocks = config.persistent ? staying_blocks() : facts_.multiprocessors;
    }
    store::CudaStoreConfig store;
    store.block_scratch_bytes = engine::cuda::block_scratch_bytes();
    store.store.memory_limit = config.memory_bytes;
    store.store.hash_power = config.hash_power;
    store.store.maintenance_thread = config.maintenance;
    store.engines = engines;
    store.blocks_per_engine = config_.blocks;
    check(CudaStore::create(store, faults_, &store_));
    for (uint32_t i = 0; i < engines; ++i) {
      engine::cuda::PacketEngineConfig packets;
      packets.udp_port = Workload::kPort;
      packets.jobs.blocks_max = config_.blocks;
      packets.jobs.persistent = config.persistent;
      if (config.high_priority) packets.jobs.priority = gpu::CudaStream::Priority::kHigh;
      packets.copied_packets_min = config.copied_batch_min;
      check(PacketEngine::create(packets, *store_, faults_, &engines_.emplace_back()));
    }
  }

  CudaStore* store() const { return store_.get(); }

  std::string describe() const override {
    return facts_.name + ", " + std::to_string(config_.blocks) + " blocks, " +
           std::to_string(engines_.size()) + " batches at a time from " +
           std::to_string(config_.threads) + (config_.threads == 1 ? " thread, " : " threads, ") +
           (config_.persistent ? "one persistent kernel" : "a launch for each") +
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
    Arrivals arrivals(pass);
    result.batch_us.resize(arrivals.count());
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < config_.threads; ++i) {
      threads.emplace_back([&, i] { serve(i * config_.depth, pass, arrivals, result); });
    }
    for (std::thread& thread : threads) thread.join();
    result.seconds = us_since(arrivals.begin()) / 1e6;
    for (const auto& engine : engines_) engine->release_device();
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

  Bytes reply(uint64_t request, uint32_t datagram) const override {
    const uint64_t batch = request / pass_.batch;
    const engine::cuda::ReplyFrames frames(replies_.data() + batch * batch_reply_bytes_,
                                           results_.as<PacketResult>()[request]);
    return datagram < frames.count() ? frames[datagram] : Bytes{};
  }

 private:
  // Persistent kernels leave one multiprocessor to the store's own kernels, and a third of each
  // other one. Otherwise both would wait for each other's end.
  uint32_t staying_blocks() const {
    constexpr uint32_t kBlocksEach = 5;  // of the 8 for which a multiprocessor has registers
    const uint32_t all = facts_.multiprocessors * kBlocksEach;
    return std::clamp(all / (config_.threads * config_.depth), 1u, facts_.multiprocessors - 1);
  }

  // A run of background work in one launch, alone, takes as long as the paper's.
  static constexpr double kBackgroundMs = 30;

  // The work of a thread: `depth` engines, from `first` on, run the batches as they come. A batch
  // is taken when an engine is free.
  void serve(uint32_t first, const Pass& pass, Arrivals& arrivals, PassResult& result) {
    struct Running {
      uint64_t batch;
      SteadyClock::time_point came;
      bool busy;
    };
    std::vector<Running> running(config_.depth, Running{0, {}, false});
    uint64_t next = 0;
    bool taken = false;  // the next batch
    uint32_t busy = 0;
    (void)faults_.check(gpu::attach_thread(), "starting a thread");
    while (!faults_.failed()) {
      for (uint32_t i = 0; i < config_.depth; ++i) {
        Running& slot = running[i];
        PacketEngine& engine = *engines_[first + i];
        if (slot.busy && engine.ended()) {
          (void)engine.finish();
          result.batch_us[slot.batch] = static_cast<float>(us_since(slot.came));
          slot.busy = false;
          --busy;
        }
        if (slot.busy) continue;
        if (!taken) next = arrivals.take();
        taken = true;
        if (next >= arrivals.count()) continue;
        const SteadyClock::time_point now = SteadyClock::now();
        const SteadyClock::time_point comes = arrivals.time_of(next, now);
        if (now < comes) continue;
        engine.begin(batch_of(pass, next));
        slot = {next, comes, true};
        ++busy;
        taken = false;
      }
      if (busy == 0 && taken && next >= arrivals.count()) return;
    }
  }

  // Allocates everything that a pass needs, before its time is measured.
  void prepare(const Pass& pass) {
    if (pass.batch > PacketEngine::kPacketsMax) {
      throw std::runtime_error("a batch has at most " + std::to_string(PacketEngine::kPacketsMax) +
                               " requests");
    }
    pass_ = pass;
    if (results_.bytes() < pass.count * sizeof(PacketResult)) {
      take(results_, CudaMemory::Place::kHost, pass.count * sizeof(PacketResult));
    }
    const uint32_t reply_space = pass.writes
                                     ? std::max(pass.reply_slot_bytes, engine::cuda::kReservedBytes)
                                     : pass.reply_slot_bytes;
    batch_reply_bytes_ = uint64_t{pass.batch} * reply_space;
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

  BackendConfig config_;
  EnergyMeter energy_;
  gpu::DeviceFacts facts_;
  gpu::DeviceFaults faults_;
  std::unique_ptr<CudaStore> store_;
  std::vector<std::unique_ptr<PacketEngine>> engines_;
  std::unique_ptr<BackgroundWork> background_;
  uint32_t background_loops_ = 0;  // of a block; 0: not measured yet
  Pass pass_;
  uint64_t batch_reply_bytes_ = 0;
  CudaMemory input_;  // pinned, like replies and results
  CudaMemory replies_;
  CudaMemory results_;
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
