// SPDX-License-Identifier: Apache-2.0
//
// The options of the NIC cache.
#pragma once

#include <string>
#include <string_view>

#include "options/option_draft.h"

namespace warpcache {

// --nic-cache: NAME or NAME,native or NAME,generic. An ApplyOption.
bool set_nic_cache(OptionDraft& draft, std::string_view value);

// --nic-cache-memory: megabytes. An ApplyOption.
bool set_nic_cache_memory(OptionDraft& draft, std::string_view value);

// --nic-cache-fill: reads, frequent or off. An ApplyOption.
bool set_nic_cache_fill(OptionDraft& draft, std::string_view value);

// --nic-cache-write: forward, through or back. An ApplyOption.
bool set_nic_cache_write(OptionDraft& draft, std::string_view value);

// --nic-cache-rate: datagrams a second. An ApplyOption.
bool set_nic_cache_rate(OptionDraft& draft, std::string_view value);

// Checks what the NIC cache needs of other options, when all are read. Returns an error or "".
std::string finish_nic_cache(const OptionDraft& draft);

}  // namespace warpcache
