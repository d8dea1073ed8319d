// SPDX-License-Identifier: Apache-2.0
#include "server/frame_ports.h"

#include "io/frames/tap_port.h"
#if defined(WARPCACHE_HAVE_PCAP)
#include "io/frames/pcap_port.h"
#endif

namespace warpcache::server {

std::string open_frame_port(const FramesOptions& options, std::unique_ptr<io::FramePort>* port) {
  if (options.kind == FramesOptions::Kind::kTap) {
    return io::TapPort::open(options.name, options.address, port);
  }
#if defined(WARPCACHE_HAVE_PCAP)
  const std::string failure = io::PcapPort::open(options.input, options.output, port);
  return failure.empty() ? "" : "pcap: " + failure;
#else
  return "pcap: this server was built without libpcap";
#endif
}

}  // namespace warpcache::server
