// SPDX-License-Identifier: Apache-2.0
//
// An AmTransport on a port in memory, for tests, which play the worker.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "io/ucx/am_transport.h"
#include "io/ucx/testing/memory_am_port.h"
#include "io/wake_event.h"

namespace warpcache::io {

// Plays the worker: sees chunks, completes them as a test says.
class AmTransportTest : public testing::Test, private SessionObserver, private PinReleaser {
 protected:
  explicit AmTransportTest(bool reaches_device = false, uint32_t idle_timeout_s = 0,
                           uint32_t stall_timeout_s = 0)
      : port_(reaches_device), idle_timeout_s_(idle_timeout_s), stall_timeout_s_(stall_timeout_s) {
    for (RxBurst& burst : bursts_) burst.arena = {new uint8_t[kArena], kArena, 0};
    transport_.attach(*this, *this);
  }
  ~AmTransportTest() override {
    for (RxBurst& burst : bursts_) delete[] burst.arena.data;
  }

  void open(uint32_t endpoint = 0) {
    port_.open(endpoint);
    port_.message(endpoint, {.handler = AmHandler::kHello}, "");
    EXPECT_THAT(receive(), testing::IsEmpty());
    port_.sent.clear();
  }
  void bytes(std::string data) { port_.message(0, {.sequence = next_++}, std::move(data)); }
  void announce(std::string* data) { port_.announce(0, {.sequence = next_++}, data); }

  // So much time passes in which nothing comes and the thread looks every 10 ms, or until `done`.
  // Returns how much it was.
  uint64_t pass(
      uint64_t ms, const std::function<bool()>& done = [] { return false; }) {
    const uint64_t begun = now_ms_;
    while (now_ms_ < begun + ms && !done()) {
      now_ms_ += 10;
      EXPECT_THAT(receive(), testing::IsEmpty());
    }
    return now_ms_ - begun;
  }
  // For a minute the thread does not get to look.
  void hold_up() { now_ms_ += 60'000; }

  // The texts of the chunks that come.
  std::vector<std::string> receive(uint32_t burst = 0) {
    RxBurst& into = bursts_[burst];
    into.arena.used = 0;
    into.chunks.clear();
    (void)transport_.receive(into);
    std::vector<std::string> texts;
    for (const RxChunk& chunk : into.chunks) {
      texts.emplace_back(reinterpret_cast<const char*>(into.arena.data + chunk.offset), chunk.size);
    }
    return texts;
  }
  void complete(const RxNext& next, const std::vector<ReplySpan>& spans = {}, uint32_t burst = 0) {
    ASSERT_EQ(bursts_[burst].chunks.size(), 1u);
    const Completion completion = {&bursts_[burst].chunks[0], &next, spans.data(),
                                   static_cast<uint32_t>(spans.size())};
    transport_.complete(bursts_[burst], &completion, 1);
  }
  static ReplySpan span(const std::string& text, uint32_t pin = 0) {
    return {reinterpret_cast<const uint8_t*>(text.data()), static_cast<uint32_t>(text.size()), pin};
  }
  std::vector<std::string> sent_texts() const {
    std::vector<std::string> texts;
    for (const auto& message : port_.sent) texts.push_back(message.data);
    return texts;
  }
  const RxChunk& chunk(uint32_t burst = 0) const { return bursts_[burst].chunks.at(0); }

  void opened(SessionStorage& session, int) override {
    ++sessions_;
    opened_.push_back(&session);
  }
  void closed(SessionStorage&, CloseReason) override { --sessions_; }
  bool holds_body(const SessionStorage&) const override { return holds_body_; }
  void cancel_body(SessionStorage& session) override {
    const auto at = std::find(opened_.begin(), opened_.end(), &session);
    cancelled_.push_back(static_cast<uint32_t>(at - opened_.begin()));
  }
  MutableBytes body_window(const SessionStorage&, uint32_t after) override {
    for (const MutableBytes& window : windows_) {
      if (after < window.size) return {window.data + after, window.size - after};
      after -= static_cast<uint32_t>(window.size);
    }
    return {};
  }
  MutableBytes device_window(const SessionStorage&, uint32_t size) override {
    ++device_windows_;
    return device_.size < size ? MutableBytes{} : MutableBytes{device_.data, size};
  }
  void release(uint32_t pin) override { released_.push_back(pin); }

  static constexpr uint32_t kArena = 4 * kChunkBytesMax;
  MemoryAmPort port_;
  WakeEvent freed_;
  ConnectionBudget budget_{8, freed_};
  static constexpr uint64_t kClientMemory = 12'345'678;
  const uint32_t idle_timeout_s_;
  const uint32_t stall_timeout_s_;
  uint64_t now_ms_ = 1'000'000;
  AmTransport transport_{{.idle_timeout_s = idle_timeout_s_,
                          .stall_timeout_s = stall_timeout_s_,
                          .client_memory_max = kClientMemory,
                          .clock_ms = [this] { return now_ms_; }},
                         port_,
                         budget_};
  RxBurst bursts_[2];
  std::vector<MutableBytes> windows_;
  MutableBytes device_;
  int device_windows_ = 0;  // that were asked for
  std::vector<uint32_t> released_;
  int sessions_ = 0;
  bool holds_body_ = false;
  std::vector<const SessionStorage*> opened_;  // in this order
  std::vector<uint32_t> cancelled_;            // bodies: which of these sessions
  uint32_t next_ = 1;
};

}  // namespace warpcache::io
