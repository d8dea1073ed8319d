// SPDX-License-Identifier: Apache-2.0
//
// The CPU engine (src/engine) behind frames, to compare the core with. CAS ids, which a server
// chooses, are compared by their meaning: each side is asked with its own id for an item.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datagrams.h"
#include "engine/testing/rig.h"
#include "engine/testing/store_admin.h"
#include "io/frames/frame_port.h"
#include "worker/frame_worker.h"

namespace warpcache::rtl {

// A port that forgets frames when they have been received.
class QueuePort final : public io::FramePort {
 public:
  void add(const std::string& frame) { input_.push_back(frame); }
  std::vector<std::string> take() { return std::exchange(sent_, {}); }
  bool receive(io::FrameBuffer& buffer, int) override {
    while (buffer.has_space() && !input_.empty()) {
      const std::string& frame = input_.front();
      mem_copy(buffer.next(), frame.data(), frame.size());
      buffer.add(static_cast<uint32_t>(frame.size()), 0);
      input_.pop_front();
    }
    return true;
  }
  void send(uint32_t /*burst*/, const io::TxFrame* frames, uint32_t count) override {
    for (uint32_t i = 0; i < count; ++i) {
      sent_.emplace_back(reinterpret_cast<const char*>(frames[i].bytes.data), frames[i].bytes.size);
    }
  }
  void pass_on(const MutableBytes*, uint32_t) override {}
  void stop() override {}
  std::string describe() const override { return "queue"; }
  bool empty() const { return input_.empty(); }

 private:
  std::deque<std::string> input_;
  std::vector<std::string> sent_;
};

class Reference {
 public:
  Reference();
  // The replies to these frames.
  std::vector<std::string> run(const std::vector<std::string>& frames);
  void advance(uint32_t seconds) { rig_->store().set_clock(now() + seconds); }
  uint32_t now() { return rig_->store().clock().now; }
  uint32_t unix_start() { return static_cast<uint32_t>(rig_->store().clock().unix_start); }

 private:
  std::string why_;
  std::unique_ptr<engine::Rig> rig_;
  engine::StoreAdmin admin_;
  QueuePort port_;
  worker::FrameWorker loop_;
};

// Whether both sides have answered alike, `sent[i]` having request id i; the ids of items that
// replies show go to `cas`. Prints the first difference.
bool compare(const std::vector<Datagram>& sent, const std::vector<std::string>& want,
             const std::vector<std::string>& got, std::map<std::string, CasPair>& cas);

}  // namespace warpcache::rtl
