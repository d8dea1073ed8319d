// SPDX-License-Identifier: Apache-2.0
//
// The header with which a proxy in front says who its client is: version 2 of HAProxy's PROXY
// protocol. It is the first thing on a connection, before TLS.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace warpcache::io {

class ProxyHeader {
 public:
  // The largest header that is read. The standard asks for 536 bytes at least.
  static constexpr size_t kBytesMax = 4096;

  enum class Step : uint8_t { kMore, kDone, kRefused };

  // Receives from a connection what is missing, and nothing that follows the header. Does not wait.
  Step receive(int fd);

  // The client's address, once it is done. Null: the proxy speaks for itself, or does not say.
  std::unique_ptr<sockaddr_storage> take_client() { return std::move(client_); }

 private:
  size_t wanted() const;
  bool starts_well() const;
  Step read_address();

  std::array<uint8_t, kBytesMax> bytes_;
  size_t received_ = 0;
  std::unique_ptr<sockaddr_storage> client_;
};

}  // namespace warpcache::io
