// SPDX-License-Identifier: Apache-2.0
#include "server/open_nic_cache.h"

#include <arpa/inet.h>

#include <algorithm>

#include "io/module.h"

namespace warpcache::server {

namespace {

using nic_cache::NicCacheConfig;
using nic_cache::XdpMode;

NicCacheConfig::Listener listener_of(const BoundPort& port) {
  NicCacheConfig::Listener listener;
  auto& address = listener.address;
  if (port.ipv6) {
    (void)inet_pton(AF_INET6, port.host.c_str(), address.data());
    listener.any_ipv6 = address == nic_cache::NicCacheConfig::Listener{}.address;
    return listener;
  }
  in_addr in4 = {};
  (void)inet_pton(AF_INET, port.host.c_str(), &in4);
  listener.any_ipv4 = in4.s_addr == 0;
  address[10] = address[11] = 0xff;
  std::copy_n(reinterpret_cast<const uint8_t*>(&in4), 4, address.begin() + 12);
  return listener;
}

XdpMode mode_of(NicCacheOptions::Mode mode) {
  switch (mode) {
    case NicCacheOptions::Mode::kNative:
      return XdpMode::kNative;
    case NicCacheOptions::Mode::kGeneric:
      return XdpMode::kGeneric;
    case NicCacheOptions::Mode::kAny:
      break;
  }
  return XdpMode::kAny;
}

NicCacheConfig config_of(const Options& options, const std::vector<BoundPort>& ports) {
  NicCacheConfig config;
  config.interface = options.nic_cache.interface;
  config.mode = mode_of(options.nic_cache.mode);
  config.memory_mb = options.nic_cache.memory_mb;
  config.read_allocate = options.nic_cache.read_allocate;
  config.admit_frequent = options.nic_cache.admit_frequent;
  config.source_rate_max = options.nic_cache.source_rate_max;
  config.takes_over = options.listen.share_ports;
  using Write = NicCacheOptions::Write;
  config.refill_changed = options.nic_cache.write != Write::kForward;
  config.write_back = options.nic_cache.write == Write::kBack;
  for (const BoundPort& port : ports) {
    if (!port.udp) continue;
    if (config.udp_port == 0) config.udp_port = port.port;
    if (port.port == config.udp_port) config.listeners.push_back(listener_of(port));
  }
  for (const Cidr& cidr : options.udp_guard.allow) {
    config.allowed.push_back({cidr.address, cidr.prefix_bits});
  }
  config.amplification_max = options.udp_guard.amplification_max;
  config.text = options.server.protocol != ProtocolChoice::kBinary;
  config.binary = options.server.protocol != ProtocolChoice::kText;
  return config;
}

}  // namespace

std::string open_nic_cache(const Options& options, const std::vector<BoundPort>& ports,
                           std::unique_ptr<nic_cache::NicCache>* cache) {
  std::string failure;
  const auto make = reinterpret_cast<decltype(&warpcache_make_nic_cache)>(io::load_from_module(
      nic_cache::kNicCacheModule, "warpcache_make_nic_cache", "the NIC cache", &failure));
  if (make == nullptr) return "--nic-cache: " + failure + ".";
  cache->reset(make(config_of(options, ports)));
  return (*cache)->open();
}

}  // namespace warpcache::server
