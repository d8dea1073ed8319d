// SPDX-License-Identifier: Apache-2.0
//
// Commands by name, for statistics: which command a frame holds, without parsing all of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "protocol/framing/frame_types.h"

namespace warpcache::admin {

enum class CommandClass : uint8_t {
  kGet,
  kGat,
  kSet,
  kAdd,
  kReplace,
  kAppend,
  kPrepend,
  kCas,
  kDelete,
  kIncr,
  kDecr,
  kTouch,
  kMetaGet,
  kMetaSet,
  kMetaDelete,
  kMetaArithmetic,
  kOther,
  kCount,
};

inline constexpr size_t kCommandClasses = static_cast<size_t>(CommandClass::kCount);

inline constexpr std::array<std::string_view, kCommandClasses> kCommandNames = {
    "get",  "gat",  "set",   "add", "replace", "append", "prepend", "cas",  "delete",
    "incr", "decr", "touch", "mg",  "ms",      "md",     "ma",      "other"};

// `input` is the batch's input base.
[[nodiscard]] CommandClass class_of(const protocol::Frame& frame, const uint8_t* input);

}  // namespace warpcache::admin
