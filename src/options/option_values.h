// SPDX-License-Identifier: Apache-2.0
//
// Readers for the values of options. Each accepts the whole text or refuses it: it reads no prefix,
// skips no blanks and wraps no number. All are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "options/options.h"

namespace warpcache {

// A decimal number from `min` to `max`, with an optional sign where `min` is negative.
[[nodiscard]] std::optional<int64_t> read_number(std::string_view text, int64_t min, int64_t max);

// A decimal fraction from `min` to `max`, such as 1.25.
[[nodiscard]] std::optional<double> read_fraction(std::string_view text, double min, double max);

// An octal number from 0 to `max`.
[[nodiscard]] std::optional<uint32_t> read_octal(std::string_view text, uint32_t max);

// A size in bytes: a number with a suffix k, m, g or t (either case, powers of 1024), or a number
// without suffix, in units of `bare_unit_bytes`. Refused outside [min_bytes, max_bytes].
[[nodiscard]] std::optional<uint64_t> read_size(std::string_view text, uint64_t bare_unit_bytes,
                                                uint64_t min_bytes, uint64_t max_bytes);

// One value of -l: `host`, `host:port`, `[ipv6]`, `[ipv6]:port`, an IPv6 address without brackets,
// `*`, `*:port`; before it `noadmin:` and one of `notls:`, `btls:`, `mtls:`, in any order. Host
// names are not resolved here. The port is optional.
struct ListenSpec {
  std::string host;  // empty for `*`
  std::optional<uint16_t> port;
  bool admin = true;             // no prefix `noadmin:`
  bool proxied = false;          // prefix `proxy:`
  std::optional<ListenTls> tls;  // of the prefixes `notls:`, `btls:` and `mtls:`
};
[[nodiscard]] std::optional<ListenSpec> read_listen(std::string_view text);

// A network such as 192.0.2.0/24 or 2001:db8::/32; an address without prefix is a network of one
// address. Bits after the prefix are cleared.
[[nodiscard]] std::optional<Cidr> read_cidr(std::string_view text);

}  // namespace warpcache
