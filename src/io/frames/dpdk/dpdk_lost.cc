// SPDX-License-Identifier: Apache-2.0
#include "io/frames/dpdk/dpdk_lost.h"

#include <rte_lcore.h>
#include <rte_mempool.h>

#include <algorithm>

#include "base/assert.h"

namespace warpcache::io {
namespace {

// Those in the pool, and in the caches of threads that DPDK knows.
void add_free(rte_mempool* pool, std::vector<void*>& found) {
  unsigned count = rte_mempool_avail_count(pool);  // of both
  for (unsigned thread = 0; thread < RTE_MAX_LCORE; ++thread) {
    const rte_mempool_cache* const cache = rte_mempool_default_cache(pool, thread);
    if (cache == nullptr) continue;
    found.insert(found.end(), cache->objs, cache->objs + cache->len);
    count -= cache->len;
  }
  if (count == 0) return;
  const size_t begin = found.size();
  found.resize(begin + count);
  int error = rte_mempool_ops_dequeue_bulk(pool, &found[begin], count);
  WC_ASSERT(error == 0);
  error = rte_mempool_ops_enqueue_bulk(pool, &found[begin], count);
  WC_ASSERT(error == 0);
}

struct Search {
  std::vector<void*> known;
  std::vector<rte_mbuf*> lost;
};

void look(rte_mempool* /*pool*/, void* search, void* buffer, unsigned /*number*/) {
  auto& all = *static_cast<Search*>(search);
  if (std::binary_search(all.known.begin(), all.known.end(), buffer)) return;
  all.lost.push_back(static_cast<rte_mbuf*>(buffer));
}

}  // namespace

uint32_t free_lost_buffers(rte_mempool* pool, const std::vector<rte_mbuf*>& held) {
  Search search;
  search.known.assign(held.begin(), held.end());
  add_free(pool, search.known);
  std::sort(search.known.begin(), search.known.end());
  (void)rte_mempool_obj_iter(pool, look, &search);
  for (rte_mbuf* const buffer : search.lost) {
    rte_mbuf_refcnt_set(buffer, 1);
    buffer->next = nullptr;
    buffer->nb_segs = 1;
    rte_pktmbuf_free(buffer);
  }
  return static_cast<uint32_t>(search.lost.size());
}

}  // namespace warpcache::io
