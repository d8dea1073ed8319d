// SPDX-License-Identifier: Apache-2.0
//
// The NIC cache as a front: its program runs in the kernel on frames, without an interface.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "nic_cache/store_writer.h"
#include "nic_cache/testing/loaded_program.h"
#include "nic_cache/write_back.h"
#include "stress/front.h"

namespace warpcache::stress {

class NicFront final : public Front {
 public:
  // `write_back`: as --nic-cache-write=back, else as forward and through.
  explicit NicFront(bool write_back) : write_back_on_(write_back) {}
  ~NicFront() override { stop(); }

  // "" or why the program cannot be loaded here.
  std::string load();

  store::CopyHooks hooks() override;
  void start(engine::Rig& rig) override;
  void stop() override;
  bool writes() const override { return write_back_on_; }
  void settle() override;
  std::string ask(const std::string& command) override;

  uint64_t answered() const override { return answered_; }
  // Of them: sets.
  uint64_t written() const { return written_; }
  nic_cache::CopyCounts counts() { return program_->table().counts(); }

 private:
  void copy(Bytes key);

  const bool write_back_on_;
  std::unique_ptr<nic_cache::LoadedProgram> program_;  // a new one for each run
  bool used_ = false;                                  // by a run
  std::unique_ptr<nic_cache::WriteBack> write_back_;
  std::optional<nic_cache::StoreWriter> writer_;
  engine::Rig* rig_ = nullptr;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> answered_{0};
  std::atomic<uint64_t> written_{0};
};

}  // namespace warpcache::stress
