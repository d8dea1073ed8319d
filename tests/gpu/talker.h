// SPDX-License-Identifier: Apache-2.0
//
// Sends commands to an engine as a worker does, and returns the answers of each connection.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace warpcache::gpu_tests {

struct Answer {
  std::string bytes;
  bool closed = false;
};

class Talker {
 public:
  // Of one batch.
  static constexpr uint32_t kInputBytes = 32 * 1024 * 1024;

  // `engine` outlives it. Takes its input memory.
  explicit Talker(engine::Engine& engine)
      : engine_(engine), input_(engine.input_memory(kInputBytes)) {}

  // Runs one batch, in which each connection sends its bytes: whole commands, at most 65,536 in
  // all. Runs further batches until the engine has answered everything. Throws std::runtime_error
  // if one does not end.
  std::vector<Answer> say_all(const std::vector<std::string>& connections);
  // One connection alone.
  std::string say(const std::string& connection) { return say_all({connection})[0].bytes; }

 private:
  void frame(const std::vector<std::string>& connections);
  void run();
  bool take(std::vector<Answer>& answers);
  void keep_rest();

  engine::Engine& engine_;
  uint8_t* input_;
  engine::Batch batch_;
  std::vector<uint32_t> connection_of_;  // by entry of the batch
};

}  // namespace warpcache::gpu_tests
