// SPDX-License-Identifier: Apache-2.0
//
// A transport without a network: it takes Ethernet frames from memory and keeps the reply frames.
// It treats a frame as one from a network interface: reads and verifies headers, divides replies
// into datagrams, writes headers and checksums. Frames that are not requests are dropped and
// counted.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "io/counters.h"
#include "io/frames/frame_list.h"
#include "io/transport.h"
#include "net/packet_types.h"

namespace warpcache::io {

class DatagramCutter;

struct ReplayConfig {
  uint16_t udp_port = 11211;
  uint32_t burst_frames_max = 64;  // frames of one receive(); fewer if the arena is full
};

class ReplayTransport final : public Transport {
 public:
  // `input` outlives the transport. Frames may be added to it between iterations.
  ReplayTransport(const ReplayConfig& config, const FrameList& input);

  void attach(SessionObserver& observer, PinReleaser& releaser) override;
  // Takes the next burst; never waits. Returns false when no frame is left.
  bool receive(InputArena& arena, std::vector<RxChunk>& chunks, int timeout_ms) override;
  void complete(const RxChunk& chunk, const RxNext& next, const TxSpan* spans,
                uint32_t span_count) override;
  void flush() override;
  void wake() override {}

  // The reply frames of all finished iterations, in the order of the requests and of the datagrams
  // of each reply, with the time of the request.
  const FrameList& replies() const { return replies_; }

  // The number of frames with this verdict. Some with kRequest may have been dropped because of
  // their memcached header: TransportCounters::datagrams_malformed.
  uint64_t frame_count(net::PacketVerdict verdict) const {
    return verdicts_[static_cast<size_t>(verdict)];
  }
  const TransportCounters& counters() const { return counters_; }

 private:
  struct Request {
    size_t frame;  // in input_
    net::Packet packet;
    uint16_t id;
  };

  void take_frame(size_t index, InputArena& arena, std::vector<RxChunk>& chunks);
  void add_reply(const Request& request, DatagramCutter& cutter);

  ReplayConfig config_;
  const FrameList& input_;
  size_t next_frame_ = 0;
  PinReleaser* releaser_ = nullptr;
  std::vector<Request> requests_;  // of the iteration; a chunk's handle is the index
  FrameList new_replies_;          // in the order of complete()
  std::vector<uint32_t> new_handles_;
  std::vector<uint8_t> reply_;
  FrameList replies_;
  std::array<uint64_t, net::kPacketVerdicts> verdicts_{};
  TransportCounters counters_;
};

}  // namespace warpcache::io
