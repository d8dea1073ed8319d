// SPDX-License-Identifier: Apache-2.0
//
// A store and engines on it, for tests that check all engines by the same rules.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "engine/admin_budget.h"
#include "engine/engine.h"
#include "store/host/owner.h"

namespace warpcache::engine {

enum class RigKind : uint8_t {
  kCpu,
  kCudaLaunch,      // a GPU, a kernel for each batch
  kCudaPersistent,  // a GPU, a persistent kernel
  kCudaHostValues,  // a GPU, a kernel for each batch, items in the host's memory
  kCudaEdge,        // a GPU, batches as events of a scheduler
};

struct RigConfig {
  store::StoreConfig store;
  uint32_t item_size_max = 1 << 20;  // bytes
  uint32_t engines = 1;              // that will be made
  uint32_t pin_wait_ms_max = 100;    // see CpuEngineConfig
  AdminBudget::Clock::duration admin_window = AdminBudget::kWindow;
  uint32_t gpu_blocks = 16;  // of an engine, where it runs on a GPU
};

class Rig {
 public:
  virtual ~Rig() = default;

  virtual store::StoreOwner& store() = 0;
  // RigConfig::engines times. `admin` outlives the engine, which is the rig's own.
  virtual Engine& make_engine(AdminHandler& admin) = 0;
  // One round of maintenance.
  virtual void maintain() = 0;
  // Ends persistent kernels until the next batch: while they run, memory of the GPU can be neither
  // allocated nor freed. REQUIRES: no engine has a batch or gets one meanwhile.
  virtual void rest() {}
  // The value of an item that walk() shows. False: this rig cannot read it.
  virtual bool value_of(const store::Item& item, std::string* value) = 0;
  // Calls visit(item) if the key has an item that can be copied now (StoreConfig::copies); nobody
  // changes it meanwhile.
  virtual void visit_item(Bytes key, const std::function<void(const store::Item&)>& visit) = 0;
  // Writes to an Engine::device_window(), as a transport does. False: there is no device.
  virtual bool write_device(MutableBytes /*to*/, const uint8_t* /*from*/) { return false; }
};

// Null, with the reason in `why`, if there is no such engine here.
std::unique_ptr<Rig> make_rig(RigKind kind, const RigConfig& config, std::string* why);

// As part of a test's name.
std::string rig_name(RigKind kind);

// For GoogleTest, which shows parameters of tests.
inline void PrintTo(RigKind kind, std::ostream* out) { *out << rig_name(kind); }

// "cpu", "cuda", "cuda-persistent", "cuda-host-values", "cuda-edge"; false: none of them.
bool read_rig_kind(const std::string& word, RigKind* kind);

}  // namespace warpcache::engine
