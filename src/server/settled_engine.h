// SPDX-License-Identifier: Apache-2.0
//
// An engine before which the NIC cache's accepted writes are taken over (--nic-cache-write=back).
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "engine/engine.h"
#include "nic_cache/nic_cache.h"

namespace warpcache::server {

class SettledEngine final : public engine::Engine {
 public:
  // `cache` outlives it.
  SettledEngine(std::unique_ptr<engine::Engine> engine, nic_cache::NicCache& cache)
      : engine_(std::move(engine)), cache_(cache) {}

  uint32_t batches() const override { return engine_->batches(); }
  uint8_t* input_memory(uint32_t bytes) override { return engine_->input_memory(bytes); }
  void attach_thread() override { engine_->attach_thread(); }
  void submit(engine::Batch* batch) override {
    cache_.settle();
    engine_->submit(batch);
  }
  engine::Batch* poll() override { return engine_->poll(); }
  void release(uint32_t pin) override { engine_->release(pin); }
  Status reserve(uint8_t key_size, uint32_t body_size, uint32_t* id) override {
    return engine_->reserve(key_size, body_size, id);
  }
  MutableBytes reservation_window(uint32_t id, uint32_t received, uint32_t after) override {
    return engine_->reservation_window(id, received, after);
  }
  void abandon(uint32_t id) override { engine_->abandon(id); }
  std::string open_packets(const engine::PacketSettings& settings) override {
    return engine_->open_packets(settings);
  }
  uint32_t packet_bursts() const override { return engine_->packet_bursts(); }
  uint32_t packets_per_burst() const override { return engine_->packets_per_burst(); }
  uint8_t* packet_memory(uint64_t bytes) override { return engine_->packet_memory(bytes); }
  std::string use_packet_memory(MutableBytes memory) override {
    return engine_->use_packet_memory(memory);
  }
  void submit_packets(net::PacketBurst* burst) override {
    cache_.settle();
    engine_->submit_packets(burst);
  }
  net::PacketBurst* poll_packets() override { return engine_->poll_packets(); }
  void release_device() override { engine_->release_device(); }

 private:
  std::unique_ptr<engine::Engine> engine_;
  nic_cache::NicCache& cache_;
};

}  // namespace warpcache::server
