// SPDX-License-Identifier: Apache-2.0
//
// In servers that were built without clang or libbpf.
#include "nic_cache/nic_cache.h"

namespace warpcache::nic_cache {

struct NicCache::Parts {};

NicCache::NicCache(NicCacheConfig) {}
NicCache::~NicCache() = default;
std::string NicCache::open() {
  return "--nic-cache: this server was built without the NIC cache, which needs clang and "
         "libbpf-dev.";
}
store::CopyHooks NicCache::hooks() { return {}; }
void NicCache::start(store::Store&) {}
void NicCache::stop() {}
std::string NicCache::describe() const { return ""; }
void NicCache::stats(const Emit&) const {}

}  // namespace warpcache::nic_cache
