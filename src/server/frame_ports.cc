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
  if (options.kind == FramesOptions::Kind::kDpdk) {
    const std::string failure = io::open_dpdk_ports({.device = options.name,
                                                     .queues = options.queues,
                                                     .threads = options.threads,
                                                     .kernel_interface = options.kernel_interface,
                                                     .kernel_address = options.kernel_address,
                                                     .gpu = options.gpu},
                                                    ports);
    return failure.empty() ? "" : "dpdk:" + options.name + ": " + failure;
  }
  std::unique_ptr<io::FramePort> port;
  std::string failure;
  switch (options.kind) {
    case FramesOptions::Kind::kTap:
      failure = io::TapPort::open(options.name, options.address, &port);
      break;
    case FramesOptions::Kind::kPeer:
      failure = io::PeerPort::open(options.name, options.slot_bytes, &port);
      break;
    default:
      failure = open_pcap_port(options, &port);
  }
  if (failure.empty()) ports->push_back(std::move(port));
  return failure;
}

}  // namespace warpcache::server
