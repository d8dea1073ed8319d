// SPDX-License-Identifier: Apache-2.0
//
// What every engine must do (engine.h) is checked for each kind of rig.h: by engine_suite_test.cc
// with messages, by engine_frame_suite_test.cc with Ethernet frames. A new engine joins by a kind
// of its own. Tests of all commands are in tests/model, of all frames in tests/packets.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/patience.h"
#include "engine/testing/fake_admin.h"
#include "engine/testing/rig.h"
#include "engine/testing/test_batch.h"
#include "store/testing/store_fixture.h"

namespace warpcache::engine {

inline std::string set(const std::string& key, const std::string& value) {
  return "set " + key + " 0 0 " + std::to_string(value.size()) + "\r\n" + value + "\r\n";
}

inline std::string value_reply(const std::string& key, const std::string& value) {
  return "VALUE " + key + " 0 " + std::to_string(value.size()) + "\r\n" + value + "\r\nEND\r\n";
}

inline std::string times(uint32_t count, const std::string& text) {
  std::string all;
  for (uint32_t i = 0; i < count; ++i) all += text;
  return all;
}

inline std::string pattern(uint32_t seed, uint32_t size) {
  std::string bytes(size, ' ');
  for (uint32_t i = 0; i < size; ++i) bytes[i] = static_cast<char>('a' + (seed + i / 7) % 26);
  return bytes;
}

class EngineSuite : public testing::TestWithParam<RigKind> {
 protected:
  static constexpr uint32_t kInputBytes = 1 << 20;

  void SetUp() override {
    RigConfig config;
    config.store = store::quiet_config(uint64_t{64} << 20);
    config.engines = 2;
    config.gpu_blocks = 4;
    // Slow machines count as fast ones.
    config.admin_window = std::chrono::hours(1);
    std::string why;
    rig_ = make_rig(GetParam(), config, &why);
    if (rig_ == nullptr) GTEST_SKIP() << why;
    engine_ = &rig_->make_engine(admin_);
    for (uint32_t i = 0; i < engine_->batches(); ++i)
      inputs_.push_back(engine_->input_memory(kInputBytes));
  }
  void TearDown() override {
    if (rig_ != nullptr) rig_->rest();
  }

  Batch* wait() {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    Batch* done = nullptr;
    while (done == nullptr && std::chrono::steady_clock::now() < end) done = engine_->poll();
    return done;
  }

  void run(TestBatch& batch) {
    Batch* const submitted = batch.build(inputs_[0]);
    engine_->submit(submitted);
    ASSERT_EQ(wait(), submitted);
    ASSERT_EQ(engine_->poll(), nullptr);
  }

  void release(const TestBatch& batch) {
    for (const uint32_t pin : batch.pins()) engine_->release(pin);
  }

  std::string say(const std::string& text) {
    TestBatch batch;
    batch.add(text);
    run(batch);
    const std::string reply = batch.reply(0);
    release(batch);
    return reply;
  }

  // --- Bodies

  // Writes the body's bytes [from, to) to where the engine wants them.
  void receive(uint32_t id, const std::string& body, uint32_t from, uint32_t to) {
    while (from < to) {
      const MutableBytes window = engine_->reservation_window(id, from, 0);
      ASSERT_FALSE(window.empty());
      const auto size = static_cast<uint32_t>(std::min<size_t>(window.size, to - from));
      std::copy_n(body.data() + from, size, reinterpret_cast<char*>(window.data));
      from += size;
    }
  }

  // The reply to `command KEY` with the body of a reservation.
  std::string store_body(uint32_t id, const std::string& key, uint32_t size,
                         const std::string& command = "set") {
    TestBatch batch;
    batch.add(command + " " + key + " 0 0 1\r\nx\r\n");
    Batch* const built = batch.build(inputs_[0]);
    built->frames[0].body_size = size;
    batch.entry(0).reservation = id;
    engine_->submit(built);
    EXPECT_EQ(wait(), built);
    EXPECT_EQ(batch.entry(0).frames_done, 1u);
    return batch.reply(0);
  }

  uint64_t reserved() { return rig_->store().stats().reserved_segments; }

  FakeAdmin admin_;
  std::unique_ptr<Rig> rig_;
  Engine* engine_ = nullptr;
  std::vector<uint8_t*> inputs_;
};

inline const auto kAllEngines =
    testing::Values(RigKind::kCpu, RigKind::kCudaLaunch, RigKind::kCudaPersistent,
                    RigKind::kCudaHostValues, RigKind::kCudaEdge);
inline std::string name_of(const testing::TestParamInfo<RigKind>& info) {
  return rig_name(info.param);
}

}  // namespace warpcache::engine
