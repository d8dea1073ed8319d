// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_LOAD_SERVER_PROCESS_H_
#define WARPCACHE_BENCH_LOAD_SERVER_PROCESS_H_

#include <cstdint>

namespace warpcache::load {

// CPU time and memory of a process on this machine, all threads together.
struct ProcessUse {
  uint64_t cpu_ns = 0;
  uint64_t resident_kib = 0;
};

// False if there is no such process, or the kernel does not report them.
bool read_process(int pid, ProcessUse* out);

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_SERVER_PROCESS_H_
