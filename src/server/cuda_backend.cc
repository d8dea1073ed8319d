// SPDX-License-Identifier: Apache-2.0
//
// The CUDA backend: a store in a GPU's memory, and CUDA engines. When the GPU fails, the server
// continues with an empty store in host memory and CPU engines, or ends.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "engine/cuda/cuda_engine.h"
#include "engine/failover_engine.h"
#include "io/frames/dpdk/dpdk_ports.h"
#include "server/cpu_backend.h"
#include "server/frames_depth.h"
#include "store/cuda/cuda_store.h"
#include "worker/worker.h"

namespace warpcache::server {

namespace {

using engine::cuda::CudaEngine;
using engine::cuda::CudaEngineConfig;
using store::CudaStore;
using store::CudaStoreConfig;

// The memory limit without -m: half of the free memory, but not more than the GPU's TLB covers.
constexpr uint64_t kDefaultShare = 2;
constexpr uint64_t kDefaultMax = uint64_t{64} << 30;
// While the GPU runs a batch, the thread receives and sends others. A persistent kernel is for
// latency: a second one would only take its place on the GPU.
constexpr uint32_t kBatchesByLaunches = 2;
constexpr uint32_t kBlocksPerEngineMin = 4;
constexpr uint32_t kBlocksPerEngineMax = 132;

// The GPU's store as a NIC cache sees it.
class DeviceStoreAccess final : public nic_cache::StoreAccess {
 public:
  explicit DeviceStoreAccess(CudaStore& store) : store_(store) {}
  bool visit_locked(Bytes key, const std::function<void(const store::Item&)>& visit) override {
    return store_.visit_item(key, visit) != Status::kDeferred;
  }
  void note_read(const std::vector<std::vector<uint8_t>>& keys) override { store_.note_read(keys); }
  // --nic-cache-write=back is refused.
  bool set(Bytes, uint32_t, Bytes, uint64_t) override { return false; }

 private:
  CudaStore& store_;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(const Options& options, admin::Watchers* watchers, std::function<void()> stop,
              const store::CopyHooks& copies)
      : options_(options), watchers_(watchers), stop_(std::move(stop)) {
    config_.store.copies = copies;
    config_.store.observer = watchers;
    faults_.listen([this](const std::string& why) { failed(why); });
  }

  std::string start() override;
  std::string make_engine(engine::AdminHandler& admin, WorkerEngine* out) override;
  std::string describe() const override;
  uint64_t memory_bytes() const override { return config_.store.memory_limit; }
  std::unique_ptr<nic_cache::StoreAccess> nic_cache_access() override {
    return std::make_unique<DeviceStoreAccess>(*store_);
  }

 private:
  CudaEngineConfig engine_config() const;
  uint32_t frames_depth() const;
  void failed(const std::string& why);
  std::unique_ptr<engine::Engine> make_spare(engine::AdminHandler& admin,
                                             const request::Counters** counters);
  void start_spare();

