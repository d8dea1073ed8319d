// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "options/option_draft.h"

namespace warpcache {

// Checks and completes options that depend on each other, when all have been read. Returns one
// sentence about the first that does not fit, or an empty string.
[[nodiscard]] std::string settle(OptionDraft& draft);

}  // namespace warpcache
