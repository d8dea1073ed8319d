// SPDX-License-Identifier: Apache-2.0
//
// Passes whose frames come, and whose replies leave, while they run: on the CPU engine, with a
// carrier that is late.
#include "offline/carrier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/cpu/cpu_engine.h"
#include "engine/testing/store_admin.h"
#include "offline/engine_backend.h"
#include "offline/study.h"
#include "store/host/store.h"

namespace warpcache::offline {
namespace {

constexpr uint32_t kLooks = 3;  // that it takes until something has moved

// Moves bytes when it is asked whether it is done for the third time.
class LateCarrier final : public Carrier {
 public:
  struct Counts {
    uint64_t brought = 0;
    uint64_t taken_away = 0;
    uint32_t at_a_time_max = 0;
  };
  LateCarrier(const uint8_t* wire_in, uint8_t* in, const uint8_t* out, uint8_t* wire_out,
              uint32_t places, Counts& counts)
      : wire_in_(wire_in),
        in_(in),
        out_(out),
        wire_out_(wire_out),
        moves_(places),
        counts_(counts) {}

  void bring(uint32_t place, uint64_t offset, uint64_t bytes) override {
    ++counts_.brought;
    begin(place, {in_ + offset, wire_in_ + offset, bytes, kLooks});
  }
  void take_away(uint32_t place, uint64_t offset, uint64_t bytes) override {
    ++counts_.taken_away;
    begin(place, {wire_out_ + offset, out_ + offset, bytes, kLooks});
  }
  bool is_done(uint32_t place) override {
    Move& move = moves_[place];
    if (--move.looks != 0) return false;
    std::memcpy(move.to, move.from, move.bytes);
    --under_way_;
    return true;
  }

 private:
  struct Move {
    uint8_t* to = nullptr;
    const uint8_t* from = nullptr;
    uint64_t bytes = 0;
    uint32_t looks = 0;
  };
  void begin(uint32_t place, const Move& move) {
    EXPECT_EQ(moves_[place].looks, 0u);
    moves_[place] = move;
    counts_.at_a_time_max = std::max(counts_.at_a_time_max, ++under_way_);
  }

  const uint8_t* wire_in_;
  uint8_t* in_;
  const uint8_t* out_;
  uint8_t* wire_out_;
  std::vector<Move> moves_;
  Counts& counts_;
  uint32_t under_way_ = 0;
};

class CarriedBackend final : public EngineBackend {
 public:
  CarriedBackend() : EngineBackend(BackendConfig{}) {
    store::StoreConfig config;
    config.memory_limit = uint64_t{64} << 20;
    EXPECT_EQ(store::Store::create(config, &store_), Status::kOk);
    admin_ = std::make_unique<engine::StoreAdmin>(*store_);
    engine_ = std::make_unique<engine::CpuEngine>(engine::CpuEngineConfig{}, *store_, *admin_);
    add(*engine_);
  }

  std::string describe() const override { return "carried"; }
  uint8_t* input(uint64_t bytes) override { return take(Use::kInput, bytes); }
  const LateCarrier::Counts& counts() const { return counts_; }

 private:
  uint8_t* take(Use use, uint64_t bytes) override {
    std::vector<uint8_t>& memory = memory_[static_cast<size_t>(use)];
    memory.assign(bytes + 16, 0);
    return aligned(memory);
  }
  // Bursts begin at multiples of 16 bytes.
  static uint8_t* aligned(std::vector<uint8_t>& memory) {
    return memory.data() + (16 - reinterpret_cast<uintptr_t>(memory.data()) % 16) % 16;
  }
  uint8_t* frames() override { return aligned(near_in_); }
  uint8_t* reply_space() override { return aligned(near_out_); }
  void begin_pass(uint64_t reply_bytes) override {
    near_in_.assign(memory_[static_cast<size_t>(Use::kInput)].size(), 0);
    near_out_.assign(reply_bytes + 16, 0);
  }
  void end_pass() override {}
  std::unique_ptr<Carrier> make_carrier(uint32_t places) override {
    return std::make_unique<LateCarrier>(aligned(memory_[static_cast<size_t>(Use::kInput)]),
                                         frames(), reply_space(), replies_, places, counts_);
  }

  std::unique_ptr<store::Store> store_;
  std::unique_ptr<engine::StoreAdmin> admin_;
  std::unique_ptr<engine::CpuEngine> engine_;
  std::vector<uint8_t> memory_[3];  // by Use
  std::vector<uint8_t> near_in_;
  std::vector<uint8_t> near_out_;
  LateCarrier::Counts counts_;
};

TEST(CarrierTest, FramesComeAndRepliesLeaveWhileAPassRuns) {
  StudyConfig config;
  config.workload.keys = 2000;
  config.requests = 10'000;
  config.batches = {100, 33};
  config.passes = 2;
  CarriedBackend backend;
  const StudyResult result = run_study(config, backend, [](const std::string&) {});
  ASSERT_EQ(result.rows.size(), 2u);
  for (const Row& row : result.rows) {
    EXPECT_EQ(row.wrong, 0u) << row.first_wrong;
    EXPECT_EQ(row.verified, config.requests);
  }
  const uint64_t batches = 2 * (100 + 304);
  EXPECT_EQ(backend.counts().brought, backend.counts().taken_away);
  EXPECT_GT(backend.counts().brought, batches);  // and those of the fill
  EXPECT_GT(backend.counts().at_a_time_max, 1u);
}

TEST(CarrierTest, BatchesAtARateCountFromWhenTheyCame) {
  StudyConfig config;
  config.workload.keys = 500;
  config.requests = 1'000;
  config.batches = {100};
  config.requests_per_s = 100'000;
  CarriedBackend backend;
  const StudyResult result = run_study(config, backend, [](const std::string&) {});
  EXPECT_EQ(result.rows[0].wrong, 0u) << result.rows[0].first_wrong;
  EXPECT_LE(result.rows[0].requests_per_s, 150'000);
}

}  // namespace
}  // namespace warpcache::offline
