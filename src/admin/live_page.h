// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace warpcache::admin {

// live_page.html: shows the metrics of the server that it came from. Needs nothing else.
[[nodiscard]] std::string_view live_page();

}  // namespace warpcache::admin
