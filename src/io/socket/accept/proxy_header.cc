// SPDX-License-Identifier: Apache-2.0
#include "io/socket/accept/proxy_header.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace warpcache::io {
namespace {

// The fixed part: signature, version and command, family, size of the rest (two bytes).
constexpr uint8_t kSignature[] = {'\r', '\n', '\r', '\n', 0, '\r', '\n', 'Q', 'U', 'I', 'T', '\n'};
constexpr size_t kCommandAt = sizeof kSignature;
constexpr size_t kFamilyAt = kCommandAt + 1;
constexpr size_t kSizeAt = kFamilyAt + 1;
constexpr size_t kFixedBytes = kSizeAt + 2;

constexpr uint8_t kLocal = 0x20;
constexpr uint8_t kProxy = 0x21;
constexpr uint8_t kTcp4 = 0x11;
constexpr uint8_t kTcp6 = 0x21;
// Source and destination address, source and destination port.
constexpr size_t kTcp4Bytes = 12;
constexpr size_t kTcp6Bytes = 36;

}  // namespace

// The size of the header, as far as it is known.
size_t ProxyHeader::wanted() const {
  if (received_ < kFixedBytes) return kFixedBytes;
  return kFixedBytes + static_cast<size_t>(bytes_[kSizeAt] << 8 | bytes_[kSizeAt + 1]);
}

bool ProxyHeader::starts_well() const {
  return std::memcmp(bytes_.data(), kSignature, std::min(received_, sizeof kSignature)) == 0;
}

ProxyHeader::Step ProxyHeader::receive(int fd) {
  while (received_ < wanted()) {
    if (wanted() > kBytesMax) return Step::kRefused;
    const ssize_t got = recv(fd, bytes_.data() + received_, wanted() - received_, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Step::kMore;
    if (got <= 0) return Step::kRefused;
    received_ += static_cast<size_t>(got);
    if (!starts_well()) return Step::kRefused;
  }
  return read_address();
}

// What else follows the addresses says nothing that is needed here.
ProxyHeader::Step ProxyHeader::read_address() {
  if (bytes_[kCommandAt] == kLocal) return Step::kDone;
  if (bytes_[kCommandAt] != kProxy) return Step::kRefused;
  const uint8_t* const addresses = bytes_.data() + kFixedBytes;
  const size_t size = received_ - kFixedBytes;
  const uint8_t family = bytes_[kFamilyAt];
  if ((family == kTcp4 && size < kTcp4Bytes) || (family == kTcp6 && size < kTcp6Bytes)) {
    return Step::kRefused;
  }
  if (family != kTcp4 && family != kTcp6) return Step::kDone;
  client_ = std::make_unique<sockaddr_storage>();
  if (family == kTcp4) {
    auto& ipv4 = reinterpret_cast<sockaddr_in&>(*client_);
    ipv4.sin_family = AF_INET;
    std::memcpy(&ipv4.sin_addr, addresses, sizeof ipv4.sin_addr);
    std::memcpy(&ipv4.sin_port, addresses + 2 * sizeof ipv4.sin_addr, sizeof ipv4.sin_port);
  } else {
    auto& ipv6 = reinterpret_cast<sockaddr_in6&>(*client_);
    ipv6.sin6_family = AF_INET6;
    std::memcpy(&ipv6.sin6_addr, addresses, sizeof ipv6.sin6_addr);
    std::memcpy(&ipv6.sin6_port, addresses + 2 * sizeof ipv6.sin6_addr, sizeof ipv6.sin6_port);
  }
  return Step::kDone;
}

}  // namespace warpcache::io
