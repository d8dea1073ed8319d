// SPDX-License-Identifier: Apache-2.0
#include "warpcache/client.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/am_channel.h"
#include "client/channel.h"
#include "client/codec/text.h"
#include "client/codec/words.h"
#include "client/ketama.h"

namespace warpcache::client {

struct Server {
  std::string host;
  uint16_t tcp_port = 0;
  uint16_t ucx_port = 0;
  std::chrono::steady_clock::time_point ucx_retry_at{};  // UCX is not tried before
  std::unique_ptr<Channel> channel;                      // null: not connected
};

}  // namespace warpcache::client

using warpcache::Bytes;
using warpcache::client::AmConnector;
using warpcache::client::append;
using warpcache::client::Channel;
using warpcache::client::code_of;
using warpcache::client::connect_tcp;
using warpcache::client::Ketama;
using warpcache::client::kLineEnd;
using warpcache::client::line_bytes_max;
using warpcache::client::read_number;
using warpcache::client::read_value_head;
using warpcache::client::ReplyCode;
using warpcache::client::RequestLine;
using warpcache::client::Server;
using warpcache::client::ValueHead;
using warpcache::client::write_store;

namespace {

using Clock = std::chrono::steady_clock;
using Result = Channel::Result;

constexpr size_t kKeyMax = 250;
constexpr std::chrono::seconds kRetryUcxAfter{10};

bool is_key(const char* key, size_t size) {
  const auto is_bad = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; };
  return key != nullptr && size > 0 && size <= kKeyMax && std::none_of(key, key + size, is_bad);
}

}  // namespace

struct warpcache_client {
  // Before the servers, whose channels it made.
  std::unique_ptr<AmConnector> connector;
  bool connector_tried = false;
  bool one_sided = false;
  uint64_t one_sided_reads = 0;
  std::vector<Server> servers;
  Ketama ketama;
  std::chrono::milliseconds timeout{1000};
  std::string error;
  std::string text;  // scratch: a request
  std::string line;  // scratch: a reply

  Channel::Deadline deadline() const { return Clock::now() + timeout; }

  warpcache_status fail(warpcache_status status, std::string why) {
    error = std::move(why);
    return status;
  }

  // What a broken channel means; it is closed.
  warpcache_status broken(Server& server, Result result) {
    server.channel.reset();
    return result == Result::kTimeout ? fail(WARPCACHE_TIMEOUT, server.host + ": no answer in time")
                                      : fail(WARPCACHE_NO_SERVER, server.host + ": has closed");
  }

  std::string connect_ucx(Server& server, Channel::Deadline until) {
    std::string failure;
    if (!std::exchange(connector_tried, true)) {
      connector = warpcache::client::make_am_connector(one_sided, &failure);
    } else if (connector == nullptr) {
      failure = "UCX cannot be used";
    }
    if (connector == nullptr) return failure;
    return connector->connect(server.host, server.ucx_port, until, &server.channel);
  }

  warpcache_status connect(Server& server) {
    if (server.channel != nullptr) return WARPCACHE_OK;
    std::string failure = "it has no port";
    if (server.ucx_port != 0 && (server.tcp_port == 0 || Clock::now() >= server.ucx_retry_at)) {
      failure = connect_ucx(server, deadline());
      if (failure.empty()) return WARPCACHE_OK;
      server.ucx_retry_at = Clock::now() + kRetryUcxAfter;
    }
    if (server.tcp_port != 0) {
      failure = connect_tcp(server.host, server.tcp_port, deadline(), &server.channel);
      if (failure.empty()) return WARPCACHE_OK;
    }
    return fail(WARPCACHE_NO_SERVER, failure);
  }

  // The key's server, connected.
  warpcache_status find(const char* key, size_t key_size, Server** server) {
    if (!is_key(key, key_size)) return fail(WARPCACHE_BAD_ARGUMENT, "the key is not valid");
    if (servers.empty()) return fail(WARPCACHE_BAD_ARGUMENT, "there is no server");
    *server = &servers[ketama.server_of({key, key_size})];
    return connect(**server);
  }

  // Sends a request and reads the first line of the answer into `line`.
  warpcache_status ask(Server& server, Bytes body, Channel::Deadline until) {
    const Bytes end = body.data != nullptr ? warpcache::bytes_of("\r\n") : Bytes{};
    Result result = server.channel->send(warpcache::bytes_of(text), body, end, until);
    if (result == Result::kOk) result = server.channel->read_line(&line, until);
    return result == Result::kOk ? WARPCACHE_OK : broken(server, result);
  }

