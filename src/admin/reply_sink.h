// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/bytes.h"

namespace warpcache::admin {

// A sink for the functions of protocol/compose/admin_reply.h that appends to a string.
class ReplySink {
 public:
  explicit ReplySink(std::string& text) : text_(text) {}
  void operator()(Bytes bytes) const {
    text_.append(reinterpret_cast<const char*>(bytes.data), bytes.size);
  }

 private:
  std::string& text_;
};

}  // namespace warpcache::admin
