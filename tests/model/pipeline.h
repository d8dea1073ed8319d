// SPDX-License-Identifier: Apache-2.0
//
// The complete pipeline in one thread, without sockets: worker, framing, engine, store.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/testing/rig.h"
#include "engine/testing/store_admin.h"
#include "model/cuts.h"
#include "model/server.h"
#include "worker/testing/fake_transport.h"
#include "worker/worker.h"

namespace warpcache::model {

struct PipelineConfig {
  uint32_t item_size_max = 1 << 20;
  // Seed for the division of streams into chunks; 0: no division.
  uint64_t cuts = 0;
  engine::RigKind engine = engine::RigKind::kCpu;
  // Large enough that no script causes evictions; small enough that chains start at 32 KB.
  uint64_t memory_bytes = uint64_t{64} << 20;
  uint32_t gpu_blocks = engine::RigConfig{}.gpu_blocks;
};

class Pipeline final : public Server {
 public:
  explicit Pipeline(const PipelineConfig& config);
  ~Pipeline() override;

  void send(int stream, const std::string& bytes) override;
  void send_datagram(const std::string& payload) override { transport_.add_datagram(payload); }
  bool run() override;
  std::string take_output(int stream) override;
  std::vector<std::string> take_datagrams() override;
  bool closed(int stream) override { return stream_at(stream).closed; }
  void advance(uint32_t seconds) override;
  std::optional<std::map<std::string, std::string>> contents() override;
  std::string finish() override;
  int64_t now() const override { return rig_->store().clock().now; }
  int64_t unix_start() const override { return rig_->store().clock().unix_start; }
  std::string version() const override;
  // On a GPU the streams of a batch run in any order.
  bool cas_follows_requests() const override { return follows_requests_; }
  uint64_t first_cas() const override { return uint64_t{1} << store::StoreRef::kCasIndexBits; }

 private:
  static std::unique_ptr<engine::Rig> make_rig(const PipelineConfig& config);
  worker::FakeTransport::Stream& stream_at(int stream) { return *streams_.at(stream); }

  std::unique_ptr<engine::Rig> rig_;
  engine::StoreAdmin admin_;
  worker::FakeTransport transport_;
  worker::Worker worker_;
  std::map<int, worker::FakeTransport::Stream*> streams_;
  std::vector<worker::FakeTransport::Stream*> all_streams_;
  size_t datagrams_taken_ = 0;
  Cuts cuts_;
  bool follows_requests_;
};

}  // namespace warpcache::model
