// SPDX-License-Identifier: Apache-2.0
#include "server/cpu_backend.h"

#include <spdlog/spdlog.h>

#include "options/version.h"
#include "server/open_nic_cache.h"
#include "store/host/memory.h"

namespace warpcache::server {

std::string CpuBackend::start() {
  store::StoreConfig config;
  config.memory_limit = options_.store.memory_bytes;
  config.threads = options_.server.threads + options_.frame_threads();
  config.hash_power = options_.store.hash_power;
  config.keep_all = !options_.store.evict;
  config.flushed_prefixes_max = options_.store.flushed_prefixes_max;
  config.huge_pages = options_.store.huge_pages;
  config.copies = copies_;
  config.observer = watchers_;
  config.file = options_.store.memory_file;
  config.version = version();
  std::string why;
  if (store::Store::create(config, &store_, &why) != Status::kOk) {
    if (!why.empty()) return why;
    return "-m " + std::to_string(config.memory_limit >> 20) +
           ": the system does not give that much memory.";
  }
  if (config.memory_limit > store::physical_memory_bytes()) {
    spdlog::warn(
        "-m {}: the machine has {} megabytes; once they are used up, the system may end the server",
        config.memory_limit >> 20, store::physical_memory_bytes() >> 20);
  }
  if (!store_->file_note().empty()) spdlog::warn("{}", store_->file_note());
  if (store_->took_over()) {
    spdlog::info("-e {}: {} items are back", config.file,
                 store_->stats().get(store::StoreCounter::kItems));
  }
  active_.set(*store_);
  return "";
}

std::string CpuBackend::save() {
  if (options_.store.memory_file.empty()) return "";
  std::string failure = store_->save();
  if (failure.empty()) spdlog::info("-e {}: the items are kept", options_.store.memory_file);
  return failure;
}

std::unique_ptr<nic_cache::StoreAccess> CpuBackend::nic_cache_access() {
  return std::make_unique<HostStoreAccess>(*store_);
}

std::string CpuBackend::make_engine(engine::AdminHandler& admin, WorkerEngine* out) {
  const engine::CpuEngineConfig config = {
      .item_size_max = static_cast<uint32_t>(options_.store.item_size_max_bytes),
      .cas_enabled = options_.store.use_cas};
  auto engine = std::make_unique<engine::CpuEngine>(config, *store_, admin);
  out->counters = &engine->counters();
  out->engine = std::move(engine);
  return "";
}

std::unique_ptr<Backend> make_cpu_backend(const Options& options, admin::Watchers* watchers,
                                          const store::CopyHooks& copies) {
  return std::make_unique<CpuBackend>(options, watchers, copies);
}

}  // namespace warpcache::server
