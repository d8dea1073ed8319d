// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_BENCH_LOAD_UCX_WORKER_H_
#define WARPCACHE_BENCH_LOAD_UCX_WORKER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "load/worker.h"

namespace warpcache::load {

// A thread whose connections are endpoints of active messages. Null, with *why: they cannot be
// opened, or this program was built without UCX.
std::unique_ptr<Worker> make_ucx_worker(const Options& options, const Keyspace& keys,
                                        Distribution* distribution, uint32_t index,
                                        std::atomic<bool>* stop, const std::string& host,
                                        std::string* why);

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_UCX_WORKER_H_
