// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace warpcache::admin {

// A reply that is too long to be made at once: one thread makes it step by step.
class LongReply {
 public:
  enum class Step : uint8_t {
    kMore,
    kLast,    // the reply is complete
    kBroken,  // the data has disappeared: the reply cannot be completed
  };

  virtual ~LongReply() = default;
  // Writes the next piece, which may be empty, to `text`. REQUIRES: `text` is empty.
  virtual Step step(std::string& text) = 0;
};

}  // namespace warpcache::admin
