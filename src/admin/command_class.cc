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
  using namespace protocol;
  switch (opcode) {
    case kOpGet:
    case kOpGetQ:
    case kOpGetK:
    case kOpGetKQ:
      return CommandClass::kGet;
    case kOpGat:
    case kOpGatQ:
    case kOpGatK:
    case kOpGatKQ:
      return CommandClass::kGat;
    case kOpSet:
    case kOpSetQ:
      return CommandClass::kSet;
    case kOpAdd:
    case kOpAddQ:
      return CommandClass::kAdd;
    case kOpReplace:
    case kOpReplaceQ:
      return CommandClass::kReplace;
    case kOpAppend:
    case kOpAppendQ:
      return CommandClass::kAppend;
    case kOpPrepend:
    case kOpPrependQ:
      return CommandClass::kPrepend;
    case kOpDelete:
    case kOpDeleteQ:
      return CommandClass::kDelete;
    case kOpIncrement:
    case kOpIncrementQ:
      return CommandClass::kIncr;
    case kOpDecrement:
    case kOpDecrementQ:
      return CommandClass::kDecr;
    case kOpTouch:
      return CommandClass::kTouch;
    default:
      return CommandClass::kOther;
  }
}

}  // namespace

CommandClass class_of(const protocol::Frame& frame, const uint8_t* input) {
  const uint8_t* const head = input + frame.offset;
  switch (frame.verdict) {
    case protocol::Verdict::kTextKey:
      return (frame.detail & protocol::kKeyOfGat) != 0 ? CommandClass::kGat : CommandClass::kGet;
    case protocol::Verdict::kBinary:
    case protocol::Verdict::kRefusedBinary:
      return frame.head_size < protocol::kBinaryHeaderSize ? CommandClass::kOther
                                                           : class_of_opcode(head[kOpcodeAt]);
    case protocol::Verdict::kTextLine:
    case protocol::Verdict::kTextStore:
    case protocol::Verdict::kMetaLine:
    case protocol::Verdict::kMetaStore:
    case protocol::Verdict::kRefusedStore: {
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