  warpcache_status meaning(Server& server) {
    switch (code_of(line)) {
      case ReplyCode::kStored:
      case ReplyCode::kDeleted:
      case ReplyCode::kTouched:
        return WARPCACHE_OK;
      case ReplyCode::kNotFound:
        return WARPCACHE_NOT_FOUND;
      case ReplyCode::kNotStored:
        return WARPCACHE_NOT_STORED;
      case ReplyCode::kExists:
        return WARPCACHE_EXISTS;
      case ReplyCode::kError:
        break;
      default:
        server.channel.reset();  // out of step
    }
    return fail(WARPCACHE_SERVER_ERROR, line);
  }

  warpcache_status store(const char* verb, const char* key, size_t key_size, const void* value,
                         size_t value_size, uint32_t expiry, uint32_t flags, const uint64_t* cas) {
    if (value == nullptr && value_size > 0) return fail(WARPCACHE_BAD_ARGUMENT, "no value");
    Server* server = nullptr;
    const warpcache_status found = find(key, key_size, &server);
    if (found != WARPCACHE_OK) return found;
    text.clear();
    append(line_bytes_max(key_size), &text, [&](char* out) {
      return write_store(verb, std::string_view(key, key_size), {flags, expiry, value_size, cas},
                         out);
    });
    const void* const bytes = value != nullptr ? value : "";
    const warpcache_status status =
        ask(*server, {static_cast<const uint8_t*>(bytes), value_size}, deadline());
    return status == WARPCACHE_OK ? meaning(*server) : status;
  }

  warpcache_status simple(const char* verb, const char* key, size_t key_size,
                          std::optional<uint64_t> argument, Server** server) {
    const warpcache_status found = find(key, key_size, server);
    if (found != WARPCACHE_OK) return found;
    text.clear();
    append(line_bytes_max(key_size), &text, [&](char* out) {
      RequestLine request(out, verb);
      request.key(std::string_view(key, key_size));
      if (argument) request.number(*argument);
      return request.end();
    });
    return ask(**server, {}, deadline());
  }

  warpcache_status arithmetic(const char* verb, const char* key, size_t key_size, uint64_t delta,
                              uint64_t* number) {
    Server* server = nullptr;
    const warpcache_status status = simple(verb, key, key_size, delta, &server);
    if (status != WARPCACHE_OK) return status;
    uint64_t result = 0;
    if (!read_number(std::string_view(line), &result)) return meaning(*server);
    if (number != nullptr) *number = result;
    return WARPCACHE_OK;
  }

  // By a read of one side. False: the server must be asked.
  bool get_by_read(const char* key, size_t key_size, void* buffer, size_t capacity, size_t* size,
                   uint32_t* flags, uint64_t* cas) {
    Server* server = nullptr;
    if (find(key, key_size, &server) != WARPCACHE_OK) return false;
    Channel::Item item;
    const Bytes bytes = {reinterpret_cast<const uint8_t*>(key), key_size};
    if (!server->channel->read_item(bytes, &item, deadline()) || item.value_size > capacity) {
      return false;
    }
    if (item.value_size > 0) std::memcpy(buffer, item.value, item.value_size);
    *size = item.value_size;
    if (flags != nullptr) *flags = item.client_flags;
    if (cas != nullptr) *cas = item.cas;
    ++one_sided_reads;
    return true;
  }

  warpcache_status get(const char* key, size_t key_size, void* buffer, size_t capacity,
                       size_t* size, uint32_t* flags, uint64_t* cas) {
    if (one_sided && get_by_read(key, key_size, buffer, capacity, size, flags, cas)) {
      return WARPCACHE_OK;
    }
    Server* server = nullptr;
    warpcache_status status = simple(cas != nullptr ? "gets" : "get", key, key_size, {}, &server);
    if (status != WARPCACHE_OK) return status;
    const ReplyCode code = code_of(line);
    if (code == ReplyCode::kEnd) return WARPCACHE_NOT_FOUND;
    ValueHead value;
    if (code != ReplyCode::kValue || !read_value_head(code, line, &value)) return meaning(*server);
    *size = value.size;
    if (flags != nullptr) *flags = value.client_flags;
    if (cas != nullptr) *cas = value.cas;
    const bool fits = value.size <= capacity;
    const Channel::Deadline until = deadline();
    Channel& channel = *server->channel;
    Result result = channel.read(fits ? static_cast<uint8_t*>(buffer) : nullptr, value.size, until);
    uint8_t end[7];
    if (result == Result::kOk) result = channel.read(end, sizeof end, until);
    if (result != Result::kOk) return broken(*server, result);
    if (std::string_view(reinterpret_cast<char*>(end), sizeof end) != "\r\nEND\r\n") {
      return broken(*server, Result::kClosed);
    }
    if (one_sided) channel.ask_copy({reinterpret_cast<const uint8_t*>(key), key_size});
    return fits ? WARPCACHE_OK : fail(WARPCACHE_NO_SPACE, "the value is larger than the buffer");
  }

