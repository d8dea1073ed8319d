// SPDX-License-Identifier: Apache-2.0
//
// The other side of --frames=peer (peer_layout.h): sends frames by writing them to the slots of a
// burst and ringing the GPU's doorbell, and receives the replies where the GPU has written them.
// One client serves a file at a time.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "io/frames/frame_port.h"
#include "io/frames/peer_layout.h"

namespace warpcache::io {

class PeerClient final : public FramePort {
 public:
  // Takes the files of a server that runs. Replies that an earlier client left are dropped. Returns
  // the error as text, or "".
  static std::string open(const std::string& path, std::unique_ptr<FramePort>* port);
  ~PeerClient() override;

  MutableBytes memory() const override { return {data_, bytes_}; }
  bool receive(FrameBuffer& buffer, int timeout_ms) override;
  void send(uint32_t burst, const TxFrame* frames, uint32_t count) override;
  void pass_on(const MutableBytes*, uint32_t) override {}
  void take_back(const FrameBuffer& buffer) override;
  void stop() override { stopped_.store(true); }
  std::string describe() const override { return "peer of the server at " + path_; }

 private:
  explicit PeerClient(std::string path) : path_(std::move(path)) {}
  std::string map();
  peer::Control& control(uint32_t burst) const;
  bool is_rung(uint32_t burst) const;
  bool take_replies(FrameBuffer& buffer);
  int ready_burst() const;

  std::string path_;
  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
  uint8_t* doorbells_ = nullptr;
  uint64_t doorbells_bytes_ = 0;
  uint32_t slot_bytes_ = 0;
  std::atomic<bool> stopped_{false};
  std::vector<uint32_t> read_;  // bursts whose replies the caller reads
};

}  // namespace warpcache::io
