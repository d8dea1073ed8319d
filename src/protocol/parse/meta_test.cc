// SPDX-License-Identifier: Apache-2.0
#include "protocol/parse/meta.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "protocol/framing/frame.h"
#include "protocol/parse/parse.h"
#include "protocol/testing/parsed.h"

namespace warpcache::protocol {
namespace {

using testing::HeapCopy;
using testing::Parsed;

void expect_error(const std::string& line, Status status) {
  const bool store = line.substr(0, 3) == "ms ";
  Parsed parsed(line + (store ? "\r\nab\r\n" : "\r\n"));
  EXPECT_EQ(parsed.request.op, Op::kInvalid) << line;
  EXPECT_EQ(static_cast<int>(parsed.request.status), static_cast<int>(status)) << line;
  EXPECT_EQ(parsed.request.protocol, Protocol::kMeta) << line;
}

Request request_of(const std::string& line) {
  const bool store = line.substr(0, 3) == "ms ";
  Parsed parsed(line + (store ? "\r\nab\r\n" : "\r\n"));
  EXPECT_EQ(parsed.request.status, Status::kOk) << line;
  return parsed.request;
}

TEST(ParseMeta, Get) {
  Parsed get("mg key s v t f Oabc k\r\n");
  EXPECT_EQ(get.request.op, Op::kGet);
  EXPECT_EQ(get.request.bits, kReturnValue | kAnswersFlags);
  EXPECT_EQ(get.key(), "key");
  EXPECT_EQ(get.meta(), "s v t f Oabc k");
  EXPECT_EQ(request_of("mg k").bits, 0u);
  EXPECT_EQ(request_of("mg k").meta_size, 0u);
  const Request all = request_of("mg k q u C7 E9 N30 R40 T-5 P1 L/x h l");
  EXPECT_EQ(all.bits, kQuiet | kNoBump | kCasCompare | kCasSet | kVivify | kRecache | kTouchBit |
                          kAnswersFlags);
  EXPECT_EQ(all.cas_compare, 7u);
  EXPECT_EQ(all.cas_set, 9u);
  EXPECT_EQ(all.vivify_exptime, 30);
  EXPECT_EQ(all.recache_ttl, 40);
  EXPECT_EQ(all.exptime, -5);
}

// Lines whose flags only say what is shown are read in another way: with the same result.
TEST(ParseMeta, GetsThatOnlyShowAreReadAsAnyLine) {
  std::istringstream texts(
      "v q f t c k s h l O O1 O1234 Oooooooooooooooooooooooooooooooo "
      "Ooooooooooooooooooooooooooooooooo "
      "u b T5 N5 M x v2 ff F1 0 ! @ [ \xc3x \xf6");
  std::vector<std::string> words = {"", " "};
  for (std::string word; texts >> word;) words.push_back(word);
  const auto check = [](const std::string& line) {
    const HeapCopy input(line + "\r\n");
    FrameState state = {};
    Frame frames[2] = {};
    const FrameLimits limits = testing::default_limits();
    const FrameResult result = frame(state, limits, input.bytes(), 0, 0, frames, 2);
    ASSERT_EQ(result.count, 1u) << line;
    ASSERT_NE(frames[0].detail, 0) << line;
    testing::check_usual_lines(frames, 1, limits, input.bytes(), false);
  };
  for (const std::string& a : words) {
    check("mg k " + a);
    for (const std::string& b : words) {
      for (const std::string& c : words) {
        const std::string line = "mg a " + a + " " + b + " " + c;
        if (line.size() + 2 <= framing::kUsualLineMax) check(line);
      }
    }
  }
  check("mg key s v t f Oabc k q c h l");
}

TEST(ParseMeta, TtlIsThatOfItsPlace) {
  EXPECT_EQ(request_of("mg k t T5").bits, kTouchBit | kTtlBeforeTouch | kAnswersFlags);
  EXPECT_EQ(request_of("mg k T5 t").bits, kTouchBit | kAnswersFlags);
}

TEST(ParseMeta, TellsWhetherFlagsAreAnswered) {
  for (const char flag : std::string("Ocfhklst")) {
    const std::string line = std::string("mg k v ") + flag;
    EXPECT_EQ(request_of(line).bits & kAnswersFlags, kAnswersFlags) << line;
  }
  EXPECT_EQ(request_of("mg k v u q N5 R5 T5 E5 C5 P L").bits & kAnswersFlags, 0u);
}

TEST(ParseMeta, Set) {
  Parsed set("ms key 2 T9 F77 I C5 q\r\nab\r\n");
  EXPECT_EQ(set.request.op, Op::kSet);
  EXPECT_EQ(set.request.bits, kTouchBit | kInvalidate | kCasCompare | kQuiet);
  EXPECT_EQ(set.request.client_flags, 77u);
  EXPECT_EQ(set.request.value_size, 2u);
  EXPECT_EQ(set.meta(), "T9 F77 I C5 q");
  EXPECT_EQ(testing::text_of({set.input.data() + set.request.value_offset, 2}), "ab");
  EXPECT_EQ(request_of("ms k 2 ME").op, Op::kAdd);
  EXPECT_EQ(request_of("ms k 2 MR").op, Op::kReplace);
  EXPECT_EQ(request_of("ms k 2 MP N0").op, Op::kPrepend);
  EXPECT_EQ(request_of("ms k 2 MA").op, Op::kAppend);
  EXPECT_EQ(request_of("ms k 2 MS").op, Op::kSet);
  EXPECT_EQ(request_of("ms k 2 MSet").op, Op::kSet);
}

TEST(ParseMeta, DeleteAndArithmetic) {
  EXPECT_EQ(request_of("md k I x F3").bits, kInvalidate | kDropValue);
  EXPECT_EQ(request_of("md k").op, Op::kDelete);
  const Request plain = request_of("ma k");
  EXPECT_EQ(plain.op, Op::kIncr);
  EXPECT_EQ(plain.delta, 1u);
  const Request full = request_of("ma k N60 J13 D5 MD v");
  EXPECT_EQ(full.op, Op::kDecr);
  EXPECT_EQ(full.initial, 13u);
  EXPECT_EQ(full.delta, 5u);
  EXPECT_EQ(full.bits, kVivify | kReturnValue);
  EXPECT_EQ(request_of("ma k M+").op, Op::kIncr);
  EXPECT_EQ(request_of("ma k MI").op, Op::kIncr);
  EXPECT_EQ(request_of("ma k M-").op, Op::kDecr);
}

TEST(ParseMeta, NoopAndDebug) {
  EXPECT_EQ(request_of("mn").op, Op::kNoop);
  EXPECT_EQ(request_of("mn anything").op, Op::kNoop);
  EXPECT_EQ(request_of("me k").op, Op::kMetaDebug);
  Parsed binary("me Zm9v b\r\n");
  EXPECT_EQ(binary.key(), "foo");
}

TEST(ParseMeta, Errors) {
  const std::string long_key(251, 'k');
  for (const char* line : {"mg", "md", "ma", "me", "ms", "ms k", "ms k x", "ms k -1", "mg k !",
                           "ma k {x", "md k \x80"}) {
    expect_error(line, Status::kBadFormat);
  }
  expect_error("mg " + long_key, Status::kBadFormat);
  expect_error("ms " + long_key + " 2", Status::kBadFormat);
  expect_error("md " + long_key, Status::kBadFormat);
  expect_error("me " + long_key, Status::kBadFormat);
  expect_error("me Z b", Status::kBadFormat);
  expect_error("ma " + long_key, Status::kBadFlags);
  for (const char* flags : {"S", "a", "1", "_", "z", "B"}) {
    expect_error(std::string("mg k ") + flags, Status::kBadFlag);
    expect_error(std::string("ms k 2 ") + flags, Status::kBadFlag);
    expect_error(std::string("md k ") + flags, Status::kBadFlag);
    expect_error(std::string("ma k ") + flags, Status::kBadFlags);
  }
  expect_error("mg k v v", Status::kDuplicateFlag);
  expect_error("mg k T1 T2", Status::kDuplicateFlag);
  expect_error("mg k Tx v v", Status::kDuplicateFlag);
  expect_error("ma k v v", Status::kBadFlags);
  for (const char* flag : {"T", "Tx", "N", "Nx", "Rx", "C", "C-1", "Ex"}) {
    expect_error(std::string("mg k ") + flag, Status::kBadToken);
    expect_error(std::string("ms k 2 ") + flag, Status::kBadToken);
    expect_error(std::string("ma k ") + flag, Status::kBadFlags);
  }
  expect_error("ms k 2 Fx", Status::kBadFormat);
  expect_error("ms k 2 Tx Fx", Status::kBadToken);
  expect_error("mg k Jx", Status::kBadInitial);
  expect_error("mg k D", Status::kBadMetaDelta);
  expect_error("ms k 2 MX", Status::kBadSetMode);
  expect_error("ms k 2 M", Status::kBadSetMode);
  expect_error("ms k 2 Ms", Status::kBadSetMode);
  expect_error("ma k MX", Status::kBadArithmeticMode);
  expect_error("mg Zg b", Status::kBadKeyEncoding);
}

TEST(ParseMeta, Limits) {
  const std::string opaque(31, 'o');
  EXPECT_EQ(request_of("mg k O" + opaque).op, Op::kGet);
  for (const char* line : {"mg k O", "ms k 2 O", "md k O", "ma k O"}) {
    expect_error(line + opaque + "x", Status::kBadOpaque);
  }
  const std::string flags18 = "b k s t c f v h l u q x I Oo P1 L1 T1 N1";
  EXPECT_EQ(request_of("mg Zm9v " + flags18).op, Op::kGet);
  expect_error("mg Zm9v " + flags18 + " R1", Status::kTooManyFlags);
  expect_error("ma Zm9v " + flags18 + " R1", Status::kBadFlags);
}

TEST(ParseMeta, Base64KeysAreDecodedInPlace) {
  const std::pair<const char*, std::string> keys[] = {{"Zm9v", "foo"},
                                                      {"Zg==", "f"},
                                                      {"Zm-9_v", "foo"},
                                                      {"Zg==Zm9v", "f"},
                                                      {"AAog/w==", std::string("\0\n \xff", 4)}};
  for (const auto& [token, key] : keys) {
    Parsed parsed(std::string("mg ") + token + " b k\r\n");
    ASSERT_EQ(parsed.request.op, Op::kGet) << token;
    EXPECT_EQ(parsed.request.bits, kKeyIsBase64 | kAnswersFlags);
    EXPECT_EQ(parsed.key(), key);
    EXPECT_EQ(parsed.meta(), "b k");
  }
}

}  // namespace
}  // namespace warpcache::protocol
