// SPDX-License-Identifier: Apache-2.0
#include "options/option_values.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>
#include <utility>

namespace warpcache {
namespace {

constexpr size_t kMappedPrefixBytes = 12;
constexpr uint8_t kMappedPrefixBits = 96;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads all of `text` with std::from_chars, which accepts neither blanks nor a plus sign.
template <typename T, typename... Format>
std::optional<T> read_whole(std::string_view text, Format... format) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, format...);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

// The factor of a size's suffix, or 0.
uint64_t suffix_bytes(char suffix) {
  switch (suffix) {
    case 'k':
    case 'K':
      return uint64_t{1} << 10;
    case 'm':
    case 'M':
      return uint64_t{1} << 20;
    case 'g':
    case 'G':
      return uint64_t{1} << 30;
    case 't':
    case 'T':
      return uint64_t{1} << 40;
    default:
      return 0;
  }
}

// Takes one prefix of -l from the start of `text`. False: there is none.
bool read_listen_prefix(std::string_view& text, ListenSpec& spec) {
  constexpr std::string_view kNoAdmin = "noadmin:";
  constexpr std::pair<std::string_view, ListenTls> kTls[] = {{"notls:", ListenTls::kNone},
                                                             {"btls:", ListenTls::kServerOnly},
                                                             {"mtls:", ListenTls::kMutual}};
  if (spec.admin && text.starts_with(kNoAdmin)) {
    spec.admin = false;
    text.remove_prefix(kNoAdmin.size());
    return true;
  }
  constexpr std::string_view kProxy = "proxy:";
  if (!spec.proxied && text.starts_with(kProxy)) {
    spec.proxied = true;
    text.remove_prefix(kProxy.size());
    return true;
  }
  for (const auto& [prefix, tls] : kTls) {
    if (spec.tls || !text.starts_with(prefix)) continue;
    spec.tls = tls;
    text.remove_prefix(prefix.size());
    return true;
  }
  return false;
}

void clear_host_bits(Cidr* cidr) {
  for (size_t i = 0; i < cidr->address.size(); ++i) {
    const int kept =
        std::clamp(static_cast<int>(cidr->prefix_bits) - static_cast<int>(i) * 8, 0, 8);
    cidr->address[i] &= static_cast<uint8_t>(0xff00 >> kept);
  }
}

}  // namespace

std::optional<int64_t> read_number(std::string_view text, int64_t min, int64_t max) {
  const auto value = read_whole<int64_t>(text);
  if (!value || *value < min || *value > max) return std::nullopt;
  return value;
}

std::optional<double> read_fraction(std::string_view text, double min, double max) {
  const std::string_view amount = text.substr(min < 0 && text.starts_with('-') ? 1 : 0);
  if (amount.empty() || !(is_digit(amount[0]) || amount[0] == '.'))
    return std::nullopt;  // no inf or nan; a sign only if the range has negative numbers
  const auto value = read_whole<double>(text, std::chars_format::fixed);
  if (!value || !(*value >= min && *value <= max)) return std::nullopt;
  return value;
}

std::optional<uint32_t> read_octal(std::string_view text, uint32_t max) {
  const auto value = read_whole<uint32_t>(text, 8);
  if (!value || *value > max) return std::nullopt;
  return value;
}

std::optional<uint64_t> read_size(std::string_view text, uint64_t bare_unit_bytes,
                                  uint64_t min_bytes, uint64_t max_bytes) {
  if (text.empty()) return std::nullopt;
  uint64_t unit_bytes = suffix_bytes(text.back());
  if (unit_bytes != 0) {
    text.remove_suffix(1);
  } else {
    unit_bytes = bare_unit_bytes;
  }
  const auto count = read_whole<uint64_t>(text);
  if (!count || *count > max_bytes / unit_bytes) return std::nullopt;
  const uint64_t bytes = *count * unit_bytes;
  if (bytes < min_bytes) return std::nullopt;
  return bytes;
}

std::optional<ListenSpec> read_listen(std::string_view text) {
  ListenSpec spec;
  while (read_listen_prefix(text, spec)) {
  }
  std::string_view port;
  bool has_port = false;
  if (!text.empty() && text.front() == '[') {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    spec.host = text.substr(1, close - 1);
    const std::string_view rest = text.substr(close + 1);
    in6_addr ignored;
    const std::string address =
        spec.host.substr(0, spec.host.find('%'));  // without a zone: fe80::1%eth0
    if (inet_pton(AF_INET6, address.c_str(), &ignored) != 1) return std::nullopt;
    if (!rest.empty()) {
      if (rest.front() != ':') return std::nullopt;
      has_port = true;
      port = rest.substr(1);
    }
  } else if (std::count(text.begin(), text.end(), ':') > 1) {
    in6_addr ignored;
    spec.host = text;
    const std::string address = spec.host.substr(0, spec.host.find('%'));
    if (inet_pton(AF_INET6, address.c_str(), &ignored) != 1) return std::nullopt;
  } else {
    const size_t colon = text.find(':');
    spec.host = text.substr(0, colon);
    if (colon != std::string_view::npos) {
      has_port = true;
      port = text.substr(colon + 1);
    }
  }
  if (spec.host.empty() || spec.host.find_first_of(" \t/") != std::string::npos)
    return std::nullopt;
  if (has_port && port == "-1") {
    spec.port = 0;  // any free port, as with -p
  } else if (has_port) {
    const auto number = read_number(port, 0, 65535);
    if (!number || !is_digit(port[0])) return std::nullopt;
    spec.port = static_cast<uint16_t>(*number);
  }
  if (spec.host == "*") spec.host.clear();
  return spec;
}

std::optional<Cidr> read_cidr(std::string_view text) {
  const size_t slash = text.find('/');
  const std::string address(text.substr(0, slash));
  Cidr cidr;
  uint8_t mapped_bits = 0;
  if (inet_pton(AF_INET, address.c_str(), cidr.address.data() + kMappedPrefixBytes) == 1) {
    cidr.address[10] = 0xff;
    cidr.address[11] = 0xff;
    mapped_bits = kMappedPrefixBits;
  } else if (inet_pton(AF_INET6, address.c_str(), cidr.address.data()) != 1) {
    return std::nullopt;
  }
  cidr.prefix_bits = 128;
  if (slash != std::string_view::npos) {
    const auto bits = read_number(text.substr(slash + 1), 0, 128 - mapped_bits);
    if (!bits) return std::nullopt;
    cidr.prefix_bits = static_cast<uint8_t>(*bits + mapped_bits);
  }
  clear_host_bits(&cidr);
  return cidr;
}

bool Cidr::contains(const std::array<uint8_t, 16>& candidate) const {
  Cidr network{candidate, prefix_bits};
  clear_host_bits(&network);
  return network.address == address;
}

}  // namespace warpcache
