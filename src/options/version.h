// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace warpcache {

// The version of memcached whose command line and behaviour this server has. The replies of
// `version` begin with it too (protocol/version.h).
inline constexpr std::string_view kMemcachedVersion = "1.6.45";

// The project's version, such as 0.1.0. Static.
[[nodiscard]] std::string_view version();

}  // namespace warpcache
