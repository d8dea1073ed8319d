// SPDX-License-Identifier: Apache-2.0
#include "server/frame_ports.h"

#include "io/frames/dpdk/dpdk_ports.h"
#include "io/frames/peer_port.h"
#include "io/frames/tap_port.h"
#if defined(WARPCACHE_HAVE_PCAP)
#include "io/frames/pcap_port.h"
#endif

namespace warpcache::server {

namespace {

std::string open_pcap_port(const FramesOptions& options, std::unique_ptr<io::FramePort>* port) {
#if defined(WARPCACHE_HAVE_PCAP)
  const std::string failure = io::PcapPort::open(options.input, options.output, port);
  return failure.empty() ? "" : "pcap: " + failure;
#else
  (void)options;
  (void)port;
  return "pcap: this server was built without libpcap";
#endif
}

}  // namespace

std::string open_frame_ports(const FramesOptions& options,
                             std::vector<std::unique_ptr<io::FramePort>>* ports) {
  using Kind = FramesOptions::Kind;
  if (options.kind == Kind::kDpdk || options.kind == Kind::kRing) {
    const bool is_ring = options.kind == Kind::kRing;
    io::DpdkSettings settings;
    (is_ring ? settings.ring : settings.device) = options.name;
    settings.queues = options.queues;
    settings.threads = options.threads;
    settings.kernel_interface = options.kernel_interface;
    settings.kernel_address = options.kernel_address;
    settings.gpu = options.gpu;
    const std::string failure = io::open_dpdk_ports(settings, ports);
    return failure.empty() ? "" : (is_ring ? "ring:" : "dpdk:") + options.name + ": " + failure;
  }
  std::unique_ptr<io::FramePort> port;
  std::string failure;
  switch (options.kind) {
    case Kind::kTap:
      failure = io::TapPort::open(options.name, options.address, &port);
      break;
    case Kind::kPeer:
      failure = io::PeerPort::open(options.name, options.slot_bytes, &port);
      break;
    default:
      failure = open_pcap_port(options, &port);
  }
  if (failure.empty()) ports->push_back(std::move(port));
  return failure;
}

}  // namespace warpcache::server
