// SPDX-License-Identifier: Apache-2.0
#include "admin/command_class.h"

#include <algorithm>

#include "protocol/binary.h"

namespace warpcache::admin {
namespace {

constexpr uint32_t kOpcodeAt = 1;  // in the binary header

CommandClass class_of_word(std::string_view word) {
  const auto* const found = std::find(kCommandNames.begin(), kCommandNames.end() - 1, word);
  return static_cast<CommandClass>(found - kCommandNames.begin());
}

// A set that names a CAS id is a set here: the opcode is the same.
CommandClass class_of_opcode(uint8_t opcode) {
  switch (opcode) {
    case protocol::kOpGet:
    case protocol::kOpGetQ:
    case protocol::kOpGetK:
    case protocol::kOpGetKQ:
      return CommandClass::kGet;
    case protocol::kOpGat:
    case protocol::kOpGatQ:
    case protocol::kOpGatK:
    case protocol::kOpGatKQ:
      return CommandClass::kGat;
    case protocol::kOpSet:
    case protocol::kOpSetQ:
      return CommandClass::kSet;
    case protocol::kOpAdd:
    case protocol::kOpAddQ:
      return CommandClass::kAdd;
    case protocol::kOpReplace:
    case protocol::kOpReplaceQ:
      return CommandClass::kReplace;
    case protocol::kOpAppend:
    case protocol::kOpAppendQ:
      return CommandClass::kAppend;
    case protocol::kOpPrepend:
    case protocol::kOpPrependQ:
      return CommandClass::kPrepend;
    case protocol::kOpDelete:
    case protocol::kOpDeleteQ:
      return CommandClass::kDelete;
    case protocol::kOpIncrement:
    case protocol::kOpIncrementQ:
      return CommandClass::kIncr;
    case protocol::kOpDecrement:
    case protocol::kOpDecrementQ:
      return CommandClass::kDecr;
    case protocol::kOpTouch:
      return CommandClass::kTouch;
    default:
      return CommandClass::kOther;
  }
}

}  // namespace

CommandClass class_of(const protocol::Frame& frame, const uint8_t* input) {
  const uint8_t* const head = input + frame.offset;
  switch (frame.kind) {
    case protocol::FrameKind::kTextKey:
      return (frame.detail & protocol::kKeyOfGat) != 0 ? CommandClass::kGat : CommandClass::kGet;
    case protocol::FrameKind::kBinary:
    case protocol::FrameKind::kRefusedBinary:
      return frame.head_size < protocol::kBinaryHeaderSize ? CommandClass::kOther
                                                           : class_of_opcode(head[kOpcodeAt]);
    case protocol::FrameKind::kTextLine:
    case protocol::FrameKind::kTextStore:
    case protocol::FrameKind::kMetaLine:
    case protocol::FrameKind::kMetaStore:
    case protocol::FrameKind::kRefusedStore: {
      const std::string_view line(reinterpret_cast<const char*>(head), frame.head_size);
      const auto* const end =
          std::find_if(line.begin(), line.end(), [](char c) { return c <= ' '; });
      return class_of_word({line.begin(), static_cast<size_t>(end - line.begin())});
    }
    default:
      return CommandClass::kOther;
  }
}

}  // namespace warpcache::admin
