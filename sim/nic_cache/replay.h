// SPDX-License-Identifier: Apache-2.0
//
// Replays a workload with a NIC cache in front of a memcached server.
#pragma once

#include <cstdint>

#include "nic_cache/front.h"
#include "nic_cache/packed_trace.h"

namespace warpcache::nic {

enum class HostKind : uint8_t {
  kLru,    // LruHost
  kStore,  // StoreHost; needs a limit
};

struct Setting {
  Geometry geometry;
  Policies policies;
  HostKind host = HostKind::kLru;
  uint64_t host_bytes = 0;      // memcached's capacity; 0: no limit
  uint32_t reply_requests = 0;  // requests that pass the NIC before the reply to a miss does
  bool refill = false;          // a GET that found nothing is followed by a SET of the key
};

// The counts over the requests after the load phase.
struct Result {
  FrontCounters front;
  CacheCounters cache;
  HostCounters host;
  uint64_t stale = 0;    // GETs answered with another value than the last one set: never with kSafe
  uint64_t refills = 0;  // SETs that followed GETs; counted among front.sets too
  uint64_t items_end = 0;
  double seconds = 0;

  double miss_rate() const {
    return front.gets == 0 ? 0
                           : 1 - static_cast<double>(front.hits) / static_cast<double>(front.gets);
  }
};

// Ends the process if the system refuses the memory of a StoreHost.
Result replay(const PackedTrace& trace, const Setting& setting);

}  // namespace warpcache::nic