  // Reads the answer of one server to a `gets` of several keys.
  warpcache_status read_values(Server& server, warpcache_found found, void* context,
                               Channel::Deadline until) {
    std::vector<uint8_t> bytes;
    while (true) {
      Result result = server.channel->read_line(&line, until);
      if (result != Result::kOk) return broken(server, result);
      const ReplyCode code = code_of(line);
      if (code == ReplyCode::kEnd) return WARPCACHE_OK;
      ValueHead value;
      if (code != ReplyCode::kValue || !read_value_head(code, line, &value)) return meaning(server);
      bytes.resize(value.size + 2);
      result = server.channel->read(bytes.data(), bytes.size(), until);
      if (result != Result::kOk) return broken(server, result);
      found(context, value.key.data(), value.key.size(), bytes.data(), value.size,
            value.client_flags, value.cas);
    }
  }

  warpcache_status mget(const char* const* keys, const size_t* sizes, size_t count,
                        warpcache_found found, void* context) {
    std::vector<std::string> requests(servers.size());
    for (size_t i = 0; i < count; ++i) {
      Server* server = nullptr;
      const warpcache_status status = find(keys[i], sizes[i], &server);
      if (status != WARPCACHE_OK) return status;
      std::string& request = requests[static_cast<size_t>(server - servers.data())];
      const bool begins = request.empty();
      if (!begins) request.resize(request.size() - kLineEnd.size());  // the line goes on
      append(line_bytes_max(sizes[i]), &request, [&](char* out) {
        return RequestLine(out, begins ? "gets" : "")
            .key(std::string_view(keys[i], sizes[i]))
            .end();
      });
    }
    const Channel::Deadline until = deadline();
    warpcache_status worst = WARPCACHE_OK;
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].empty()) continue;
      const Result result =
          servers[i].channel->send(warpcache::bytes_of(requests[i]), {}, {}, until);
      if (result != Result::kOk) worst = broken(servers[i], result);
    }
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].empty() || servers[i].channel == nullptr) continue;
      const warpcache_status status = read_values(servers[i], found, context, until);
      if (status != WARPCACHE_OK) worst = status;
    }
    return worst;
  }
};

namespace {

// C code calls: nothing is thrown through it, not by the caller's own callback either. Where an
// answer was read up to then is not known, so no connection is used again.
template <typename Call>
warpcache_status guarded(warpcache_client* client, Call call) {
  warpcache_status status = WARPCACHE_NO_SERVER;
  try {
    return call();
  } catch (const std::bad_alloc&) {
    status = WARPCACHE_NO_MEMORY;
  } catch (const std::exception& failure) {
    client->error = failure.what();
  } catch (...) {
    client->error = "a callback has thrown";
  }
  for (Server& server : client->servers) server.channel.reset();
  return status;
}

}  // namespace

warpcache_client* warpcache_create(void) { return new (std::nothrow) warpcache_client; }

void warpcache_free(warpcache_client* client) { delete client; }

warpcache_status warpcache_add_server(warpcache_client* client, const char* host, uint16_t tcp_port,
                                      uint16_t ucx_port) {
  return guarded(client, [&] {
    if (host == nullptr || host[0] == '\0' || (tcp_port == 0 && ucx_port == 0)) {
      return client->fail(WARPCACHE_BAD_ARGUMENT, "a server has a host and a port");
    }
    Server& server = client->servers.emplace_back();
    server.host = host;
    server.tcp_port = tcp_port;
    server.ucx_port = ucx_port;
    std::vector<std::string> names;
    for (const Server& one : client->servers) {
      constexpr uint16_t kDefaultPort = 11211;
      const uint16_t port = one.tcp_port != 0 ? one.tcp_port : one.ucx_port;
      names.push_back(port == kDefaultPort ? one.host : one.host + ":" + std::to_string(port));
    }
    client->ketama.set_servers(names);
    return WARPCACHE_OK;
  });
}

void warpcache_set_timeout_ms(warpcache_client* client, uint32_t timeout_ms) {
  client->timeout = std::chrono::milliseconds(timeout_ms);
}

