// SPDX-License-Identifier: Apache-2.0
//
// A store and engines on it, for tests that hold every engine to the same.
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"
#include "store/host/owner.h"

namespace warpcache::engine {

enum class RigKind : uint8_t {
  kCpu,
  kCudaLaunch,      // a GPU, a kernel for each batch
  kCudaPersistent,  // a GPU, one kernel that stays
  kCudaHostValues,  // a GPU, a kernel for each batch, items in the host's memory
};

struct RigConfig {
  store::StoreConfig store;
  uint32_t item_size_max = 1 << 20;  // bytes
  uint32_t engines = 1;              // that will be made
  uint32_t pin_wait_ms_max = 100;    // see CpuEngineConfig
  uint32_t gpu_blocks = 16;          // of an engine, where it runs on a GPU
};

class Rig {
 public:
  virtual ~Rig() = default;

  virtual store::StoreOwner& store() = 0;
  // RigConfig::engines times. `admin` outlives the engine, which is the rig's own.
  virtual Engine& make_engine(AdminHandler& admin) = 0;
  // One round of maintenance.
  virtual void maintain() = 0;
  // Ends kernels that stay, until the next batch: beside them memory of the same GPU is neither
  // taken nor given back. REQUIRES: no batch is under way, nor is one handed in meanwhile.
  virtual void rest() {}
  // An item's value, for what walk() shows. False: the rig cannot tell.
  virtual bool value_of(const store::Item& item, std::string* value) = 0;
};

// Null, with the reason in `why`, where there is no such engine.
std::unique_ptr<Rig> make_rig(RigKind kind, const RigConfig& config, std::string* why);

// As part of a test's name.
std::string rig_name(RigKind kind);

// "cpu", "cuda", "cuda-persistent", "cuda-host-values"; false: none of them.
bool read_rig_kind(const std::string& word, RigKind* kind);

}  // namespace warpcache::engine
