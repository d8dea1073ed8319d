// SPDX-License-Identifier: Apache-2.0
//
// Pools of buffers for received frames, in a piece of memory that an engine can address.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <string>

namespace warpcache::io {

inline constexpr uint64_t kDpdkPage = uint64_t{2} << 20;  // bytes; zones begin at multiples of it
inline constexpr uint32_t kDpdkFrameRoom = 2048;          // bytes of a buffer, without its headroom
inline constexpr uint32_t kDpdkBufferBytes = RTE_PKTMBUF_HEADROOM + kDpdkFrameRoom;
inline constexpr uint32_t kDpdkPoolCache = RTE_MEMPOOL_CACHE_MAX_SIZE;

// Whether devices see pages at addresses that need not lie together.
bool pages_lie_apart();

// Memory of a port: a zone of DPDK's, or of a GPU (dpdk_gpu.h).
struct FrameMemory {
  uint8_t* data = nullptr;  // for devices and rte_mbufs
  uint8_t* seen = nullptr;  // the same, for the CPU
  uint64_t bytes = 0;
  uint64_t device_address = 0;  // RTE_BAD_IOVA: the device finds it by `data`
  uint64_t page_bytes = 0;
};

// Where buffers lie. Behind their rte_mbufs, as AF_XDP's driver needs it: freeing one touches
// nothing else. Or apart: in a GPU's memory, and where a buffer may not lie in two pages.
enum class BufferLayout : uint8_t { kApart, kBehindMbufs };
BufferLayout layout_for(uint16_t device, bool on_gpu);

// That `count` buffers take; a multiple of kDpdkPage.
uint64_t bytes_of_buffers(BufferLayout layout, uint32_t count);

// A pool of `count` buffers in the first `bytes` of the memory. Null, with rte_errno: none.
rte_mempool* create_pool_in(const FrameMemory& memory, uint64_t bytes, BufferLayout layout,
                            const std::string& name, uint32_t count);

}  // namespace warpcache::io
