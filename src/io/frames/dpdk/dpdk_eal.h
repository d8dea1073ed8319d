// SPDX-License-Identifier: Apache-2.0
//
// DPDK's environment (EAL): memory, threads, drivers.
#pragma once

#include <cstdint>
#include <string>

namespace warpcache::io {

// Starts DPDK, once in a process, with `megabytes` of memory: in huge pages, or in ordinary ones
// where there are not enough. The calling thread keeps its CPUs. No file is left behind. Returns
// the error as text, or "".
std::string start_dpdk(uint32_t megabytes);

// Whether DPDK's memory is in huge pages. REQUIRES: it has been started.
bool dpdk_has_huge_pages();

// Adds a device. Returns the error as text, or "" and its number.
std::string add_dpdk_device(const std::string& device, uint16_t* number);

}  // namespace warpcache::io
