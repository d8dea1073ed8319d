// SPDX-License-Identifier: Apache-2.0
//
// How a workload asks for its keys, apart from any cache: what figures 4 to 6 of Fukuda et al.
// show. All of the requests after the load phase.
#pragma once

#include <cstdint>
#include <vector>

#include "nic_cache/packed_trace.h"

namespace warpcache::nic {

// Figure 4: of the first `count` requests, the key of each, numbered by first appearance.
std::vector<uint32_t> first_accesses(const PackedTrace& trace, uint64_t count);

// Figure 5: how often a key came again after how many requests. Element i counts the intervals from
// 2^i to 2^(i+1) - 1; an interval of 1 is the next request.
std::vector<uint64_t> interval_counts(const PackedTrace& trace);

struct CdfPoint {
  double keys;      // part of all keys that were asked for, the rarest first
  double requests;  // the part of the requests that ask for these
};

// Figure 6: `points` of the cumulative distribution; half of them evenly over the keys, half
// ever closer to its end, where the hot keys are. REQUIRES: points >= 4.
std::vector<CdfPoint> key_cdf(const PackedTrace& trace, uint32_t points);

}  // namespace warpcache::nic
