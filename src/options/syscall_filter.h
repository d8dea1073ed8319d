// SPDX-License-Identifier: Apache-2.0
//
// Restricts the process to the system calls that a server needs once it serves (-o
// drop_privileges).
#pragma once

#include <string>

namespace warpcache {

// What a server does besides sockets that it has opened before.
struct FilterNeeds {
  bool frames = false;  // DPDK: Unix sockets to processes that share memory with its driver
  bool ucx = false;     // UCX: sockets of its own to and from its clients
  bool cuda = false;    // CUDA's driver: its device files
};

// Installs the filter for all threads of the process, permanently. From then on a call that starts
// a program or a process ends the server (SIGSYS); every other call that is not on the list fails
// with EPERM, as does executable memory. Returns an empty string, or one sentence that says why no
// filter was installed. REQUIRES: all modules and libraries are loaded.
[[nodiscard]] std::string install_syscall_filter(const FilterNeeds& needs = {});

}  // namespace warpcache
