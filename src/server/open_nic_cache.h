// SPDX-License-Identifier: Apache-2.0
//
// Loads the NIC cache's module, and joins the cache with the server's options and store.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nic_cache/nic_cache.h"
#include "nic_cache/store_writer.h"
#include "options/options.h"
#include "options/process.h"
#include "store/host/store.h"

namespace warpcache::server {

// Makes and opens the NIC cache of the options. `ports` are those that were bound; it serves the
// first one of UDP. Returns "" or a sentence. REQUIRES: the options have a NIC cache.
[[nodiscard]] std::string open_nic_cache(const Options& options,
                                         const std::vector<BoundPort>& ports,
                                         std::unique_ptr<nic_cache::NicCache>* cache);

// The store as a NIC cache sees it. `store` outlives it.
class HostStoreAccess final : public nic_cache::StoreAccess {
 public:
  explicit HostStoreAccess(store::Store& store) : store_(store) {}
  bool visit_locked(Bytes key, const std::function<void(const store::Item&)>& visit) override {
    (void)store_.visit_locked(key, visit);
    return true;
  }
  void note_read(const std::vector<std::vector<uint8_t>>& keys) override {
    for (const std::vector<uint8_t>& key : keys) store_.note_read({key.data(), key.size()});
  }
  bool set(Bytes key, uint32_t client_flags, Bytes value, uint64_t cas) override {
    if (!writer_.has_value()) writer_.emplace(store_);
    if (writer_->set(key, client_flags, value, cas)) return true;
    writer_->remove(key);
    return false;
  }

 private:
  store::Store& store_;
  std::optional<nic_cache::StoreWriter> writer_;  // from the first set on
};

}  // namespace warpcache::server
