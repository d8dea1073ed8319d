// SPDX-License-Identifier: Apache-2.0
#include "io/frames/dpdk/dpdk_pools.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_memory.h>

#include <cstring>
#include <vector>

namespace warpcache::io {
namespace {

constexpr uint32_t kObjectBytes = sizeof(rte_mbuf) + kDpdkBufferBytes;
constexpr unsigned kObjectFlags = RTE_MEMPOOL_F_NO_IOVA_CONTIG;  // pages need not lie together

// Pages may lie apart for the device: then no buffer crosses from one to the next.
std::vector<rte_pktmbuf_extmem> pieces_of(const FrameMemory& memory, uint64_t received_bytes) {
  const bool apart = pages_lie_apart() && memory.device_address != RTE_BAD_IOVA;
  const uint64_t bytes = apart ? memory.page_bytes : received_bytes;
  std::vector<rte_pktmbuf_extmem> pieces;
  for (uint64_t at = 0; at + bytes <= received_bytes; at += bytes) {
    rte_pktmbuf_extmem& piece = pieces.emplace_back();
    piece.buf_ptr = memory.data + at;
    piece.buf_iova = apart ? rte_mem_virt2iova(piece.buf_ptr) : memory.device_address + at;
    if (memory.device_address == RTE_BAD_IOVA) piece.buf_iova = RTE_BAD_IOVA;
    piece.buf_len = bytes;
    piece.elt_size = kDpdkBufferBytes;
  }
  return pieces;
}

rte_mempool* create_behind_mbufs(const FrameMemory& memory, uint64_t bytes, const std::string& name,
                                 uint32_t count) {
  rte_mempool* const pool =
      rte_mempool_create_empty(name.c_str(), count, kObjectBytes, kDpdkPoolCache,
                               sizeof(rte_pktmbuf_pool_private), SOCKET_ID_ANY, kObjectFlags);
  if (pool == nullptr) return nullptr;
  int result = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), nullptr);
  if (result == 0) {
    rte_pktmbuf_pool_init(pool, nullptr);
    result = rte_mempool_populate_iova(pool, reinterpret_cast<char*>(memory.data),
                                       memory.device_address, bytes, nullptr, nullptr);
  }
  if (result != static_cast<int>(count)) {
    rte_mempool_free(pool);
    rte_errno = result < 0 ? -result : ENOMEM;
    return nullptr;
  }
  (void)rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
  return pool;
}

}  // namespace

bool pages_lie_apart() { return rte_eal_iova_mode() != RTE_IOVA_VA; }

BufferLayout layout_for(uint16_t device, bool on_gpu) {
  if (on_gpu) return BufferLayout::kApart;
  rte_eth_dev_info info = {};
  const bool is_xdp =
      rte_eth_dev_info_get(device, &info) == 0 && std::strcmp(info.driver_name, "net_af_xdp") == 0;
  return is_xdp || !pages_lie_apart() ? BufferLayout::kBehindMbufs : BufferLayout::kApart;
}

// No buffer lies in two pages, so there is space for that.
uint64_t bytes_of_buffers(BufferLayout layout, uint32_t count) {
  if (layout == BufferLayout::kApart) {
    return (count / (kDpdkPage / kDpdkBufferBytes) + 1) * kDpdkPage;
  }
  const uint64_t each = rte_mempool_calc_obj_size(kObjectBytes, kObjectFlags, nullptr);
  return (each * count / kDpdkPage + 1) * kDpdkPage;
}

rte_mempool* create_pool_in(const FrameMemory& memory, uint64_t bytes, BufferLayout layout,
                            const std::string& name, uint32_t count) {
  if (layout == BufferLayout::kBehindMbufs) {
    return create_behind_mbufs(memory, bytes, name, count);
  }
  const std::vector<rte_pktmbuf_extmem> pieces = pieces_of(memory, bytes);
  return rte_pktmbuf_pool_create_extbuf(name.c_str(), count, kDpdkPoolCache, 0, kDpdkBufferBytes,
                                        SOCKET_ID_ANY, pieces.data(),
                                        static_cast<unsigned>(pieces.size()));
}

}  // namespace warpcache::io
