// SPDX-License-Identifier: Apache-2.0
//
// CPUs by their numbers, as Linux writes them: "1,4-7".
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace warpcache {

// In the list's order. Empty: `text` is no such list, or has a number that is too large.
std::vector<uint32_t> read_cpu_list(std::string_view text);

// The numbers of those CPUs that this thread may not use.
std::vector<uint32_t> cpus_not_allowed(const std::vector<uint32_t>& cpus);

// Binds this thread to a CPU. False: it may not use it.
bool pin_thread(uint32_t cpu);

}  // namespace warpcache
