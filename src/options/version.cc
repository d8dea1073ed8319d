// SPDX-License-Identifier: Apache-2.0
#include "options/version.h"

namespace warpcache {

std::string_view version() { return WARPCACHE_VERSION; }

}  // namespace warpcache
