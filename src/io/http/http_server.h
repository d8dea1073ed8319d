// SPDX-License-Identifier: Apache-2.0
//
// A small HTTP server that answers GET with texts. A module does the work (io/module.h), with
// libmicrohttpd; a server that is not asked for it does not load it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/unique_fd.h"

namespace warpcache::io {

struct HttpReply {
  unsigned status = 200;
  std::string content_type;
  std::string body;
};

// Answers a GET. `accept` is the header of that name, or empty. Called by the HTTP server's thread.
using HttpHandler = std::function<HttpReply(std::string_view path, std::string_view accept)>;

// Serves from its creation until its end, in one thread for each socket, few clients at a time.
class HttpServer {
 public:
  virtual ~HttpServer() = default;
};

inline constexpr const char* kHttpModule = "warpcached-http.so";

// Serves at `sockets`, which listen. Returns an empty string, or why not.
[[nodiscard]] std::string open_http(std::vector<UniqueFd> sockets, const HttpHandler& handler,
                                    std::unique_ptr<HttpServer>* server);

}  // namespace warpcache::io

// What the module has. Null, with the reason in `failure`, if the library refuses.
extern "C" warpcache::io::HttpServer* warpcache_open_http(
    std::vector<warpcache::io::UniqueFd>* sockets, const warpcache::io::HttpHandler* handler,
    std::string* failure);
