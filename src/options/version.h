// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace warpcache {

// The project's version, such as 0.1.0. Static.
[[nodiscard]] std::string_view version();

}  // namespace warpcache
