// SPDX-License-Identifier: Apache-2.0
//
// Runs frames whose headers the CPU reads, on any engine; and set-up commands that are not frames.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "io/frames/replay_transport.h"
#include "worker/testing/fake_transport.h"
#include "worker/worker.h"

namespace warpcache::packets {

class HostPath {
 public:
  // `engine` runs the frames, `setup_engine` the commands: an engine has one worker.
  HostPath(uint16_t udp_port, engine::Engine& engine, engine::Engine& setup_engine)
      : replay_({udp_port}, input_),
        worker_({}, replay_, engine),
        setup_worker_({}, setup_, setup_engine),
        stream_(setup_.open()) {}
  ~HostPath() { setup_.close(stream_); }
  HostPath(const HostPath&) = delete;
  HostPath& operator=(const HostPath&) = delete;

  // See Backend.
  std::string set_up(const std::string& commands) {
    constexpr int kIterationsMax = 1000;
    stream_.input += commands;
    for (int i = 0; i < kIterationsMax && !setup_.idle(); ++i) (void)setup_worker_.run_once(0);
    return stream_.output;
  }
  void add(Bytes frame) { input_.add(frame); }
  // Appends the replies since the last call.
  void run(std::vector<std::string>& replies) {
    worker_.run();
    for (; seen_ < replay_.replies().size(); ++seen_) {
      const Bytes frame = replay_.replies()[seen_];
      replies.emplace_back(reinterpret_cast<const char*>(frame.data), frame.size);
    }
  }
  uint64_t malformed() const { return replay_.counters().datagrams_malformed.get(); }
  uint64_t count(net::PacketVerdict verdict) const { return replay_.frame_count(verdict); }

 private:
  io::FrameList input_;
  io::ReplayTransport replay_;
  worker::Worker worker_;
  worker::FakeTransport setup_;
  worker::Worker setup_worker_;
  worker::FakeTransport::Stream& stream_;
  size_t seen_ = 0;
};

}  // namespace warpcache::packets
