// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "protocol/message.h"

namespace warpcache::admin {

// The words of an administrative command (protocol::Op), or the value of a request.
inline std::string_view words_of(const protocol::Request& request, const uint8_t* input) {
  return {reinterpret_cast<const char*>(input) + request.value_offset, request.value_size};
}

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
