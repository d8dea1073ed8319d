// SPDX-License-Identifier: Apache-2.0
#include "engine/testing/rig.h"

#include <algorithm>
#include <map>
#include <vector>

#include "engine/cpu/cpu_engine.h"
#include "store/host/store.h"

#if defined(WARPCACHE_HAVE_CUDA)
#include "engine/cuda/cuda_engine.h"
#include "store/cuda/cuda_store.h"
#endif

namespace warpcache::engine {

namespace {

class CpuRig final : public Rig {
 public:
  explicit CpuRig(const RigConfig& config) : config_(config) {
    WC_ASSERT(store::Store::create(config.store, &store_) == Status::kOk);
  }

  store::StoreOwner& store() override { return *store_; }
  Engine& make_engine(AdminHandler& admin) override {
    CpuEngineConfig config;
    config.item_size_max = config_.item_size_max;
    config.pin_wait_ms_max = config_.pin_wait_ms_max;
    config.admin_window = config_.admin_window;
    return *engines_.emplace_back(std::make_unique<CpuEngine>(config, *store_, admin));
  }
  void maintain() override { store_->maintain(); }
  bool value_of(const store::Item& item, std::string* value) override {
    store::ValuePieces pieces = store_->ref().pieces(item);
    for (Bytes piece = pieces.first(); !piece.empty(); piece = pieces.next()) {
      value->append(reinterpret_cast<const char*>(piece.data), piece.size);
    }
    return true;
  }
  void visit_item(Bytes key, const std::function<void(const store::Item&)>& visit) override {
    (void)store_->visit_locked(key, visit);
  }

 private:
  RigConfig config_;
  std::unique_ptr<store::Store> store_;
  std::vector<std::unique_ptr<CpuEngine>> engines_;
};

#if defined(WARPCACHE_HAVE_CUDA)

class CudaRig final : public Rig {
 public:
  CudaRig(const RigConfig& config, RigKind kind) : config_(config), kind_(kind) {}
  ~CudaRig() override { rest(); }

  std::string start() {
    // Runs once: it sets an environment variable, and later other threads may read it.
    static const std::string kFailure = [] {
      gpu::DeviceFacts facts;
      return gpu::open_device(0, &facts);
    }();
    if (!kFailure.empty()) return kFailure;
    store::CudaStoreConfig config;
    config.block_scratch_bytes = cuda::block_scratch_bytes();
    config.store = config_.store;
    config.values_on_host = kind_ == RigKind::kCudaHostValues;
    // Each may be opened for frames.
    config.engines = config_.engines * cuda::CudaEngineConfig{}.runners(true);
    config.blocks_per_engine = config_.gpu_blocks;
    if (kind_ == RigKind::kCudaEdge) {
      const std::string failure =
          cuda::EdgeJobs::create(std::max(2u, config_.gpu_blocks / 4), "", &edge_);
      if (!failure.empty()) return failure;
    }
    return store::CudaStore::create(config, faults_, &store_);
  }

  store::StoreOwner& store() override { return *store_; }
  Engine& make_engine(AdminHandler& admin) override {
    cuda::CudaEngineConfig config;
    config.item_size_max = config_.item_size_max;
    config.pin_wait_ms_max = config_.pin_wait_ms_max;
    config.admin_window = config_.admin_window;
    config.jobs.blocks_max = config_.gpu_blocks;
    config.jobs.persistent = kind_ == RigKind::kCudaPersistent;
    config.jobs.edge = edge_.get();
    const std::string failure =
        cuda::CudaEngine::create(config, *store_, faults_, admin, &engines_.emplace_back());
    WC_ASSERT(failure.empty());
    return *engines_.back();
  }
  void maintain() override { store_->maintain(); }
  void rest() override {
    if (faults_.failed()) return;
    for (const auto& engine : engines_) engine->release_device();
  }
  bool value_of(const store::Item&, std::string*) override { return false; }
  void visit_item(Bytes key, const std::function<void(const store::Item&)>& visit) override {
    (void)store_->visit_item(key, visit);
  }
  bool write_device(MutableBytes to, const uint8_t* from) override {
    gpu::CudaStream stream;  // so that no persistent kernel is waited for
    return stream.create(gpu::CudaStream::Priority::kNormal) &&
           cudaMemcpyAsync(to.data, from, to.size, cudaMemcpyDefault, stream.get()) ==
               cudaSuccess &&
           cudaStreamSynchronize(stream.get()) == cudaSuccess;
  }

 private:
  RigConfig config_;
  RigKind kind_;
  gpu::DeviceFaults faults_;
  std::unique_ptr<cuda::EdgeJobs> edge_;
  std::unique_ptr<store::CudaStore> store_;
  std::vector<std::unique_ptr<cuda::CudaEngine>> engines_;
};

#endif

}  // namespace

std::unique_ptr<Rig> make_rig(RigKind kind, const RigConfig& config, std::string* why) {
  if (kind == RigKind::kCpu) return std::make_unique<CpuRig>(config);
#if defined(WARPCACHE_HAVE_CUDA)
  auto rig = std::make_unique<CudaRig>(config, kind);
  *why = rig->start();
  return why->empty() ? std::move(rig) : nullptr;
#else
  *why = "built without CUDA";
  return nullptr;
#endif
}

std::string rig_name(RigKind kind) {
  switch (kind) {
    case RigKind::kCpu:
      return "Cpu";
    case RigKind::kCudaLaunch:
      return "CudaLaunch";
    case RigKind::kCudaPersistent:
      return "CudaPersistent";
    case RigKind::kCudaHostValues:
      return "CudaHostValues";
    case RigKind::kCudaEdge:
      return "CudaEdge";
  }
  return "";
}

bool read_rig_kind(const std::string& word, RigKind* kind) {
  static const std::map<std::string, RigKind> kKinds = {
      {"cpu", RigKind::kCpu},
      {"cuda", RigKind::kCudaLaunch},
      {"cuda-edge", RigKind::kCudaEdge},
      {"cuda-persistent", RigKind::kCudaPersistent},
      {"cuda-host-values", RigKind::kCudaHostValues}};
  const auto found = kKinds.find(word);
  if (found == kKinds.end()) return false;
  *kind = found->second;
  return true;
}

}  // namespace warpcache::engine
