// SPDX-License-Identifier: Apache-2.0
//
// A port of frames from and to the kernel through a TAP interface. To the kernel, every address of
// the interface's network except its own belongs to the server: the port answers ARP requests and
// IPv6 neighbour solicitations for them. Requests to the server's UDP port are answered from raw
// frames.
//
// All other IP packets that the kernel sends to such an address, ICMP echo and TCP among them, go
// to the kernel's own sockets: the port swaps source and destination and gives the packet back. The
// kernel takes it for one from that address to itself, answers, and the answer comes back in the
// same way. Swapped addresses leave every checksum valid, and no state is kept.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "io/frames/frame_port.h"
#include "io/frames/tap_interface.h"
#include "io/wake_event.h"

namespace warpcache::io {

class TapPort final : public FramePort {
 public:
  // Opens interface `name`, or makes it if there is none, and sets it up; an interface that was
  // made is removed at the end. `address`, as in 10.9.0.1/24 or fd00::1/64, is added to the
  // interface: it is the kernel's own; empty: none is added. Returns the error as text, or "".
  static std::string open(const std::string& name, const std::string& address,
                          std::unique_ptr<FramePort>* port);

  bool receive(FrameBuffer& buffer, int timeout_ms) override;
  void send(const TxFrame* frames, uint32_t count) override;
  void pass_on(const MutableBytes* frames, uint32_t count) override;
  void stop() override;
  std::string failure() const override { return failure_; }
  std::string describe() const override { return "tap " + interface_.name(); }

 private:
  TapPort() = default;
  bool wait(int timeout_ms) const;

  TapInterface interface_;
  WakeEvent stop_event_;
  std::atomic<bool> stopped_{false};
  std::string failure_;
};

}  // namespace warpcache::io
