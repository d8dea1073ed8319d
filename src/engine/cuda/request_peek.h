// SPDX-License-Identifier: Apache-2.0
//
// Parses requests that the device will parse: the input stays as it is. Parsing decodes a base64
// key in place, so of a message that may have one a copy of its head is parsed. Used by one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "protocol/parse/parse.h"

namespace warpcache::engine::cuda {

class RequestPeek {
 public:
  RequestPeek() { head_.reserve(UINT16_MAX); }

  // Returns where the request's offsets of key and flags count from, until the next call; values
  // are not there.
  const uint8_t* parse(protocol::Frame frame, uint8_t* input, protocol::Request& request) {
    using protocol::FrameKind;
    const bool may_be_decoded = frame.kind == FrameKind::kMetaLine ||
                                frame.kind == FrameKind::kMetaStore ||
                                frame.kind == FrameKind::kRefusedStore;
    if (may_be_decoded) {
      head_.assign(input + frame.offset, input + frame.offset + frame.head_size);
      frame.offset = 0;
      input = head_.data();
    }
    protocol::parse_request(frame, input, request);
    return input;
  }

 private:
  std::vector<uint8_t> head_;
};

}  // namespace warpcache::engine::cuda
