// SPDX-License-Identifier: Apache-2.0
//
// Options whose value is one of a few words. Each function is an ApplyOption.
#pragma once

#include <string_view>

#include "options/option_draft.h"

namespace warpcache {

bool set_protocol(OptionDraft& draft, std::string_view value);      // -B
bool set_engine(OptionDraft& draft, std::string_view value);        // --engine
bool set_gpu_mode(OptionDraft& draft, std::string_view value);      // --gpu-mode
bool set_values(OptionDraft& draft, std::string_view value);        // --values
bool set_on_gpu_error(OptionDraft& draft, std::string_view value);  // --on-gpu-error

}  // namespace warpcache
