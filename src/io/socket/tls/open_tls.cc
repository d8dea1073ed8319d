// SPDX-License-Identifier: Apache-2.0
#include "io/module.h"
#include "io/socket/tls/tls.h"

namespace warpcache::io {

std::string open_tls(const TlsSettings& settings, std::unique_ptr<TlsServer>* server) {
  std::string failure;
  const auto open = reinterpret_cast<decltype(&warpcache_open_tls)>(
      load_from_module(kTlsModule, "warpcache_open_tls", "TLS", &failure));
  if (open == nullptr) return "-Z: " + failure + ".";
  server->reset(open(settings, &failure));
  return *server == nullptr ? failure : (*server)->load();
}

}  // namespace warpcache::io
