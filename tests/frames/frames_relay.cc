// SPDX-License-Identifier: Apache-2.0
//
// Sends the frames of a capture through a DPDK device as they are, whatever they hold and however
// long they are, and writes what comes back to another capture. Both may be named pipes.
//
//   frames_relay DEVICE[,ARGUMENTS] IN OUT
//   frames_relay ring:NAME IN OUT
//
// The second is the peer of a server with --frames=ring.
//
// Prints `ready` when the device's other side is there. Ends with the input, or by a signal.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mem.h"
#include "io/frames/dpdk/dpdk_ports.h"
#include "io/frames/frame_port.h"
#include "io/frames/pcap_port.h"

namespace {

using namespace warpcache;

constexpr uint32_t kLinkWaitMs = 60'000;
constexpr uint32_t kFramesMax = 64;
constexpr uint32_t kGranule = 16;

// What a port receives into.
struct Burst {
  explicit Burst(io::FramePort& port) : slots(kFramesMax), times(kFramesMax) {
    const MutableBytes own = port.memory();
    if (own.size == 0) memory.resize(size_t{kFramesMax} * io::kFrameBytesMax);
    buffer.data = own.size != 0 ? own.data : memory.data();
    buffer.size = static_cast<uint32_t>(memory.size());
    buffer.slots = slots.data();
    buffer.times_ns = times.data();
    buffer.frames_max = kFramesMax;
  }
  Bytes frame(uint32_t number) const {
    return {buffer.data + slots[number].offset, slots[number].size};
  }

  std::vector<net::PacketSlot> slots;
  std::vector<uint64_t> times;
  std::vector<uint8_t> memory;
  io::FrameBuffer buffer;
};

class Relay {
 public:
  // `has_blocks`: the device sends frames of any length from a block of its memory.
  Relay(io::FramePort& device, bool has_blocks, io::FramePort& capture)
      : device_(device),
        has_blocks_(has_blocks),
        capture_(capture),
        from_device_(device),
        from_capture_(capture) {}

  // False: the input has ended, or a frame was lost here.
  bool run_once() {
    const bool more = to_device();
    to_capture();
    const uint64_t lost =
        device_.counters().receive_failed.get() + device_.counters().receive_missed.get();
    if (lost != 0) (void)std::fprintf(stderr, "frames_relay: frames were lost\n");
    return more && lost == 0;
  }

 private:
  bool to_device() {
    from_capture_.buffer.clear();
    const bool more = capture_.receive(from_capture_.buffer, 0);
    const uint32_t count = from_capture_.buffer.count;
    if (!has_blocks_) {
      for (uint32_t i = 0; i < count; ++i) send_one(from_capture_.frame(i));
      return more;
    }
    // A frame is longer than one of the device's buffers, perhaps: it is sent from such a block.
    for (uint32_t i = 0; i < count;) {
      const MutableBytes block = device_.reply_memory(0);
      if (block.size == 0) continue;
      std::vector<io::TxFrame> frames;
      for (uint32_t used = 0; i < count; ++i) {
        const Bytes frame = from_capture_.frame(i);
        const auto size = static_cast<uint32_t>((frame.size + kGranule - 1) / kGranule * kGranule);
        if (used + size > block.size) break;
        std::memcpy(block.data + used, frame.data, frame.size);
        frames.push_back({{block.data + used, frame.size}, 0});
        used += size;
      }
      send_all(frames);
      device_.take_back(from_device_.buffer);
    }
    return more;
  }

  // A server that gets no CPU takes none for a while: the port drops the last ones then. REQUIRES:
  // no more than the port sends at a time.
  void send_all(const std::vector<io::TxFrame>& frames) {
    for (size_t at = 0; at < frames.size();) {
      const uint64_t before = device_.counters().sent.get();
      device_.send(0, frames.data() + at, static_cast<uint32_t>(frames.size() - at));
      at += device_.counters().sent.get() - before;
    }
  }

  // One that is too long is dropped and counted.
  void send_one(Bytes bytes) {
    const io::TxFrame frame = {bytes, 0};
    if (bytes.size <= kRoom) return send_all({frame});
    device_.send(0, &frame, 1);
  }

  void to_capture() {
    from_device_.buffer.clear();
    (void)device_.receive(from_device_.buffer, 1);
    std::vector<io::TxFrame> frames;
    for (uint32_t i = 0; i < from_device_.buffer.count; ++i) {
      frames.push_back({from_device_.frame(i), 0});
    }
    capture_.send(0, frames.data(), static_cast<uint32_t>(frames.size()));
    device_.take_back(from_device_.buffer);
  }

  static constexpr uint32_t kRoom = 2048;  // of a ring's buffers

  io::FramePort& device_;
  const bool has_blocks_;
  io::FramePort& capture_;
  Burst from_device_;
  Burst from_capture_;
};

std::string relay(const std::string& device, const std::string& in, const std::string& out) {
  io::DpdkSettings settings;
  constexpr std::string_view kRing = "ring:";
  settings.is_ring_peer = device.starts_with(kRing);
  (settings.is_ring_peer ? settings.ring : settings.device) =
      settings.is_ring_peer ? device.substr(kRing.size()) : device;
  settings.link_wait_ms = kLinkWaitMs;
  std::vector<std::unique_ptr<io::FramePort>> ports;
  std::string failure = io::open_dpdk_ports(settings, &ports);
  std::unique_ptr<io::FramePort> capture;
  if (failure.empty()) failure = io::PcapPort::open(in, out, &capture);
  if (!failure.empty()) return failure;
  (void)std::puts("ready");
  (void)std::fflush(stdout);
  Relay relay(*ports[0], !settings.is_ring_peer, *capture);
  while (relay.run_once()) {
  }
  return capture->failure();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    (void)std::fputs("usage: frames_relay DEVICE[,ARGUMENTS]|ring:NAME IN OUT\n", stderr);
    return 2;
  }
  const std::string failure = relay(argv[1], argv[2], argv[3]);
  if (!failure.empty()) (void)std::fprintf(stderr, "frames_relay: %s\n", failure.c_str());
  return failure.empty() ? 0 : 1;
}
