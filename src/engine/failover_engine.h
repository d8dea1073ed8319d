// SPDX-License-Identifier: Apache-2.0
//
// An engine that goes on as another one when its device has failed. The batch that was under way is
// run again by the spare, whose store is empty: what clients are then told is true of that store,
// and nothing of the failed device's answers has been sent. One instance a worker thread.
// REQUIRES of the primary: a batch during which its device fails comes back from poll(), and leaves
// its reservations as they are.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "request/counters.h"

namespace warpcache::engine {

class FailoverEngine final : public Engine {
 public:
  struct Hooks {
    // Whether the primary engine's device has failed. Asked after each batch.
    std::function<bool()> failed;
    // The engine to go on with; its counters are in `counters`. Null: there is none, and all
    // connections are closed.
    std::function<std::unique_ptr<Engine>(const request::Counters** counters)> make_spare;
  };

  // `counters` are the primary's; what the spare counts is added to them.
  FailoverEngine(std::unique_ptr<Engine> primary, request::Counters& counters, Hooks hooks)
      : primary_(std::move(primary)), counters_(counters), hooks_(std::move(hooks)) {
    authenticated_.reserve(kBatchEntriesMax);
    reservations_.reserve(kBatchEntriesMax);
  }

  uint8_t* input_memory(uint32_t bytes) override { return primary_->input_memory(bytes); }
  void attach_thread() override { primary_->attach_thread(); }
  void submit(Batch* batch) override;
  Batch* poll() override;
  void release(uint32_t pin) override;
  Status reserve(uint8_t key_size, uint32_t body_size, uint32_t* id) override;
  MutableBytes reservation_window(uint32_t id, uint32_t offset) override;
  void abandon(uint32_t id) override;
  void release_device() override { current().release_device(); }

 private:
  // Marks pins and reservations of the spare.
  static constexpr uint32_t kOfSpare = 1u << 31;

  Engine& current() { return spare_ != nullptr ? *spare_ : *primary_; }
  bool is_spares(uint32_t id) const { return (id & kOfSpare) != 0; }
  Engine& owner(uint32_t id) { return is_spares(id) ? *spare_ : *primary_; }
  void fail_over();
  void resubmit(Batch& batch);
  uint32_t move_body(const Batch& batch, const BatchEntry& entry);
  void close_all(Batch& batch);
  void submit_to_spare(Batch& batch);
  void finish_by_spare(Batch& batch);

  std::unique_ptr<Engine> primary_;
  request::Counters& counters_;
  Hooks hooks_;
  std::unique_ptr<Engine> spare_;
  const request::Counters* spare_counters_ = nullptr;
  request::Counters counted_;  // of the spare's, what has been added
  bool failed_over_ = false;
  Batch* closed_ = nullptr;                          // a batch that there is no engine for
  std::vector<uint8_t> authenticated_;               // by entry, as submitted
  std::vector<uint32_t> reservations_;               // likewise
  std::unordered_map<uint32_t, uint8_t> key_sizes_;  // by reservation of the primary's
};

}  // namespace warpcache::engine
