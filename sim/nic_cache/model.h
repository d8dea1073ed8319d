// SPDX-License-Identifier: Apache-2.0
//
// Computes latency and throughput from hit rates as Fukuda et al. do in sections 5.2 and 5.3, with
// their measurements (tables 4 and 5) as defaults.
#pragma once

#include <cstdint>

namespace warpcache::nic {

struct Latencies {
  double network_us = 9;  // a reply that the NIC sends immediately
  double nic_us = 29;     // a hit in the NIC, as a client sees it
  double host_us = 87;    // an answer of the host, as a client sees it
};

// Equation 1 as the paper prints it: a hit counts without the network, a miss with it.
double improvement_as_printed(const Latencies& latencies, double hit_rate);

// The same with the network in both, which is what a client sees.
double improvement_seen(const Latencies& latencies, double hit_rate);

// Mean of a GET as a client sees it.
double mean_latency_us(const Latencies& latencies, double hit_rate);

// Operations per second of each kind alone. The lower numbers are for a memory controller whose
// cache never hits, the upper ones for one whose cache always hits.
struct Throughputs {
  double set = 191'424;
  double hit_low = 399'680;
  double hit_high = 958'772;
  double miss_low = 138'465;
  double miss_high = 165'480;
};

struct Range {
  double low;
  double high;
};

// Operations per second of a mix, as the paper's figure 13 has it: the mean of the rates, weighted
// by the shares of the operations.
Range throughput_as_printed(const Throughputs& rates, double get_share, double miss_rate);

// The same from the times that operations take one after the other: the rates' harmonic mean.
Range throughput_sequential(const Throughputs& rates, double get_share, double miss_rate);

}  // namespace warpcache::nic
