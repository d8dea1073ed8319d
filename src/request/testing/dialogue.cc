// SPDX-License-Identifier: Apache-2.0
#include "request/testing/dialogue.h"

#include <gtest/gtest.h>

#include <array>

namespace warpcache::request {

namespace {

constexpr uint32_t kReplyBytesMax = 4 * 1024 * 1024;
constexpr uint32_t kFramesMax = 64;

}  // namespace

Dialogue::Dialogue(store::StoreConfig config) {
  config.maintenance_thread = false;
  config.manual_clock = true;
  EXPECT_EQ(store::Store::create(config, &store_), Status::kOk);
  EXPECT_EQ(store_->register_thread(&thread_), Status::kOk);
  limits_.item_size_max = 1024 * 1024;
  limits_.inline_body_max = 2 * 1024 * 1024;
  limits_.cas_enabled = true;
}

Dialogue::~Dialogue() { store_->unregister_thread(&thread_); }

std::string Dialogue::say(std::string bytes) {
  std::vector<uint8_t> reply(kReplyBytesMax);
  uint8_t* out = reply.data();
  Context context;
  context.store = store_->ref();
  context.thread = &thread_;
  context.input = reinterpret_cast<uint8_t*>(bytes.data());
  context.clock = store_->clock();
  context.counters = &counters_;
  context.item_size_max = limits_.item_size_max;
  context.cas_enabled = limits_.cas_enabled;
  uint32_t at = 0;
  while (at < bytes.size()) {
    std::array<protocol::Frame, kFramesMax> frames;
    const Bytes rest = {context.input + at, bytes.size() - at};
    const protocol::FrameResult framed =
        protocol::frame(framing_, limits_, rest, at, 0, frames.data(), kFramesMax);
    for (uint32_t i = 0; i < framed.count; ++i) {
      context.store.enter_batch(thread_);
      const Status status = process_request(context, frames[i], out);
      context.store.leave_batch(thread_);
      EXPECT_EQ(status, Status::kOk);
    }
    EXPECT_TRUE(framed.consumed > 0) << "unfinished message at byte " << at;
    if (framed.consumed == 0) break;
    at += framed.consumed;
  }
  return {reply.data(), out};
}

}  // namespace warpcache::request
