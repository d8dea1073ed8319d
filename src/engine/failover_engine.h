// SPDX-License-Identifier: Apache-2.0
//
// An engine that continues as another one, the spare, after its device has failed. The spare runs
// the batch again from its start; its store is empty, and what it answers is true of that store. No
// reply of the failed device to that batch has been sent. Large bodies that were received for the
// device are lost with it: their sets are refused. One instance for each worker thread. REQUIRES of
// the primary: a batch during which its device fails comes back from poll(); reservations of an
// entry none of whose frames the spare runs stay the caller's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "request/counters.h"

namespace warpcache::engine {

class FailoverEngine final : public Engine {
 public:
  struct Hooks {
    // The primary engine's device has failed. Asked after each batch.
    std::function<bool()> failed;
    // Makes the spare; its counters are in `counters`. Null: there is none, and all connections are
    // closed.
    std::function<std::unique_ptr<Engine>(const request::Counters** counters)> make_spare;
  };

  // `counters` are the primary's; the counts of the spare are added to them.
  FailoverEngine(std::unique_ptr<Engine> primary, request::Counters& counters, Hooks hooks)
      : primary_(std::move(primary)), counters_(counters), hooks_(std::move(hooks)) {
    under_way_.resize(primary_->batches());
    for (UnderWay& one : under_way_) one.authenticated.reserve(kBatchEntriesMax);
    reservations_.reserve(kBatchEntriesMax);
    done_.reserve(primary_->batches());
  }

  uint32_t batches() const override { return primary_->batches(); }

  uint8_t* input_memory(uint32_t bytes) override { return primary_->input_memory(bytes); }
  void attach_thread() override { primary_->attach_thread(); }
  void submit(Batch* batch) override;
  Batch* poll() override;
  void release(uint32_t pin) override;
  Status reserve(uint8_t key_size, uint32_t body_size, uint32_t* id) override;
  MutableBytes reservation_window(uint32_t id, uint32_t received, uint32_t after) override;
  MutableBytes device_window(uint32_t id, uint32_t received, uint32_t size) override;
  void device_bytes_came(uint32_t id, uint32_t received, uint32_t size) override;
  void abandon(uint32_t id) override;
  void release_device() override { current().release_device(); }
  std::string open_packets(const PacketSettings& settings) override;
  uint32_t packet_bursts() const override { return primary_->packet_bursts(); }
  uint32_t packets_per_burst() const override { return primary_->packets_per_burst(); }
  uint8_t* packet_memory(uint64_t bytes) override { return primary_->packet_memory(bytes); }
  std::string use_packet_memory(MutableBytes memory) override {
    return primary_->use_packet_memory(memory);
  }
  void submit_packets(net::PacketBurst* burst) override;
  net::PacketBurst* poll_packets() override;

 private:
  // Marks pins and reservations of the spare.
  static constexpr uint32_t kOfSpare = 1u << 31;

  // A batch that the primary has.
  struct UnderWay {
    Batch* batch = nullptr;
    std::vector<uint8_t> authenticated;  // by entry, as submitted
  };

  Engine& current() { return spare_ != nullptr ? *spare_ : *primary_; }
  bool is_spares(uint32_t id) const { return (id & kOfSpare) != 0; }
  Engine& owner(uint32_t id) { return is_spares(id) ? *spare_ : *primary_; }
  void fail_over();
  void restore(Batch& batch, const UnderWay& as_submitted);
  void run_by_spare(Batch& batch);
  void close_all(Batch& batch);
  void submit_to_spare(Batch& batch);
  void finish_by_spare(Batch& batch);
  void take_spares_counts();

  std::unique_ptr<Engine> primary_;
  request::Counters& counters_;
  Hooks hooks_;
  std::unique_ptr<Engine> spare_;
  const request::Counters* spare_counters_ = nullptr;
  request::Counters counted_;  // of the spare: already added to the primary's
  bool failed_over_ = false;
  std::vector<UnderWay> under_way_;
  std::vector<Batch*> done_;            // by the spare, or closed
  std::vector<uint32_t> reservations_;  // by entry, as submitted to the spare
  PacketSettings packet_settings_;
  bool takes_packets_ = false;
  std::deque<net::PacketBurst*> bursts_;  // under way, with the primary or to be run by the spare
};

}  // namespace warpcache::engine
