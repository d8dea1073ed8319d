// SPDX-License-Identifier: Apache-2.0
//
// A transport without a network: Ethernet frames come from memory, and the frames that answer them
// are kept. Everything between is what happens to a frame from a card: headers are read and
// verified, replies cut into datagrams, headers and checksums written. What is no request is
// dropped and counted.
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
  uint32_t burst_frames_max = 64;  // of one turn; fewer where the arena is full
};

class ReplayTransport final : public Transport {
 public:
  // `input` outlives the transport. Frames may be added to it between turns.
  ReplayTransport(const ReplayConfig& config, const FrameList& input);

  void attach(SessionObserver& observer, PinReleaser& releaser) override;
  // Takes the next burst; never waits. Returns false when there are no more frames for now.
  bool receive(InputArena& arena, std::vector<RxChunk>& chunks, int timeout_ms) override;
  void complete(const RxChunk& chunk, const RxNext& next, const TxSpan* spans,
                uint32_t span_count) override;
  void flush() override;
  void wake() override {}

  // The frames of all turns that have ended: in the order of the requests, the datagrams of each
  // in theirs, with the time of the request.
  const FrameList& replies() const { return replies_; }

  // Frames with this verdict. Those that were kRequest may still have been dropped for their
  // memcached header, see TransportCounters::datagrams_malformed.
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
  std::vector<Request> requests_;  // of the turn; a chunk's handle is its index
  FrameList turn_replies_;         // in the order of complete()
  std::vector<uint32_t> turn_handles_;
  std::vector<uint8_t> reply_;
  FrameList replies_;
  std::array<uint64_t, net::kPacketVerdicts> verdicts_{};
  TransportCounters counters_;
};

}  // namespace warpcache::io
