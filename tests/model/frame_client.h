// SPDX-License-Identifier: Apache-2.0
//
// The client's side of a server's port of frames: memory that both share (memif), or captures in
// named pipes.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace warpcache::model {

enum class FrameLink : uint8_t { kMemif, kPipes };

class FrameClient {
 public:
  virtual ~FrameClient() = default;
  // Sends frames in their order.
  virtual void send(const std::vector<std::string>& frames) = 0;
  // Appends frames that have come. Waits at most timeout_ms for one.
  virtual void receive(std::vector<std::string>& frames, int timeout_ms) = 0;
};

// --frames for a server. The link's files are in `folder`; those of pipes are made here.
std::string frames_option(FrameLink link, const std::string& folder);

// Connects to the server, which has that option and runs. Throws std::runtime_error.
std::unique_ptr<FrameClient> connect_frames(FrameLink link, const std::string& folder);

}  // namespace warpcache::model