  const Options& options_;
  admin::Watchers* const watchers_;
  std::function<void()> stop_;
  gpu::DeviceFaults faults_;
  gpu::DeviceFacts device_;
  CudaStoreConfig config_;
  std::unique_ptr<engine::cuda::EdgeJobs> edge_;  // --gpu-mode=edge
  std::unique_ptr<CudaStore> store_;
  std::mutex spare_mutex_;  // guards what follows
  bool spare_tried_ = false;
  std::unique_ptr<CpuBackend> spare_;
};

std::string CudaBackend::start() {
  const std::string failure = gpu::open_device(static_cast<int>(options_.gpu.number), &device_);
  if (!failure.empty()) return "--engine=cuda: " + failure + ".";
  store::StoreConfig& store = config_.store;
  store.memory_limit = options_.store.memory_given
                           ? options_.store.memory_bytes
                           : std::min(device_.free_bytes / kDefaultShare, kDefaultMax);
  store.hash_power = options_.store.hash_power;
  store.keep_all = !options_.store.evict;
  store.flushed_prefixes_max = options_.store.flushed_prefixes_max;
  config_.values_on_host = options_.gpu.values == ValuesChoice::kHost;
  config_.block_scratch_bytes = engine::cuda::block_scratch_bytes();
  // Each thread has an engine, and so has each port of Ethernet frames.
  const bool persistent = options_.gpu.mode == GpuMode::kPersistent;
  if (options_.gpu.mode == GpuMode::kEdge) {
    // The store's kernels run beside the workers, and each of these may take a multiprocessor.
    const uint32_t workers = std::max(1u, device_.multiprocessors * 3 / 4);
    const std::string failure_of_edge =
        engine::cuda::EdgeJobs::create(workers, options_.doorbells_file(), &edge_);
    if (!failure_of_edge.empty()) return "--gpu-mode=edge: " + failure_of_edge + ".";
  }
  const auto frame_ports = options_.frame_threads();
  config_.engines = options_.server.threads * engine_config().runners(false) +
                    frame_ports * engine_config().runners(true);
  // Persistent kernels of all must be resident at the same time; launches take turns.
  const uint32_t at_a_time = persistent ? config_.engines : options_.server.threads + frame_ports;
  config_.blocks_per_engine = std::clamp(device_.multiprocessors / at_a_time,
                                         persistent ? 1 : kBlocksPerEngineMin, kBlocksPerEngineMax);
  config_.engine_bytes = CudaEngine::device_bytes(engine_config(), worker::Worker::kInputBytes);
  const std::string refusal = CudaStore::create(config_, faults_, &store_);
  if (!refusal.empty()) return "--engine=cuda: " + refusal + ".";
  active_.set(*store_);
  return "";
}

CudaEngineConfig CudaBackend::engine_config() const {
  CudaEngineConfig config;
  config.item_size_max = static_cast<uint32_t>(options_.store.item_size_max_bytes);
  config.cas_enabled = options_.store.use_cas;
  config.jobs.blocks_max = config_.blocks_per_engine;
  config.jobs.persistent = options_.gpu.mode == GpuMode::kPersistent;
  config.packet_bursts = frames_depth();
  config.jobs.edge = edge_.get();
  config.batches = config.jobs.stays() ? 1 : kBatchesByLaunches;
  return config;
}

uint32_t CudaBackend::frames_depth() const {
  if (options_.frames_depth != 0) return options_.frames_depth;
  if (options_.frames.empty() || options_.gpu.mode != GpuMode::kPersistent) return kFramesDepthMin;
  FramesDepthFacts facts;
  facts.threads = options_.frame_threads();
  facts.other_kernels = options_.server.threads;
  facts.multiprocessors = device_.multiprocessors;
  if (options_.frames_burst != 0) facts.burst = options_.frames_burst;
  facts.buffers = ~0u;
  for (const FramesOptions& one : options_.frames) {
    using Kind = FramesOptions::Kind;
    const bool has_buffers = one.kind == Kind::kDpdk || one.kind == Kind::kRing;
    const uint32_t queues = has_buffers ? one.queues / std::min(one.threads, one.queues) : 0;
    facts.buffers = std::min(facts.buffers, queues * io::kDpdkQueueBuffers);
  }
  return default_frames_depth(facts);
}

std::string CudaBackend::make_engine(engine::AdminHandler& admin, WorkerEngine* out) {
  std::unique_ptr<CudaEngine> engine;
  const std::string failure = CudaEngine::create(engine_config(), *store_, faults_, admin, &engine);
  if (!failure.empty()) return "--engine=cuda: " + failure + ".";
  request::Counters& counters = engine->counters();
  engine::FailoverEngine::Hooks hooks;
  hooks.failed = [this] { return faults_.failed(); };
  hooks.make_spare = [this, &admin](const request::Counters** spare_counters) {
    return make_spare(admin, spare_counters);
  };
  out->counters = &counters;
  out->engine =
      std::make_unique<engine::FailoverEngine>(std::move(engine), counters, std::move(hooks));
  return "";
}

std::string CudaBackend::describe() const {
  const char* const way = options_.gpu.mode == GpuMode::kPersistent ? "a persistent kernel"
                          : options_.gpu.mode == GpuMode::kEdge     ? "events of a scheduler"
                                                                    : "a kernel for each batch";
  std::string text = "cuda on GPU " + std::to_string(device_.number) + " (" + device_.name + ", " +
                     std::to_string(device_.memory_bytes >> 30) + " GiB), " + way;
  if (store_->host_bytes() != 0) {
    text += ", " + std::to_string(store_->host_bytes() >> 20) +
            " MiB of the items in the host's memory";
  }
  return text;
}

void CudaBackend::failed(const std::string& why) {
  const bool goes_on = options_.gpu.on_error == GpuErrorChoice::kCpu;
  spdlog::error("GPU {} has failed: {}; {}", device_.number, why,
                goes_on ? "going on with the CPU engine and an empty cache" : "stopping");
  if (!goes_on) stop_();
}

std::unique_ptr<engine::Engine> CudaBackend::make_spare(engine::AdminHandler& admin,
                                                        const request::Counters** counters) {
  if (options_.gpu.on_error == GpuErrorChoice::kExit) return nullptr;
  const std::lock_guard guard(spare_mutex_);
  try {
    if (!std::exchange(spare_tried_, true)) start_spare();
    WorkerEngine made;
    if (spare_ == nullptr || !spare_->make_engine(admin, &made).empty()) return nullptr;
    *counters = made.counters;
    return std::move(made.engine);
  } catch (const std::bad_alloc&) {
    spdlog::error("there is no memory for the CPU engine; stopping");
    stop_();
    return nullptr;
  }
}

void CudaBackend::start_spare() {
  store_->stop_copies();  // they are not of the spare's items
  auto spare = std::make_unique<CpuBackend>(options_, watchers_);
  const std::string failure = spare->start();
  if (failure.empty()) {
    spare_ = std::move(spare);
    active_.set(*spare_->store().operator->());
  } else {
    spdlog::error("{}", failure);
    stop_();
  }
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const Options& options, admin::Watchers* watchers,
                                           const std::function<void()>& stop,
                                           const store::CopyHooks& copies) {
  return std::make_unique<CudaBackend>(options, watchers, stop, copies);
}

}  // namespace warpcache::server
