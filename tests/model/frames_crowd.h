// SPDX-License-Identifier: Apache-2.0
//
// Plays many scripts of datagrams at the same time against a server process, each request in an
// Ethernet frame. A player has one request under way, since frames have no order on a GPU; each has
// keys and a model of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/crowd.h"
#include "model/frame_client.h"

namespace warpcache::model {

struct FramesConfig {
  std::string program;               // warpcached, with `debugtime`
  std::vector<std::string> options;  // in addition to those of frames
  FrameLink link = FrameLink::kMemif;
  uint32_t players = 128;
  uint32_t rounds = 200;
  uint32_t messages_max = 4;  // of a player in a round
  uint64_t seed = 1;          // the same seed plays the same crowd
};

// A server and its client. Crowds are played one after the other.
class FramesCrowd {
 public:
  // Throws std::runtime_error if the server does not start or has no such port.
  explicit FramesCrowd(const FramesConfig& config);
  FramesCrowd(const FramesCrowd&) = delete;
  FramesCrowd& operator=(const FramesCrowd&) = delete;
  ~FramesCrowd();

  // Ends this process, and the server with it. DPDK's memif may end a process with an error when
  // its other side goes first.
  [[noreturn]] void exit(int status);

  // Plays a crowd with keys of its own. `broken` says if the server has ended, or does not answer.
  CrowdResult play(uint64_t seed);

 private:
  class Folder;
  class Link;
  class Member;

  FramesConfig config_;
  std::unique_ptr<Link> link_;
};

}  // namespace warpcache::model
