// SPDX-License-Identifier: Apache-2.0
//
// The host backend: a store in host memory, and CPU engines.
#pragma once

#include <memory>
#include <string>

#include "engine/cpu/cpu_engine.h"
#include "server/backend.h"
#include "store/host/store.h"

namespace warpcache::server {

class CpuBackend final : public Backend {
 public:
  // `watchers` may be null.
  explicit CpuBackend(const Options& options, admin::Watchers* watchers = nullptr,
                      const store::CopyHooks& copies = {})
      : options_(options), watchers_(watchers), copies_(copies) {}

  std::string start() override;
  std::string make_engine(engine::AdminHandler& admin, WorkerEngine* out) override;
  std::string save() override;
  std::string describe() const override { return "cpu"; }
  uint64_t memory_bytes() const override { return options_.store.memory_bytes; }
  std::unique_ptr<nic_cache::StoreAccess> nic_cache_access() override;

 private:
  const Options& options_;
  admin::Watchers* const watchers_;
  const store::CopyHooks copies_;
  std::unique_ptr<store::Store> store_;
};

}  // namespace warpcache::server
