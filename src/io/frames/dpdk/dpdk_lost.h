// SPDX-License-Identifier: Apache-2.0
//
// What DPDK's memif driver (22.11) forgets when the other side goes, with zero copy: the buffers
// that lie in its rings. Without them back, a server has none left after a few connections.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <vector>

namespace warpcache::io {

// Gives back those buffers of a pool that are neither there, nor in a thread's cache, nor `held`.
// Returns how many these are. REQUIRES: no device and no other thread uses the pool.
uint32_t free_lost_buffers(rte_mempool* pool, const std::vector<rte_mbuf*>& held);

}  // namespace warpcache::io
