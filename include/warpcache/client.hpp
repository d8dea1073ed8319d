// SPDX-License-Identifier: Apache-2.0
//
// C++ over client.h: owns a client, and turns statuses into exceptions or empty results. Used by
// one thread at a time.
#ifndef WARPCACHE_CLIENT_HPP_
#define WARPCACHE_CLIENT_HPP_

#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "warpcache/client.h"

namespace warpcache {

class ClientError : public std::runtime_error {
 public:
  ClientError(warpcache_status status, const char* text)
      : std::runtime_error(std::string(warpcache_status_text(status)) + ": " + text),
        status_(status) {}
  warpcache_status status() const { return status_; }

 private:
  warpcache_status status_;
};

class Client {
 public:
  Client() : client_(warpcache_create(), warpcache_free) {
    if (!client_) throw std::bad_alloc();
  }

  void add_server(const std::string& host, uint16_t tcp_port, uint16_t ucx_port = 0) {
    check(warpcache_add_server(client_.get(), host.c_str(), tcp_port, ucx_port));
  }
  void set_timeout_ms(uint32_t timeout_ms) { warpcache_set_timeout_ms(client_.get(), timeout_ms); }

  // Empty: not found. Values of any size; asks twice for those above 64 KB.
  std::optional<std::string> get(std::string_view key) {
    std::string value(kUsualMax, '\0');
    while (true) {
      size_t size = 0;
      const warpcache_status status =
          warpcache_get(client_.get(), key.data(), key.size(), value.data(), value.size(), &size,
                        nullptr, nullptr);
      if (status == WARPCACHE_NOT_FOUND) return std::nullopt;
      if (status != WARPCACHE_NO_SPACE) check(status);
      value.resize(size);
      if (status == WARPCACHE_OK) return value;
    }
  }
  void set(std::string_view key, std::string_view value, uint32_t expiry = 0, uint32_t flags = 0) {
    check(warpcache_set(client_.get(), key.data(), key.size(), value.data(), value.size(), expiry,
                        flags));
  }
  // Empty: not found.
  std::optional<uint64_t> incr(std::string_view key, uint64_t delta = 1) {
    uint64_t number = 0;
    const warpcache_status status =
        warpcache_incr(client_.get(), key.data(), key.size(), delta, &number);
    if (status == WARPCACHE_NOT_FOUND) return std::nullopt;
    check(status);
    return number;
  }
  // False: not found.
  bool remove(std::string_view key) {
    const warpcache_status status = warpcache_delete(client_.get(), key.data(), key.size());
    if (status != WARPCACHE_NOT_FOUND) check(status);
    return status == WARPCACHE_OK;
  }

  // For the calls of client.h that have no method here.
  warpcache_client* c_client() { return client_.get(); }

 private:
  static constexpr size_t kUsualMax = 64 * 1024;

  void check(warpcache_status status) const {
    if (status != WARPCACHE_OK) throw ClientError(status, warpcache_last_error(client_.get()));
  }

  std::unique_ptr<warpcache_client, decltype(&warpcache_free)> client_;
};

}  // namespace warpcache

#endif  // WARPCACHE_CLIENT_HPP_