warpcache_status warpcache_use_one_sided(warpcache_client* client, int on) {
  if (client->connector_tried) {
    return client->fail(WARPCACHE_BAD_ARGUMENT, "the client has used UCX already");
  }
  client->one_sided = on != 0;
  return WARPCACHE_OK;
}

uint64_t warpcache_one_sided_reads(const warpcache_client* client) {
  return client->one_sided_reads;
}

const char* warpcache_last_error(const warpcache_client* client) { return client->error.c_str(); }

const char* warpcache_status_text(warpcache_status status) {
  static constexpr const char* kTexts[] = {
      "ok",           "not found", "not stored", "the item has changed",
      "bad argument", "no server", "timeout",    "error of the server",
      "no space",     "no memory"};
  return status >= 0 && status <= WARPCACHE_NO_MEMORY ? kTexts[status] : "unknown";
}

const char* warpcache_transport(warpcache_client* client, const char* key, size_t key_size) {
  Server* server = nullptr;
  const warpcache_status status =
      guarded(client, [&] { return client->find(key, key_size, &server); });
  return status == WARPCACHE_OK ? server->channel->name() : "";
}

warpcache_status warpcache_get(warpcache_client* client, const char* key, size_t key_size,
                               void* buffer, size_t capacity, size_t* size, uint32_t* flags,
                               uint64_t* cas) {
  return guarded(client,
                 [&] { return client->get(key, key_size, buffer, capacity, size, flags, cas); });
}

warpcache_status warpcache_mget(warpcache_client* client, const char* const* keys,
                                const size_t* key_sizes, size_t count, warpcache_found found,
                                void* context) {
  return guarded(client, [&] { return client->mget(keys, key_sizes, count, found, context); });
}

warpcache_status warpcache_set(warpcache_client* client, const char* key, size_t key_size,
                               const void* value, size_t value_size, uint32_t expiry,
                               uint32_t flags) {
  return guarded(client, [&] {
    return client->store("set", key, key_size, value, value_size, expiry, flags, nullptr);
  });
}

warpcache_status warpcache_add(warpcache_client* client, const char* key, size_t key_size,
                               const void* value, size_t value_size, uint32_t expiry,
                               uint32_t flags) {
  return guarded(client, [&] {
    return client->store("add", key, key_size, value, value_size, expiry, flags, nullptr);
  });
}

warpcache_status warpcache_replace(warpcache_client* client, const char* key, size_t key_size,
                                   const void* value, size_t value_size, uint32_t expiry,
                                   uint32_t flags) {
  return guarded(client, [&] {
    return client->store("replace", key, key_size, value, value_size, expiry, flags, nullptr);
  });
}

warpcache_status warpcache_append(warpcache_client* client, const char* key, size_t key_size,
                                  const void* value, size_t value_size) {
  return guarded(client, [&] {
    return client->store("append", key, key_size, value, value_size, 0, 0, nullptr);
  });
}

warpcache_status warpcache_prepend(warpcache_client* client, const char* key, size_t key_size,
                                   const void* value, size_t value_size) {
  return guarded(client, [&] {
    return client->store("prepend", key, key_size, value, value_size, 0, 0, nullptr);
  });
}

warpcache_status warpcache_cas(warpcache_client* client, const char* key, size_t key_size,
                               const void* value, size_t value_size, uint32_t expiry,
                               uint32_t flags, uint64_t cas) {
  return guarded(client, [&] {
    return client->store("cas", key, key_size, value, value_size, expiry, flags, &cas);
  });
}

warpcache_status warpcache_incr(warpcache_client* client, const char* key, size_t key_size,
                                uint64_t delta, uint64_t* number) {
  return guarded(client, [&] { return client->arithmetic("incr", key, key_size, delta, number); });
}

warpcache_status warpcache_decr(warpcache_client* client, const char* key, size_t key_size,
                                uint64_t delta, uint64_t* number) {
  return guarded(client, [&] { return client->arithmetic("decr", key, key_size, delta, number); });
}

warpcache_status warpcache_delete(warpcache_client* client, const char* key, size_t key_size) {
  return guarded(client, [&] {
    Server* server = nullptr;
    const warpcache_status status = client->simple("delete", key, key_size, {}, &server);
    return status == WARPCACHE_OK ? client->meaning(*server) : status;
  });
}

warpcache_status warpcache_touch(warpcache_client* client, const char* key, size_t key_size,
                                 uint32_t expiry) {
  return guarded(client, [&] {
    Server* server = nullptr;
    const warpcache_status status = client->simple("touch", key, key_size, expiry, &server);
    return status == WARPCACHE_OK ? client->meaning(*server) : status;
  });
}
