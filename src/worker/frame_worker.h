// SPDX-License-Identifier: Apache-2.0
//
// The loop that joins a port of Ethernet frames and an engine. It hands over bursts of whatever has
// arrived, with as many under way as the engine finds useful, so that receiving, running and
// sending overlap. Datagrams are independent, so bursts need no order between them.
//
// The thread reads no payload: only descriptors, and the request's headers where a reply is so long
// that its sender must be known (io/udp_guard.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "io/frames/frame_port.h"
#include "io/udp_guard.h"

namespace warpcache::worker {

struct FrameWorkerConfig {
  engine::PacketSettings packets;
  uint32_t burst_packets_max = 1024;  // frames
  uint32_t burst_input_bytes = 2 * 1024 * 1024;
  // Of the reply arena; what does not fit is dropped.
  uint32_t burst_reply_bytes = 8 * 1024 * 1024;
};

class FrameWorker {
 public:
  // `port` and `engine` outlive the worker.
  FrameWorker(const FrameWorkerConfig& config, io::UdpGuard guard, io::FramePort& port,
              engine::Engine& engine);
  FrameWorker(const FrameWorker&) = delete;
  FrameWorker& operator=(const FrameWorker&) = delete;

  // Prepares the engine and takes the memory for the bursts, on the worker's thread or before it
  // starts. Returns the error as text, or "".
  [[nodiscard]] std::string open();

  // One iteration: receives a burst if one is free, and sends the replies of a finished one. Waits
  // at most timeout_ms for frames if none is under way. False: the port has ended and all replies
  // are sent.
  bool run_once(int timeout_ms);

  // Iterates until the port has ended. Sends everything received before.
  void run();

 private:
  struct Burst {
    net::PacketBurst packets;
    io::FrameBuffer buffer;
    MutableBytes replies;       // where they go if the port has no memory for them
    MutableBytes seen_replies;  // where they went, for the CPU
    std::vector<uint64_t> times_ns;
  };

  void begin(Burst& burst);
  void finish(Burst& burst);
  bool send_beside(const Burst& burst, uint32_t begin, uint32_t count);
  void send_each(const Burst& burst, uint32_t begin, uint32_t count);
  void send_replies(const Burst& burst);
  bool add_short_reply(const Burst& burst, uint32_t packet);
  void finish_packet(const Burst& burst, uint32_t packet);
  void add_reply(const Burst& burst, uint32_t packet);
  bool permits(Bytes request, const net::ReplyFrames& reply) const;

  FrameWorkerConfig config_;
  io::UdpGuard guard_;
  io::FramePort& port_;
  engine::Engine& engine_;
  uint8_t* on_gpu_ = nullptr;  // the port's memory, where that is the GPU's
  std::vector<std::unique_ptr<Burst>> bursts_;
  std::vector<Burst*> free_;
  uint32_t under_way_ = 0;
  // Bytes of a reply frame that answers a request of any source and size.
  uint32_t short_reply_max_ = 0;
  std::vector<io::TxFrame> replies_;
  std::vector<MutableBytes> passed_on_;
};

}  // namespace warpcache::worker
