// SPDX-License-Identifier: Apache-2.0
//
// DPDK's environment (EAL): memory, threads, drivers.
#pragma once

#include <cstdint>
#include <string>

namespace warpcache::io {

// Starts DPDK, once in a process, with `megabytes` of memory: in huge pages, or in ordinary ones
// where there are not enough. Hardware may need physical addresses; without it (`is_virtual`) pages
// need not lie together. The calling thread keeps its CPUs. No file is left behind. Returns the
// error as text, or "".
std::string start_dpdk(uint32_t megabytes, bool is_virtual);

// DPDK with memory that other processes may share: `prefix` names it, and files of that name hold
// it in a file system of huge pages. The first removes what a killed process has left behind, and
// is the primary process. REQUIRES: no other process has the prefix, or is about to. As
// start_dpdk().
std::string shared_dpdk_prefix(const std::string& name);
std::string start_shared_dpdk(const std::string& prefix, uint32_t megabytes);
// As a secondary process of the one that has started it.
std::string join_shared_dpdk(const std::string& prefix);
// Removes the files. Processes that have joined still have the memory.
void remove_shared_dpdk(const std::string& prefix);
// A secondary process takes memory of the primary one's heap, and locks, which nobody gives back
// when it is killed. So the primary one remembers how DPDK's memory is, but for `zone`, when it has
// all that it needs. forget_secondary() brings that back when a secondary process has ended, and
// removes its files. REQUIRES: there is no secondary process; nobody uses DPDK's heap meanwhile.
void remember_shared_dpdk(const void* zone, uint64_t zone_bytes);
void forget_secondary(int process);

// Whether DPDK's memory is in huge pages. REQUIRES: it has been started.
bool dpdk_has_huge_pages();

// Adds a device. Returns the error as text, or "" and its number.
std::string add_dpdk_device(const std::string& device, uint16_t* number);

}  // namespace warpcache::io
