// SPDX-License-Identifier: Apache-2.0
//
// CPU engines, one for each thread, on one store.
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>

#include "engine/cpu/cpu_engine.h"
#include "engine/testing/store_admin.h"
#include "offline/engine_backend.h"
#include "store/host/memory.h"
#include "store/host/store.h"

namespace warpcache::offline {

namespace {

class CpuBackend final : public EngineBackend {
 public:
  explicit CpuBackend(const BackendConfig& config)
      : EngineBackend(config), store_(make_store(config)), admin_(*store_) {
    for (uint32_t i = 0; i < config.threads; ++i) {
      cpu_engines_.push_back(
          std::make_unique<engine::CpuEngine>(engine::CpuEngineConfig{}, *store_, admin_));
      add(*cpu_engines_.back());
    }
  }

  std::string describe() const override {
    return "CPU engine, " + std::to_string(config_.threads) +
           (config_.threads == 1 ? " thread" : " threads");
  }
  uint8_t* input(uint64_t bytes) override { return take(Use::kInput, bytes); }

 private:
  uint8_t* take(Use use, uint64_t bytes) override {
    std::optional<store::Mapping>& memory = memory_[static_cast<size_t>(use)];
    memory.reset();
    // Huge pages, as drivers of NICs use.
    if (!memory.emplace().map(bytes, true)) throw std::bad_alloc();
    return memory->data();
  }
  uint8_t* frames() override { return memory_[static_cast<size_t>(Use::kInput)]->data(); }
  uint8_t* reply_space() override { return replies_; }
  void begin_pass(uint64_t) override {}
  void end_pass() override {}

  static std::unique_ptr<store::Store> make_store(const BackendConfig& config) {
    store::StoreConfig store;
    store.memory_limit = config.memory_bytes;
    store.hash_power = config.hash_power;
    store.threads = config.threads;
    std::unique_ptr<store::Store> made;
    if (store::Store::create(store, &made) != Status::kOk) {
      throw std::runtime_error("the system does not give the memory for the store");
    }
    return made;
  }

  std::unique_ptr<store::Store> store_;
  engine::StoreAdmin admin_;
  std::vector<std::unique_ptr<engine::CpuEngine>> cpu_engines_;
  std::optional<store::Mapping> memory_[3];  // by Use
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const BackendConfig& config) {
  return std::make_unique<CpuBackend>(config);
}

}  // namespace warpcache::offline
