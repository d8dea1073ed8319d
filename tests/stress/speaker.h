// SPDX-License-Identifier: Apache-2.0
//
// For tests of one rule: an engine, and text sent to it as one connection.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/cpu/cpu_engine.h"
#include "engine/testing/store_admin.h"
#include "protocol/framing/frame.h"
#include "store/host/store.h"

namespace warpcache::stress {

class Speaker {
 public:
  explicit Speaker(store::Store& store);
  ~Speaker() { release_pins(); }

  // Sends one or several whole commands; returns the replies. Frames that the engine did not reach
  // are submitted again until all are answered. Releases pins before it returns.
  std::string say(const std::string& commands);

  // The same for several connections at once, in the same batches.
  std::vector<std::string> say_each(const std::vector<std::string>& commands);

  // The same for a body that is received through a reservation: "set <key> 0 0 <size>".
  std::string set_reserved(const std::string& key, const std::string& value);

  // The number of batches of the last say(), and the most reply bytes of one.
  uint32_t batches() const { return batches_; }
  uint64_t reply_bytes_max() const { return reply_bytes_max_; }
  engine::CpuEngine& engine() { return engine_; }

 private:
  void frame_connection(uint32_t connection, uint32_t first, uint32_t end);
  void submit_all(std::vector<std::string>* replies);
  bool keep_unfinished();
  void release_pins();

  engine::StoreAdmin admin_;
  engine::CpuEngine engine_;
  engine::Batch batch_;
  std::vector<protocol::FrameState> framing_;  // by connection
  std::vector<uint32_t> entry_connections_;    // of the batch's entries
  std::vector<uint32_t> pins_;
  uint32_t batches_ = 0;
  uint64_t reply_bytes_max_ = 0;
};

std::string set_command(const std::string& key, const std::string& value);

}  // namespace warpcache::stress
