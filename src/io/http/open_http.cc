// SPDX-License-Identifier: Apache-2.0
#include "io/http/http_server.h"
#include "io/module.h"

namespace warpcache::io {

std::string open_http(std::vector<UniqueFd> sockets, const HttpHandler& handler,
                      std::unique_ptr<HttpServer>* server) {
  std::string failure;
  const auto open = reinterpret_cast<decltype(&warpcache_open_http)>(
      load_from_module(kHttpModule, "warpcache_open_http", "libmicrohttpd", &failure));
  if (open == nullptr) return failure;
  server->reset(open(&sockets, &handler, &failure));
  return failure;
}

}  // namespace warpcache::io
