// SPDX-License-Identifier: Apache-2.0
//
// The NIC cache as a front: its program runs in the kernel on frames, without an interface.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "nic_cache/testing/loaded_program.h"
#include "stress/front.h"

namespace warpcache::stress {

class NicFront final : public Front {
 public:
  ~NicFront() override { stop(); }

  // "" or why the program cannot be loaded here.
  std::string load();

  store::CopyHooks hooks() override;
  void start(store::Store& store) override;
  void stop() override;
  std::string ask(const std::string& command) override;

  uint64_t answered() const { return answered_; }
  nic_cache::CopyCounts counts() { return program_->table().counts(); }

 private:
  void copy(Bytes key);

  std::unique_ptr<nic_cache::LoadedProgram> program_;  // a new one for each run
  store::Store* store_ = nullptr;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> answered_{0};
};

}  // namespace warpcache::stress
