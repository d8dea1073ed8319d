// SPDX-License-Identifier: Apache-2.0
#include "io/http/http_server.h"

#include <microhttpd.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <exception>
#include <iterator>
#include <list>
#include <memory>
#include <utility>

#include "base/first_of_most.h"
#include "io/client_source.h"

namespace warpcache::io {
namespace {

// When more connect, connections are closed instead of refused. The library sees the end of these a
// little later, and may take new ones before.
constexpr unsigned kClientsMax = 32;
constexpr unsigned kClosingMax = 32;
constexpr unsigned kIdleSecondsMax = 30;
constexpr size_t kClientBytesMax = 16 * 1024;  // request line and headers

MHD_Result send_reply(MHD_Connection* connection, const HttpReply& reply) {
  MHD_Response* const response = MHD_create_response_from_buffer(
      reply.body.size(), const_cast<char*>(reply.body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  for (const auto& [name, value] :
       {std::pair<const char*, const char*>{MHD_HTTP_HEADER_CONTENT_TYPE,
                                            reply.content_type.c_str()},
        {MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"Content-Security-Policy",
         "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
         "connect-src 'self'; img-src data:; frame-ancestors 'none'"}}) {
    (void)MHD_add_response_header(response, name, value);
  }
  if (reply.status == MHD_HTTP_METHOD_NOT_ALLOWED) {
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  }
  const MHD_Result result = MHD_queue_response(connection, reply.status, response);
  MHD_destroy_response(response);
  return result;
}

// The library calls this first without and then with the body; a GET has none.
MHD_Result answer(void* context, MHD_Connection* connection, const char* url, const char* method,
                  const char* /*version*/, const char* /*body*/, size_t* body_bytes,
                  void** /*state*/) {
  const auto& handler = *static_cast<const HttpHandler*>(context);
  if (std::strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
      std::strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
    *body_bytes = 0;
    return send_reply(connection,
                      {MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", "only GET is answered\n"});
  }
  const char* const accept =
      MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
  try {
    return send_reply(connection, handler(url, accept == nullptr ? "" : accept));
  } catch (const std::exception&) {
    return MHD_NO;  // no memory: the connection is closed
  }
}

// The connections at a socket. For one too many the oldest is closed, of the source that has the
// most: a client that takes all would otherwise keep others from reading. In the library's thread.
class HttpClients {
 public:
  // MHD_NotifyConnectionCallback; `clients` is this object.
  static void notify(void* clients, MHD_Connection* connection, void** /*state*/,
                     MHD_ConnectionNotificationCode what) {
    auto& self = *static_cast<HttpClients*>(clients);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
      self.open_.remove_if([&](const Client& client) { return client.connection == connection; });
    } else {
      self.add(connection);
    }
  }

 private:
  struct Client {
    MHD_Connection* connection;
    int fd;
    uint64_t source;
  };

  void add(MHD_Connection* connection) {
    const MHD_ConnectionInfo* const socket =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (socket == nullptr) return;
    try {
      open_.push_back({connection, socket->connect_fd, source_of(socket->connect_fd)});
    } catch (const std::bad_alloc&) {
      return;  // it is only not closed for others
    }
    if (open_.size() <= kClientsMax) return;
    std::array<uint64_t, kClientsMax + 1> sources{};
    size_t count = 0;
    for (const Client& client : open_) sources[count++] = client.source;
    const auto victim =
        std::next(open_.begin(), static_cast<ptrdiff_t>(first_of_most(sources, count)));
    (void)shutdown(victim->fd, SHUT_RDWR);
    open_.erase(victim);
  }

  std::list<Client> open_;  // and not being closed, oldest first
};

class MicroHttpServer final : public HttpServer {
 public:
  explicit MicroHttpServer(HttpHandler handler) : handler_(std::move(handler)) {}
  MicroHttpServer(const MicroHttpServer&) = delete;
  MicroHttpServer& operator=(const MicroHttpServer&) = delete;
  ~MicroHttpServer() override {
    for (MHD_Daemon* const daemon : daemons_) MHD_stop_daemon(daemon);
  }

  bool serve(UniqueFd socket) {
    clients_.push_back(std::make_unique<HttpClients>());
    MHD_Daemon* const daemon = MHD_start_daemon(
        MHD_USE_POLL_INTERNAL_THREAD, 0, nullptr, nullptr, &answer, &handler_,
        MHD_OPTION_LISTEN_SOCKET, socket.get(), MHD_OPTION_CONNECTION_LIMIT,
        kClientsMax + kClosingMax, MHD_OPTION_CONNECTION_TIMEOUT, kIdleSecondsMax,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, kClientBytesMax, MHD_OPTION_NOTIFY_CONNECTION,
        &HttpClients::notify, clients_.back().get(), MHD_OPTION_END);
    if (daemon == nullptr) return false;
    (void)socket.release();  // it is the daemon's
    daemons_.push_back(daemon);
    return true;
  }

 private:
  HttpHandler handler_;
  std::vector<std::unique_ptr<HttpClients>> clients_;  // outlive the daemons
  std::vector<MHD_Daemon*> daemons_;
};

}  // namespace
}  // namespace warpcache::io

extern "C" __attribute__((visibility("default"))) warpcache::io::HttpServer* warpcache_open_http(
    std::vector<warpcache::io::UniqueFd>* sockets, const warpcache::io::HttpHandler* handler,
    std::string* failure) {
  auto server = std::make_unique<warpcache::io::MicroHttpServer>(*handler);
  for (warpcache::io::UniqueFd& socket : *sockets) {
    if (server->serve(std::move(socket))) continue;
    *failure = "libmicrohttpd refuses to serve";
    return nullptr;
  }
  return server.release();
}
