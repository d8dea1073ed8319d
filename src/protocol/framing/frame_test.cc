// SPDX-License-Identifier: Apache-2.0
#include "protocol/framing/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/testing/effort.h"
#include "protocol/framing/item_size.h"
#include "protocol/testing/messages.h"

namespace warpcache::protocol {
namespace {

using testing::default_limits;
using testing::describe;
using ::testing::ElementsAre;
using testing::frames_of;
using testing::HeapCopy;
using ::testing::IsEmpty;
using testing::kLongKey;
using ::testing::SizeIs;
using testing::Stream;

std::string code(Status status) { return std::to_string(static_cast<int>(status)); }
std::string invalid(Status status) { return "invalid<>" + code(status); }

struct Case {
  const char* name;
  std::string bytes;
  std::vector<std::string> frames;
};

const std::string kKey250(250, 'k');

std::vector<Case> text_cases() {
  const std::string refused = ">" + code(Status::kBadDataChunk);
  return {
      {"get", "get key\r\n", {"key<key>4"}},
      {"get, bare LF", "get key\n", {"key<key>4"}},
      {"get of 250 bytes", "get " + kKey250 + "\r\n", {"key<" + kKey250 + ">4"}},
      {"get of 251 bytes",
       "get " + kLongKey + "\r\nmn\r\n",
       {"line<get " + kLongKey + "\r\n>0", "meta<mn\r\n>0"}},
      {"get without a key", "get\r\nget \r\n", {"line<get\r\n>0", "line<get \r\n>0"}},
      {"get with blanks", "get   a   b  \r\n", {"key<a>0", "key<b>4"}},
      {"get, blank after a key", "get a \r\n", {"key<a>4"}},
      {"get, CR in keys",
       "get a\rb \rc \r d\r\r\n",
       {"key<a\rb>0", "key<\rc>0", "key<\r>0", "key<d\r>4"}},
      {"gets", "gets a b\r\n", {"key<a>1", "key<b>5"}},
      {"gat", "gat 10 a b\r\n", {"key<a>2:10", "key<b>6:10"}},
      {"gats, negative", "gats -1 a\r\n", {"key<a>7:-1"}},
      {"gat without a key", "gat 10\r\n", {"line<gat 10\r\n>0"}},
      {"gat, no number", "gat x a\r\n", {"line<gat x a\r\n>0"}},
      {"multiget with a key too long",
       "get a " + kLongKey + " b\r\nmn\r\n",
       {"line<get a " + kLongKey + " b\r\n>0", "meta<mn\r\n>0"}},
      {"blank in front", " get a\r\n", {"line< get a\r\n>0"}},
      {"lines",
       "\r\n\nx\r\nquitx\r\nversion\r\n",
       {"line<\r\n>0", "line<\n>0", "line<x\r\n>0", "line<quitx\r\n>0", "line<version\r\n>0"}},
      {"set", "set k 1 2 3\r\nabc\r\n", {"store<set k 1 2 3\r\n>0:3=abc"}},
      {"set, bare LF in its line", "set k 1 2 3\nabc\r\n", {"store<set k 1 2 3\n>0:3=abc"}},
      {"set of nothing", "set k 1 2 0\r\n\r\nmn\r\n", {"store<set k 1 2 0\r\n>0", "meta<mn\r\n>0"}},
      {"set of line ends", "set k 1 2 4\r\n\r\n\r\n\r\n", {"store<set k 1 2 4\r\n>0:4=\r\n\r\n"}},
      {"set, word for word",
       "set  k  1 2  3  noreply \r\nabc\r\n",
       {"store<set  k  1 2  3  noreply \r\n>0:3=abc"}},
      {"other stores",
       "add a 0 0 1\r\n1\r\ncas a 0 0 1 9\r\n1\r\nprepend a 0 0 1\r\n1\r\n",
       {"store<add a 0 0 1\r\n>0:1=1", "store<cas a 0 0 1 9\r\n>0:1=1",
        "store<prepend a 0 0 1\r\n>0:1=1"}},
      {"set with a wrong word has a body",
       "set k x 2 3\r\nabc\r\n",
       {"store<set k x 2 3\r\n>0:3=abc"}},
      {"set with a key too long has a body",
       "set " + kLongKey + " 1 2 3\r\nabc\r\n",
       {"store<set " + kLongKey + " 1 2 3\r\n>0:3=abc"}},
      {"set without a length", "set k 1 2\r\nmn\r\n", {"line<set k 1 2\r\n>0", "meta<mn\r\n>0"}},
      {"set, negative length",
       "set k 1 2 -1\r\nmn\r\n",
       {"line<set k 1 2 -1\r\n>0", "meta<mn\r\n>0"}},
      {"set, length beyond all",
       "set k 1 2 2147483646\r\nmn\r\n",
       {"line<set k 1 2 2147483646\r\n>0", "meta<mn\r\n>0"}},
      {"bad data chunk",
       "set k 0 0 3\r\nabcdefgh\r\nmn\r\n",
       {"refused<set k 0 0 3\r\n" + refused + ":3", "line<fgh\r\n>0", "meta<mn\r\n>0"}},
      {"bad data chunk, LF alone",
       "set k 0 0 3\r\nabc\nxmn\r\n",
       {"refused<set k 0 0 3\r\n" + refused + ":3", "meta<mn\r\n>0"}},
      {"ms", "ms k 3 T0 c\r\nabc\r\n", {"metastore<ms k 3 T0 c\r\n>0:3=abc"}},
      {"ms without a length", "ms k\r\nms k x\r\n", {"meta<ms k\r\n>0", "meta<ms k x\r\n>0"}},
      {"ms with what is no flag has no body",
       "ms k 3 !\r\nmn\r\n",
       {"meta<ms k 3 !\r\n>0", "meta<mn\r\n>0"}},
      {"meta lines",
       "mg k v\r\nmd k\r\nma k\r\nme k\r\nmn\r\nmx k\r\n",
       {"meta<mg k v\r\n>0", "meta<md k\r\n>0", "meta<ma k\r\n>0", "meta<me k\r\n>0",
        "meta<mn\r\n>0", "line<mx k\r\n>0"}},
      {"quit ends all", "quit\r\nget a\r\n", {"line<quit\r\n>0", "close"}},
      {"HTTP", "GET / HTTP/1.1\r\nHost: x\r\n", {"close"}},
      {"HTTP as a word of a command", "version HTTP/1.1\r\n", {"line<version HTTP/1.1\r\n>0"}},
      {"HTTP alone", "HTTP/1.1\r\n", {"line<HTTP/1.1\r\n>0"}},
      {"longest line",
       std::string(2047, 'x') + "\r\nmn\r\n",
       {"line<" + std::string(2047, 'x') + "\r\n>0", "meta<mn\r\n>0"}},
      {"line too long", std::string(2048, 'x') + "\r\nmn\r\n", {"close"}},
      {"binary inside of text", "mn\r\n\x80\r\n", {"meta<mn\r\n>0", "line<\x80\r\n>0"}},
  };
}

TEST(FrameText, Table) {
  for (const Case& c : text_cases()) EXPECT_EQ(frames_of(c.bytes), c.frames) << c.name;
}

// The frames do not depend on the pieces: two pieces divided at every byte, and single bytes.
void expect_same_in_pieces(const std::string& bytes, const FrameLimits& limits) {
  const std::vector<std::string> whole = frames_of(bytes, limits);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    Stream stream(limits);
    stream.feed(bytes.substr(0, cut));
    stream.feed(bytes.substr(cut));
    ASSERT_EQ(stream.seen(), whole) << "cut at " << cut;
  }
  for (const uint32_t capacity : {1u, 2u, 100u}) {
    Stream stream(limits, capacity);
    for (const char byte : bytes) stream.feed(std::string(1, byte));
    ASSERT_EQ(stream.seen(), whole) << "byte by byte, capacity " << capacity;
  }
}

TEST(FrameText, SameInPieces) {
  std::string all;
  for (const Case& c : text_cases()) {
    SCOPED_TRACE(c.name);
    expect_same_in_pieces(c.bytes, default_limits());
    if (c.frames.back() != "close") all += c.bytes;
  }
  FrameLimits small = default_limits();
  small.inline_body_max = 2;
  Stream bytewise(small);
  for (const char byte : all) bytewise.feed(std::string(1, byte));
  EXPECT_EQ(bytewise.seen(), frames_of(all, small));
}

std::string keys(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += " key" + std::to_string(i);
  return text;
}

// Runs of usual lines are framed by a loop of their own. Byte by byte nothing is ever long enough
// for it.
TEST(FrameText, RunsOfUsualLinesAreFramedLikeSingleOnes) {
  const std::string key(30, 'k');
  const std::vector<std::string> usual = {
      "get " + key + "\r\n",           "mg " + key + " v\r\n",
      "mg " + key + " v k O123\r\n",   "set " + key + " 0 0 5\r\nhello\r\n",
      "ms " + key + " 5\r\nhello\r\n", "ms " + key + " 0\r\n\r\n",
  };
  const std::vector<std::string> others = {
      "",
      "get a " + key + "\r\n",
      "get " + key + "\n",
      "get\r\n",
      "mn\r\n",
      "touch " + key + " 0\r\n",
      "set " + key + " 0 0 5\r\nhel\r\n\r\n",
      "set " + key + " 0 0 90000\r\n" + std::string(90000, 'v') + "\r\n",
      "ms " + key + " 2000000\r\n" + std::string(2000000, 'v') + "\r\n",
      "mg " + kLongKey + " v\r\nget " + key + "\r\n",
      "set " + key + " 0 0 99999999\r\n",
      std::string(70, ' ') + "\r\n",
  };
  for (const std::string& other : others) {
    std::string text;
    for (size_t round = 0; round < 4; ++round) {
      for (size_t i = 0; i < usual.size(); ++i) text += usual[(i + round) % usual.size()];
      if (round == 1) text += other;
    }
    Stream single(default_limits());
    for (size_t at = 0; at < text.size();) {  // bodies in one piece: else it takes long
      const size_t piece =
          text[at] == 'v' && text.compare(at, 100, std::string(100, 'v')) == 0 ? 100 : 1;
      single.feed(text.substr(at, piece));
      at += piece;
    }
    for (const uint32_t capacity : {1u, 7u, 100u}) {
      Stream whole(default_limits(), capacity);
      whole.feed(text);
      EXPECT_EQ(whole.seen(), single.seen()) << other.substr(0, 60) << " by " << capacity;
      EXPECT_EQ(whole.pending(), single.pending());
    }
  }
}

TEST(FrameKeys, TenThousandKeysInPieces) {
  const std::string line = "gats 30" + keys(10000) + "\r\n";
  std::vector<std::string> expected;
  for (int i = 0; i < 10000; ++i) {
    expected.push_back("key<key" + std::to_string(i) + (i == 9999 ? ">7:30" : ">3:30"));
  }
  for (const size_t piece : {1u, 7u, 1448u, 16384u, 200000u}) {
    Stream stream(default_limits(), 64);
    size_t pending_max = 0;
    for (size_t at = 0; at < line.size(); at += piece) {
      stream.feed(line.substr(at, piece));
      pending_max = std::max(pending_max, stream.pending().size());
    }
    EXPECT_EQ(stream.seen(), expected) << piece;
    EXPECT_LE(pending_max, kLineSizeMax);
  }
}

TEST(FrameKeys, LongLineIsAnsweredUpToAKeyTooLong) {
  const std::string bytes =
      "get" + keys(500) + " " + kLongKey + " x" + std::string(5000, 'y') + "\r\nmn\r\n";
  std::vector<std::string> expected;
  for (int i = 0; i < 500; ++i) expected.push_back("key<key" + std::to_string(i) + ">0");
  expected.push_back(invalid(Status::kBadFormat));
  expected.push_back("meta<mn\r\n>0");
  EXPECT_EQ(frames_of(bytes), expected);
  Stream stream(default_limits());
  for (const char byte : bytes) stream.feed(std::string(1, byte));
  EXPECT_EQ(stream.seen(), expected);
}

TEST(FrameKeys, LongLineMayEndInAnyWay) {
  const int count = testing_effort(300, 500);  // the line is cut at each of its bytes
  for (const char* end : {"\r\n", "\n", " \r\n", "   \n"}) {
    const std::string bytes = "get" + keys(count) + end + "mn\r\n";
    SCOPED_TRACE(end);
    const std::vector<std::string> seen = frames_of(bytes);
    ASSERT_EQ(seen.size(), static_cast<size_t>(count) + 1);
    EXPECT_EQ(seen[static_cast<size_t>(count) - 1], "key<key" + std::to_string(count - 1) + ">4");
    expect_same_in_pieces(bytes, default_limits());
  }
}

TEST(FrameKeys, LongLinesThatNobodyShouldSend) {
  const std::string blanks(3000, ' ');
  const std::string many(40'000, ' ');
  const std::string bad_format = invalid(Status::kBadFormat);
  EXPECT_THAT(frames_of("get " + blanks + "a\r\n"), ElementsAre("key<a>4"));
  EXPECT_THAT(frames_of("gets " + many + "a " + many + "b\r\n"), ElementsAre("close"));
  EXPECT_THAT(frames_of("get " + many + "\ra\n"), ElementsAre("key<\ra>4"));
  EXPECT_THAT(frames_of("get " + blanks + "\r\nmn\r\n"), ElementsAre(bad_format, "meta<mn\r\n>0"));
  EXPECT_THAT(frames_of("get " + blanks + "\nmn\r\n"), ElementsAre(bad_format, "meta<mn\r\n>0"));
  EXPECT_THAT(frames_of("get" + std::string(2045, ' ') + "\r\nmn\r\n"),
              ElementsAre(bad_format, "meta<mn\r\n>0"));
  EXPECT_THAT(frames_of("get a b" + blanks + "c" + blanks + "\r\n"),
              ElementsAre("key<a>0", "key<b>0", "key<c>4"));
  EXPECT_THAT(frames_of("get a b" + many + "c\r\n"), ElementsAre("key<a>0", "close"));
  EXPECT_THAT(frames_of("gat x " + keys(1000) + "\r\nmn\r\n"),
              ElementsAre(invalid(Status::kBadExptime), "meta<mn\r\n>0"));
  EXPECT_THAT(frames_of("gat" + blanks), ElementsAre("close"));
  EXPECT_THAT(frames_of(" get" + keys(1000)), ElementsAre("close"));
  EXPECT_THAT(frames_of("set" + keys(1000)), ElementsAre("close"));
  for (const std::string& bytes :
       {"get a b" + blanks + "c\r\n", "get " + blanks + "a\r\nmn\r\n",
        "gets " + blanks + "\r\nmn\r\n", "gat x " + keys(600) + "\r\nmn\r\n",
        "get a " + std::string(3000, 'y') + " b\r\nmn\r\n"}) {
    expect_same_in_pieces(bytes, default_limits());
  }
}

TEST(FrameKeys, ARefusedLineIsAnsweredAtItsEnd) {
  for (const std::string& line : {"get " + std::string(3000, 'y'), "get" + std::string(3000, ' '),
                                  "gat x " + std::string(3000, 'y')}) {
    Stream stream(default_limits());
    stream.feed(line);
    EXPECT_THAT(stream.seen(), IsEmpty());
    stream.feed("\r\nmn\r\n");
    EXPECT_EQ(stream.seen().size(), 2u);
  }
  // In a datagram, nothing can follow.
  for (const std::string& line :
       {"get " + std::string(3000, 'y'), "get" + std::string(3000, ' ')}) {
    HeapCopy input(line);
    FrameState state = {};
    Frame out[2];
    const FrameResult result = frame_datagram(state, default_limits(), input.bytes(), 0, 0, out, 2);
    ASSERT_EQ(result.count, 1u);
    EXPECT_EQ(out[0].kind, FrameKind::kInvalid);
    EXPECT_EQ(result.end, FrameEnd::kClose);
  }
}

TEST(FrameKeys, FullInTheMiddleOfALine) {
  HeapCopy input("get a b c\r\nget d\r\n");
  FrameState state = {};
  Frame out[2];
  FrameResult result = frame(state, default_limits(), input.bytes(), 100, 9, out, 2);
  EXPECT_EQ(result.end, FrameEnd::kFull);
  EXPECT_EQ(result.count, 2u);
  EXPECT_EQ(result.consumed, 8u);
  EXPECT_EQ(out[1].offset, 106u);
  EXPECT_EQ(out[1].entry, 9u);
  result = frame(state, default_limits(), input.bytes().from(8), 108, 9, out, 2);
  EXPECT_EQ(result.count, 2u);
  EXPECT_EQ(out[0].offset, 108u);
  EXPECT_EQ(out[0].detail, kKeyLast);
  EXPECT_EQ(result.end, FrameEnd::kNeedMore);
}

// What is left of a line need not be what it looks like.
TEST(FrameKeys, KeysThatLookLikeALine) {
  Stream stream(default_limits(), 3);
  stream.feed("gets a b c get d\r\nget e f g get h\r\n");
  EXPECT_THAT(stream.seen(), SizeIs(10));
}

TEST(FrameText, SaysWhatItNeeds) {
  Stream stream(default_limits());
  stream.feed("set k 0 0 100\r\nabc");
  EXPECT_THAT(stream.seen(), IsEmpty());
  EXPECT_EQ(stream.need(), 15u + 100 + 2);
  Stream line(default_limits());
  line.feed("get abc");
  EXPECT_EQ(line.need(), 0u);
}

// Frame::detail of one message: the size of its key where parse() need not divide the line.
TEST(FrameText, UsualLinesSayTheSizeOfTheirKey) {
  const std::string key46(46, 'k');
  const std::string key47(47, 'k');
  const std::string body = "abc\r\n";
  const std::vector<std::pair<std::string, uint32_t>> cases = {
      {"set key 1 2 3\r\n" + body, 3},
      {"set k -1 x 3\r\n" + body, 1},  // parse() looks at these words
      {"set " + key46 + " 1 2 00003\r\n" + body, 46},
      {"set " + key47 + " 1 22 00003\r\n" + body, 47},  // 64 bytes
      {"set " + key47 + " 1 22 000003\r\n" + body, 0},
      {"set key 1 2 000000003\r\n" + body, 0},
      {"set key 1 2 3\n" + body, 0},
      {"set key 1 2 3 \r\n" + body, 0},
      {"set key 1 2 3 noreply\r\n" + body, 0},
      {"set  key 1 2 3\r\n" + body, 0},
      {"set key 1  2 3\r\n" + body, 0},
      {"add key 1 2 3\r\n" + body, 0},
      {"set key 1 2\r\n", 0},
      {"set key  2 3\r\n", 0},  // no body: the fourth word is the last
      {"set key 1 2 3x\r\n", 0},
      {"set key 1 2 -0\r\n\r\n", 0},
      {"ms key 3\r\n" + body, 3},
      {"ms key 3 c\r\n" + body, 0},
      {"ms key 3\n" + body, 0},
      {"ms  key 3\r\n" + body, 0},
      {"ms key\r\n", 0},
      {"ms key x\r\n", 0},
      {"mg key v\r\n", 3},
      {"mg key\r\n", 3},
      {"mg key  b !\r\n", 3},
      {"mg key v\n", 0},
      {"mg  key v\r\n", 0},
      {"mg    \r\n", 0},
      {"md key v\r\n", 0},
  };
  for (const auto& [message, detail] : cases) {
    HeapCopy input(message);
    FrameState state = {};
    Frame seen = {};
    const FrameResult result = frame(state, default_limits(), input.bytes(), 0, 0, &seen, 1);
    ASSERT_EQ(result.count, 1u) << message;
    EXPECT_EQ(result.consumed, message.size()) << message;
    EXPECT_EQ(seen.detail, detail) << message;
  }
}

// The largest value that fits by memcached's formula, and one byte more.
TEST(FrameText, ItemSizeToTheByte) {
  for (const bool cas : {true, false}) {
    for (const bool flags : {true, false}) {
      for (const size_t key_size : {1u, 100u, 250u}) {
        FrameLimits limits = default_limits();
        limits.cas_enabled = cas;
        limits.inline_body_max = 8 * 1024 * 1024;
        const size_t fits = 1024 * 1024 - 48 - key_size - 1 - 2 - (flags ? 4 : 0) - (cas ? 8 : 0);
        const std::string head = "set " + std::string(key_size, 'k') + (flags ? " 5 0 " : " 0 0 ");
        for (const size_t size : {fits, fits + 1}) {
          const std::string line = head + std::to_string(size) + "\r\n";
          const std::vector<std::string> seen =
              frames_of(line + std::string(size, 'v') + "\r\nmn\r\n", limits);
          ASSERT_EQ(seen.size(), 2u);
          EXPECT_EQ(seen[0].substr(0, 5), size == fits ? "store" : "refus") << key_size;
          EXPECT_EQ(seen[1], "meta<mn\r\n>0");
          limits.inline_body_max = 1024;
          EXPECT_EQ(frames_of(line + std::string(size, 'v') + "\r\nmn\r\n", limits), seen);
          limits.inline_body_max = 8 * 1024 * 1024;
        }
      }
    }
  }
}

TEST(FrameText, TooLargeIsSwallowed) {
  FrameLimits limits = default_limits();
  limits.item_size_max = 1024;
  const std::string bytes = "set k 0 0 2000\r\n" + std::string(2000, '\n') +
                            "\r\nms k 2000 v q\r\n" + std::string(2002, 'x') +
                            "mn\r\nset k x 0 2000\r\n" + std::string(2002, 'y') + "mn\r\n";
  const std::string too_large = ">" + code(Status::kTooLarge) + ":2000";
  EXPECT_THAT(frames_of(bytes, limits),
              ElementsAre("refused<set k 0 0 2000\r\n" + too_large,
                          "refused<ms k 2000 v q\r\n" + too_large, "meta<mn\r\n>0",
                          "refused<set k x 0 2000\r\n>" + code(Status::kBadFormat) + ":2000",
                          "meta<mn\r\n>0"));
  Stream stream(limits);
  for (const char byte : bytes) stream.feed(std::string(1, byte));
  EXPECT_EQ(stream.seen(), frames_of(bytes, limits));
}

TEST(FrameText, KeySizeOfBase64CountsDecoded) {
  FrameLimits limits = default_limits();
  limits.item_size_max = 48 + 3 + 1 + 8 + 100 + 2;
  const std::string body = std::string(100, 'v') + "\r\n";
  EXPECT_EQ(frames_of("ms Zm9v 100 b\r\n" + body, limits)[0].substr(0, 9), "metastore");
  EXPECT_EQ(frames_of("ms Zm9v 100\r\n" + body, limits)[0].substr(0, 7), "refused");
  EXPECT_EQ(frames_of("ms Zm9v 100 b F1\r\n" + body, limits)[0].substr(0, 7), "refused");
}

TEST(FrameText, LargeBodies) {
  FrameLimits limits = default_limits();
  limits.inline_body_max = 10;
  const std::string body(11, 'b');
  const std::string bytes = "set k 0 0 11\r\n" + body + "\r\nset k 0 0 11\r\n" + body +
                            "xxms k 11\r\n" + body + "\r\nget k\r\n";
  EXPECT_THAT(frames_of(bytes, limits),
              ElementsAre("store<set k 0 0 11\r\n>0:11=" + body,
                          "refused<set k 0 0 11\r\n>" + code(Status::kBadDataChunk) + ":11",
                          "metastore<ms k 11\r\n>0:11=" + body, "key<k>4"));
  expect_same_in_pieces(bytes, limits);

  Stream stream(limits);
  stream.reservation = Status::kOutOfMemory;
  for (const char byte : bytes) stream.feed(std::string(1, byte));
  const std::string refused = ">" + code(Status::kOutOfMemory) + ":11";
  EXPECT_THAT(stream.seen(), ElementsAre("refused<set k 0 0 11\r\n" + refused,
                                         "refused<set k 0 0 11\r\n" + refused,
                                         "refused<ms k 11\r\n" + refused, "key<k>4"));
}

TEST(FrameText, LargeBodyOfAWrongLineTakesNoReservation) {
  FrameLimits limits = default_limits();
  limits.inline_body_max = 10;
  HeapCopy input("set k x 0 11\r\n");
  FrameState state = {};
  Frame out[1];
  const FrameResult result = frame(state, limits, input.bytes(), 0, 0, out, 1);
  EXPECT_EQ(result.end, FrameEnd::kNeedMore);
  EXPECT_EQ(out[0].kind, FrameKind::kRefusedStore);
  EXPECT_EQ(state.swallow, 13u);
}

TEST(FrameState, TellsTheProtocolOnceByTheFirstByte) {
  const std::string noop = testing::binary_request(0x0a, "", "", "");
  EXPECT_THAT(frames_of(noop + "mn\r\n"), ElementsAre("binary<" + noop + ">0", "close"));
  FrameLimits text = default_limits();
  text.protocol = kProtocolText;
  EXPECT_THAT(frames_of("\x80\r\n", text), ElementsAre("line<\x80\r\n>0"));
  FrameLimits binary = default_limits();
  binary.protocol = kProtocolBinary;
  EXPECT_THAT(frames_of("mn\r\n", binary), ElementsAre("close"));
}

TEST(FrameState, NothingIsFramedBehindAClose) {
  HeapCopy input("quit\r\n");
  FrameState state = {};
  Frame out[4];
  EXPECT_EQ(frame(state, default_limits(), input.bytes(), 0, 0, out, 4).end, FrameEnd::kClose);
  const FrameResult result = frame(state, default_limits(), input.bytes(), 0, 0, out, 4);
  EXPECT_EQ(result.end, FrameEnd::kClose);
  EXPECT_EQ(result.count, 0u);
}

std::vector<std::string> datagram_frames(const std::string& payload, uint32_t capacity = 16) {
  HeapCopy input(payload);
  FrameState state = {};
  std::vector<Frame> out(capacity);
  std::vector<std::string> seen;
  uint32_t at = 0;
  for (int call = 0; call < 100; ++call) {
    const FrameResult result = frame_datagram(state, default_limits(), input.bytes().from(at), at,
                                              0, out.data(), capacity);
    for (uint32_t i = 0; i < result.count; ++i) seen.push_back(describe(out[i], input.data()));
    at += result.consumed;
    if (result.end == FrameEnd::kClose) return seen;
    EXPECT_EQ(result.end, FrameEnd::kFull);
  }
  ADD_FAILURE() << "no end";
  return seen;
}

TEST(FrameDatagram, TakesWholeMessages) {
  for (const uint32_t capacity : {1u, 16u}) {
    EXPECT_THAT(datagram_frames("get a b\r\nset k 0 0 1\r\nx\r\n", capacity),
                ElementsAre("key<a>0", "key<b>4", "store<set k 0 0 1\r\n>0:1=x"));
    EXPECT_THAT(datagram_frames("", capacity), IsEmpty());
  }
  const std::string body(100000, 'b');
  EXPECT_EQ(datagram_frames("set k 0 0 100000\r\n" + body + "\r\n")[0].substr(0, 6), "store<");
}

TEST(FrameDatagram, RefusesWhatIsUnfinished) {
  for (const uint32_t capacity : {1u, 16u}) {
    EXPECT_THAT(datagram_frames("get a", capacity), ElementsAre(invalid(Status::kBadFormat)));
    EXPECT_THAT(datagram_frames("mn\r\nset k 0 0 5\r\nabc", capacity),
                ElementsAre("meta<mn\r\n>0", invalid(Status::kBadFormat)));
    const std::string get = testing::binary_request(0, "", "key", "");
    EXPECT_THAT(datagram_frames(get + get.substr(0, 25), capacity),
                ElementsAre("binary<" + get + ">0", "invalidbinary<" + get.substr(0, 24) + ">" +
                                                        code(Status::kInvalidArguments)));
    EXPECT_THAT(datagram_frames(get.substr(0, 23), capacity), IsEmpty());
  }
}

TEST(ItemSize, AsMemcached) {
  EXPECT_EQ(item_size_as_memcached(1, 0, 1, true), 48u + 1 + 1 + 8 + 1 + 2);
  EXPECT_EQ(item_size_as_memcached(1, 7, 1, false), 48u + 1 + 1 + 4 + 1 + 2);
}

}  // namespace
}  // namespace warpcache::protocol
