// SPDX-License-Identifier: Apache-2.0
//
// The access pattern of a workload, without a cache: figures 4 to 6 of Fukuda et al. Covers all
// requests after the load phase.
#pragma once

#include <cstdint>
#include <vector>

#include "nic_cache/packed_trace.h"

namespace warpcache::nic {

// Figure 4: of the first `count` requests, the key of each, numbered by first appearance.
std::vector<uint32_t> first_accesses(const PackedTrace& trace, uint64_t count);

// Figure 5: the number of requests between two accesses to the same key. Element i counts the
// intervals from 2^i to 2^(i+1) - 1; an interval of 1 is the next request.
std::vector<uint64_t> interval_counts(const PackedTrace& trace);

struct CdfPoint {
  double keys;      // share of all requested keys, the rarest first
  double requests;  // the share of the requests for these keys
};

// Figure 6: `points` points of the cumulative distribution. Half of them are evenly spaced over the
// keys; the others get closer to its end, where the hot keys are. REQUIRES: points >= 4.
std::vector<CdfPoint> key_cdf(const PackedTrace& trace, uint32_t points);

}  // namespace warpcache::nic
