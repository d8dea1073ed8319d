// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "protocol/binary.h"
#include "protocol/framing/frame.h"
#include "protocol/testing/messages.h"

namespace warpcache::protocol {
namespace {

using testing::big_endian;
using testing::binary_request;
using testing::default_limits;
using ::testing::ElementsAre;
using testing::frames_of;
using testing::Stream;

std::string header_of(const std::string& message) { return message.substr(0, 24); }

std::string invalid(const std::string& message, Status status) {
  return "invalidbinary<" + header_of(message) + ">" + std::to_string(static_cast<int>(status));
}

const std::string kNoop = binary_request(kOpNoop, "", "", "");
const std::string kNoopFrame = "binary<" + kNoop + ">0";

void expect_same_in_binary_pieces(const std::string& bytes, const FrameLimits& limits) {
  const std::vector<std::string> whole = frames_of(bytes, limits);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    Stream stream(limits, 1 + static_cast<uint32_t>(cut % 3));
    stream.feed(bytes.substr(0, cut));
    stream.feed(bytes.substr(cut));
    ASSERT_EQ(stream.seen(), whole) << "cut at " << cut;
  }
  Stream stream(limits);
  for (const char byte : bytes) stream.feed(std::string(1, byte));
  ASSERT_EQ(stream.seen(), whole);
}

// The required form of every opcode; each is also tested with bodies one byte too long or too
// short.
struct Form {
  uint8_t opcode;
  int extras;
  bool key;
  bool value;
};

std::vector<Form> forms() {
  std::vector<Form> all;
  for (const uint8_t op : {kOpGet, kOpGetQ, kOpGetK, kOpGetKQ, kOpDelete, kOpDeleteQ})
    all.push_back({op, 0, true, false});
  for (const uint8_t op : {kOpSet, kOpSetQ, kOpAdd, kOpAddQ, kOpReplace, kOpReplaceQ})
    all.push_back({op, 8, true, true});
  for (const uint8_t op : {kOpAppend, kOpAppendQ, kOpPrepend, kOpPrependQ})
    all.push_back({op, 0, true, true});
  for (const uint8_t op : {kOpIncrement, kOpIncrementQ, kOpDecrement, kOpDecrementQ})
    all.push_back({op, 20, true, false});
  for (const uint8_t op : {kOpTouch, kOpGat, kOpGatQ, kOpGatK, kOpGatKQ})
    all.push_back({op, 4, true, false});
  for (const uint8_t op : {kOpNoop, kOpVersion, kOpSaslListMechanisms})
    all.push_back({op, 0, false, false});
  all.push_back({kOpFlush, 4, false, false});
  all.push_back({kOpFlushQ, 0, false, false});
  all.push_back({kOpStat, 0, true, false});
  all.push_back({kOpSaslAuth, 0, true, true});
  return all;
}

TEST(FrameBinary, EveryOpcodeInItsForm) {
  for (const Form& form : forms()) {
    SCOPED_TRACE(static_cast<int>(form.opcode));
    const std::string extras(static_cast<size_t>(form.extras), '\1');
    const std::string key = form.key ? "key" : "";
    const std::string value = form.value ? "value" : "";
    const std::string message = binary_request(form.opcode, extras, key, value);
    const std::string head = message.substr(0, message.size() - value.size());
    const std::string frame = "binary<" + head + ">0" + (form.value ? ":5=value" : "");
    EXPECT_THAT(frames_of(message + kNoop), ElementsAre(frame, kNoopFrame));
    expect_same_in_binary_pieces(message + kNoop, default_limits());

    // Extras of another size, a value where none is allowed, no key: the connection closes.
    const std::string more_extras = binary_request(form.opcode, extras + "x", key, value);
    EXPECT_THAT(frames_of(more_extras + kNoop),
                ElementsAre(invalid(more_extras, Status::kInvalidArguments), "close"));
    if (!form.value) {
      const std::string with_value = binary_request(form.opcode, extras, key, "v");
      EXPECT_THAT(frames_of(with_value),
                  ElementsAre(invalid(with_value, Status::kInvalidArguments), "close"));
    }
    if (form.key && form.opcode != kOpStat) {
      const std::string keyless = binary_request(form.opcode, extras, "", value);
      EXPECT_THAT(frames_of(keyless),
                  ElementsAre(invalid(keyless, Status::kInvalidArguments), "close"));
    }
  }
}

TEST(FrameBinary, UnknownOpcodesKeepTheStreamInStep) {
  for (const int opcode : {0x1b, 0x1f, 0x25, 0x40, 0x80, 0xff}) {
    const std::string message = binary_request(static_cast<uint8_t>(opcode), "ext", "key", "value");
    EXPECT_THAT(frames_of(message + kNoop),
                ElementsAre(invalid(message, Status::kUnknownCommand), kNoopFrame));
    expect_same_in_binary_pieces(message + kNoop, default_limits());
  }
}

TEST(FrameBinary, HeadersThatLie) {
  std::string message = binary_request(kOpGet, "", "key", "");
  message[11] = 2;  // a body shorter than its key
  EXPECT_THAT(frames_of(message), ElementsAre(invalid(message, Status::kUnknownCommand), "close"));
  message = binary_request(kOpSet, std::string(8, '\0'), "key", "");
  message[8] = 0x40;  // more than 1 GiB
  EXPECT_THAT(frames_of(message),
              ElementsAre(invalid(message, Status::kInvalidArguments), "close"));
  message = binary_request(kOpGet, "", std::string(251, 'k'), "");
  EXPECT_THAT(frames_of(message),
              ElementsAre(invalid(message, Status::kInvalidArguments), "close"));
  message = binary_request(kOpGet, "", std::string(250, 'k'), "");
  EXPECT_THAT(frames_of(message + kNoop), ElementsAre("binary<" + message + ">0", kNoopFrame));
  message = binary_request(kOpGet, "", "key", "");
  message[0] = '\x81';
  EXPECT_THAT(frames_of(kNoop + message), ElementsAre(kNoopFrame, "close"));
}

TEST(FrameBinary, QuitEndsAll) {
  for (const uint8_t opcode : {kOpQuit, kOpQuitQ}) {
    const std::string quit = binary_request(opcode, "", "", "");
    EXPECT_THAT(frames_of(quit + kNoop), ElementsAre("binary<" + quit + ">0", "close"));
  }
}

TEST(FrameBinary, ItemSizeToTheByte) {
  for (const bool flags : {true, false}) {
    for (const bool cas : {true, false}) {
      FrameLimits limits = default_limits();
      limits.item_size_max = 4096;
      limits.cas_enabled = cas;
      const size_t fits = 4096u - 48 - 3 - 1 - 2 - (flags ? 4u : 0u) - (cas ? 8u : 0u);
      const std::string extras = big_endian(flags ? 1 : 0, 4) + big_endian(0, 4);
      for (const size_t size : {fits, fits + 1}) {
        const std::string message = binary_request(kOpSet, extras, "key", std::string(size, 'v'));
        const std::vector<std::string> seen = frames_of(message + kNoop, limits);
        ASSERT_EQ(seen.size(), 2u);
        EXPECT_EQ(seen[0].substr(0, 7), size == fits ? "binary<" : "refused");
        EXPECT_EQ(seen[1], kNoopFrame);
      }
    }
  }
}

TEST(FrameBinary, TooLargeIsSwallowed) {
  FrameLimits limits = default_limits();
  limits.item_size_max = 100;
  const std::string message = binary_request(kOpAppend, "", "key", std::string(100, 'v'));
  const std::string refused = "refusedbinary<" + message.substr(0, 27) + ">" +
                              std::to_string(static_cast<int>(Status::kTooLarge)) + ":100";
  EXPECT_THAT(frames_of(message + kNoop, limits), ElementsAre(refused, kNoopFrame));
  expect_same_in_binary_pieces(message + kNoop, limits);
}

TEST(FrameBinary, LargeBodies) {
  FrameLimits limits = default_limits();
  limits.inline_body_max = 10;
  const std::string message =
      binary_request(kOpSet, std::string(8, '\0'), "key", std::string(11, 'v'));
  const std::string head = message.substr(0, 35);
  EXPECT_THAT(frames_of(message + kNoop, limits),
              ElementsAre("binary<" + head + ">0:11=vvvvvvvvvvv", kNoopFrame));
  expect_same_in_binary_pieces(message + kNoop, limits);
  Stream stream(limits);
  stream.reservation = Status::kOutOfMemory;
  for (const char byte : message + kNoop) stream.feed(std::string(1, byte));
  const std::string refused = "refusedbinary<" + head + ">" +
                              std::to_string(static_cast<int>(Status::kOutOfMemory)) + ":11";
  EXPECT_THAT(stream.seen(), ElementsAre(refused, kNoopFrame));
}

TEST(FrameBinary, SaysWhatItNeeds) {
  const std::string message = binary_request(kOpSet, std::string(8, '\0'), "key", "value");
  Stream stream(default_limits());
  stream.feed(message.substr(0, 10));
  EXPECT_EQ(stream.need(), 24u);
  stream.feed(message.substr(10, 14));
  EXPECT_EQ(stream.need(), 35u);
  stream.feed(message.substr(24, 11));
  EXPECT_EQ(stream.need(), 40u);
}

}  // namespace
}  // namespace warpcache::protocol
