// SPDX-License-Identifier: Apache-2.0
//
// What DPDK's memif driver (22.11) takes for each connection and does not give back: the descriptor
// of DPDK's memory, which it closes although it is DPDK's, so that no second connection has zero
// copy; and its lists of the buffers in the rings.
//
// As memif_guard.h this has functions of DPDK's names, which the driver finds first: it gets a
// descriptor of its own each time, and its lists are remembered.
#pragma once

namespace warpcache::io {

// Frees the lists of connections that have ended. REQUIRES: the device is stopped, no handler of
// the driver runs.
void free_memif_lists();

}  // namespace warpcache::io
