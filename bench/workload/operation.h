// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_WORKLOAD_OPERATION_H_
#define WARPCACHE_BENCH_WORKLOAD_OPERATION_H_

#include <cstdint>

namespace warpcache::bench {

enum class Operation : uint8_t { kGet, kSet, kDelete };

}  // namespace warpcache::bench

#endif  // WARPCACHE_BENCH_WORKLOAD_OPERATION_H_
