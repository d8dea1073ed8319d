// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace warpcache::admin {

// A reply that is too long to be made at once: it is made step by step, by one thread.
class LongReply {
 public:
  enum class Step : uint8_t {
    kMore,
    kLast,    // the reply is whole
    kBroken,  // what it shows is gone: the reply cannot be made whole
  };

  virtual ~LongReply() = default;
  // Appends the next piece to `text`, which is empty; it may be left empty.
  virtual Step step(std::string& text) = 0;
};

}  // namespace warpcache::admin
