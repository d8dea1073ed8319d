// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/model.h"

namespace warpcache::nic {
namespace {

struct Shares {
  double set;
  double hit;
  double miss;
};

Shares shares_of(double get_share, double miss_rate) {
  return {1 - get_share, get_share * (1 - miss_rate), get_share * miss_rate};
}

}  // namespace

double improvement_as_printed(const Latencies& latencies, double hit_rate) {
  const double hit_us = latencies.nic_us - latencies.network_us;
  return latencies.host_us / (hit_rate * hit_us + (1 - hit_rate) * latencies.host_us);
}

double improvement_seen(const Latencies& latencies, double hit_rate) {
  return latencies.host_us / mean_latency_us(latencies, hit_rate);
}

double mean_latency_us(const Latencies& latencies, double hit_rate) {
  return hit_rate * latencies.nic_us + (1 - hit_rate) * latencies.host_us;
}

Range throughput_as_printed(const Throughputs& rates, double get_share, double miss_rate) {
  const Shares shares = shares_of(get_share, miss_rate);
  const auto mean = [&](double hit, double miss) {
    return shares.set * rates.set + shares.hit * hit + shares.miss * miss;
  };
  return {mean(rates.hit_low, rates.miss_low), mean(rates.hit_high, rates.miss_high)};
}

Range throughput_sequential(const Throughputs& rates, double get_share, double miss_rate) {
  const Shares shares = shares_of(get_share, miss_rate);
  const auto mean = [&](double hit, double miss) {
    return 1 / (shares.set / rates.set + shares.hit / hit + shares.miss / miss);
  };
  return {mean(rates.hit_low, rates.miss_low), mean(rates.hit_high, rates.miss_high)};
}

}  // namespace warpcache::nic
