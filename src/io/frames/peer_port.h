// SPDX-License-Identifier: Apache-2.0
//
// A port whose peer, another process on this machine, writes frames to memory that both share and
// rings the GPU's doorbell itself: no thread of the server is between a request and its kernel. The
// peer may stand for a network device that writes by DMA. docs/edge.md describes the file byte by
// byte; the doorbells lie in a second file, which is the engine's.
//
// What a peer writes to the port's own file is checked like what a client sends. The engine's file
// also has jobs with addresses of the GPU's memory: who may write that one is trusted.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "io/frames/frame_port.h"
#include "io/frames/peer_layout.h"
#include "io/unique_fd.h"

namespace warpcache::io {

class PeerPort final : public FramePort {
 public:
  // Makes the file, or takes the one that a killed server has left. `slot_bytes`: of the longest
  // frame, a multiple of 16. Returns the error as text, or "".
  static std::string open(const std::string& path, uint32_t slot_bytes,
                          std::unique_ptr<FramePort>* port);
  ~PeerPort() override;

  MutableBytes memory() const override;
  MutableBytes reply_memory(uint32_t burst) override;
  bool receive(FrameBuffer& buffer, int timeout_ms) override;
  void wait_for_ring(const FrameBuffer& buffer, const net::PeerDoorbell& bell) override;
  uint32_t peer_frames(const FrameBuffer& buffer) override;
  void rest() override;
  void send(uint32_t burst, const TxFrame* frames, uint32_t count) override;
  void pass_on(const MutableBytes*, uint32_t) override {}
  void take_back(const FrameBuffer& buffer) override;
  void stop() override { stopped_.store(true); }
  std::string failure() const override { return failure_; }
  std::string describe() const override { return "peer at " + path_; }

 private:
  PeerPort(std::string path, uint32_t slot_bytes)
      : path_(std::move(path)), slot_bytes_(slot_bytes) {}
  std::string map();
  uint64_t file_bytes() const { return peer::file_bytes(slot_bytes_); }
  peer::Control& control(uint32_t area) const;
  uint8_t* slots(uint32_t area) const;
  peer::Reply* replies(uint32_t area) const;
  uint8_t* reply_arena(uint32_t area) const;

  std::string path_;
  uint32_t slot_bytes_;
  UniqueFd file_;
  uint8_t* data_ = nullptr;
  std::atomic<bool> stopped_{false};
  std::string failure_;
  // Of a burst of the worker, by its number: which area of the file it uses, its doorbell.
  std::array<uint32_t, kFrameBurstsMax> area_{};
  std::array<net::PeerDoorbell, kFrameBurstsMax> bells_{};
  std::array<uint32_t, kFrameBurstsMax> replies_{};  // to it, so far
  std::array<bool, peer::kBursts> in_use_{};         // by area
  uint32_t rests_ = 0;                               // since something has happened
};

}  // namespace warpcache::io
