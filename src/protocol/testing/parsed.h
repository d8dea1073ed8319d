// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "protocol/framing/frame.h"
#include "protocol/parse/parse.h"
#include "protocol/testing/messages.h"

namespace warpcache::protocol::testing {

// A framed and parsed message with its memory.
struct Parsed {
  HeapCopy input;
  Frame frame_ = {};
  Request request = {};

  explicit Parsed(const std::string& message, FrameLimits limits = default_limits())
      : input(message) {
    FrameState state = {};
    const FrameResult result = frame(state, limits, input.bytes(), 0, 0, &frame_, 1);
    EXPECT_EQ(result.count, 1u) << message;
    parse_request(frame_, input.data(), request);
  }
  std::string key() { return text_of({input.data() + request.key_offset, request.key_size}); }
  std::string value() { return text_of({input.data() + request.value_offset, request.value_size}); }
  std::string meta() { return text_of({input.data() + request.meta_offset, request.meta_size}); }
};

}  // namespace warpcache::protocol::testing
