// SPDX-License-Identifier: Apache-2.0
#include "protocol/compose/compose.h"

#include <gtest/gtest.h>

#include <string>

#include "protocol/framing/frame.h"
#include "protocol/parse/parse.h"
#include "protocol/testing/messages.h"

namespace warpcache::protocol {
namespace {

using testing::big_endian;
using testing::binary_request;
using testing::HeapCopy;

Result result_of(Outcome outcome, Status status = Status::kOk) {
  Result result = {};
  result.outcome = outcome;
  result.status = status;
  return result;
}

const std::string kValue = "value";

Result hit() {
  Result result = result_of(Outcome::kHit);
  result.value = bytes_of(kValue);
  result.value_size = static_cast<uint32_t>(kValue.size());
  result.client_flags = 4294967295u;
  result.cas = UINT64_MAX;
  result.ttl = -1;
  result.idle = 17;
  return result;
}

// The whole reply to a message with the result `result`; checks it against its bound.
std::string reply(const std::string& message, const Result& result) {
  HeapCopy input(message);
  FrameState state = {};
  Frame framed[1];
  EXPECT_EQ(frame(state, testing::default_limits(), input.bytes(), 0, 0, framed, 1).count, 1u)
      << message;
  Request request = {};
  parse_request(framed[0], input.data(), request);
  std::string out(2048, '#');
  auto* begin = reinterpret_cast<uint8_t*>(out.data());
  uint8_t* end = compose_head(request, result, input.data(), begin);
  auto frame_size = static_cast<size_t>(end - begin);
  if (reply_carries_value(request, result)) end = put(end, result.value);
  uint8_t* const tail = end;
  end = compose_tail(request, result, input.data(), end);
  frame_size += static_cast<size_t>(end - tail);
  EXPECT_LE(frame_size, reply_bound(request, result)) << message;
  if (frame_size == 0) {
    EXPECT_TRUE(reply_is_silent(request, result) || request.op == Op::kGet) << message;
  }
  return out.substr(0, static_cast<size_t>(end - begin));
}

std::string reply(const std::string& message, Outcome outcome, Status status = Status::kOk) {
  return reply(message, result_of(outcome, status));
}

TEST(ComposeText, Reads) {
  EXPECT_EQ(reply("get key\r\n", hit()), "VALUE key 4294967295 5\r\nvalue\r\nEND\r\n");
  EXPECT_EQ(reply("gets key\r\n", hit()),
            "VALUE key 4294967295 5 18446744073709551615\r\nvalue\r\nEND\r\n");
  EXPECT_EQ(reply("get key b\r\n", hit()), "VALUE key 4294967295 5\r\nvalue\r\n");
  EXPECT_EQ(reply("gat 0 key\r\n", hit()), "VALUE key 4294967295 5\r\nvalue\r\nEND\r\n");
  EXPECT_EQ(reply("get key\r\n", Outcome::kMiss), "END\r\n");
  EXPECT_EQ(reply("get key b\r\n", Outcome::kMiss), "");
  EXPECT_EQ(reply("gets " + std::string(250, 'k') + "\r\n", hit()).size(),
            6 + 250 + 36 + 5 + 2 + 5u);
  EXPECT_EQ(reply("get key\r\n", Outcome::kError, Status::kOutOfMemory),
            "SERVER_ERROR out of memory writing get response\r\n");
}

TEST(ComposeText, Outcomes) {
  const std::string set = "set k 0 0 1\r\nv\r\n";
  EXPECT_EQ(reply(set, Outcome::kStored), "STORED\r\n");
  EXPECT_EQ(reply(set, Outcome::kNotStored), "NOT_STORED\r\n");
  EXPECT_EQ(reply(set, Outcome::kExists), "EXISTS\r\n");
  EXPECT_EQ(reply(set, Outcome::kNotFound), "NOT_FOUND\r\n");
  EXPECT_EQ(reply("delete k\r\n", Outcome::kDeleted), "DELETED\r\n");
  EXPECT_EQ(reply("touch k 0\r\n", Outcome::kTouched), "TOUCHED\r\n");
  EXPECT_EQ(reply("flush_all\r\n", Outcome::kOk), "OK\r\n");
  EXPECT_EQ(reply("version\r\n", Outcome::kVersion),
            "VERSION " + testing::text_of(server_version()) + "\r\n");
  Result number = result_of(Outcome::kNumber);
  number.number = UINT64_MAX;
  EXPECT_EQ(reply("incr k 1\r\n", number), "18446744073709551615\r\n");
  EXPECT_EQ(reply("quit\r\n", Outcome::kOk), "");
}

TEST(ComposeText, NoreplySilencesAll) {
  for (const Outcome outcome : {Outcome::kStored, Outcome::kExists, Outcome::kError}) {
    EXPECT_EQ(reply("set k 0 0 1 noreply\r\nv\r\n", outcome, Status::kTooLarge), "");
  }
  EXPECT_EQ(reply("incr k x noreply\r\n", Outcome::kError, Status::kBadDelta), "");
}

TEST(ComposeText, Errors) {
  const auto error = [](Status status, const char* message = "x\r\n") {
    return reply(message, Outcome::kError, status);
  };
  EXPECT_EQ(error(Status::kUnknownCommand), "ERROR\r\n");
  EXPECT_EQ(error(Status::kBadFormat), "CLIENT_ERROR bad command line format\r\n");
  EXPECT_EQ(error(Status::kKeyTooLong), "CLIENT_ERROR bad command line format\r\n");
  EXPECT_EQ(error(Status::kBadDataChunk), "CLIENT_ERROR bad data chunk\r\n");
  EXPECT_EQ(error(Status::kBadExptime), "CLIENT_ERROR invalid exptime argument\r\n");
  EXPECT_EQ(error(Status::kBadDelta), "CLIENT_ERROR invalid numeric delta argument\r\n");
  EXPECT_EQ(error(Status::kNonNumeric),
            "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
  EXPECT_EQ(error(Status::kTooLarge), "SERVER_ERROR object too large for cache\r\n");
  EXPECT_EQ(error(Status::kOutOfMemory), "SERVER_ERROR out of memory storing object\r\n");
  EXPECT_EQ(error(Status::kOutOfMemory, "incr k 1\r\n"), "SERVER_ERROR out of memory\r\n");
  EXPECT_EQ(error(Status::kUnauthenticated), "CLIENT_ERROR unauthenticated\r\n");
  EXPECT_EQ(error(Status::kFlushDisabled), "CLIENT_ERROR flush_all not allowed\r\n");
  EXPECT_EQ(error(Status::kShutdownDisabled), "SERVER_ERROR: shutdown not enabled\r\n");
  EXPECT_EQ(error(Status::kBadFlag), "CLIENT_ERROR invalid flag\r\n");
  EXPECT_EQ(error(Status::kDuplicateFlag), "CLIENT_ERROR duplicate flag\r\n");
  EXPECT_EQ(error(Status::kBadFlags), "CLIENT_ERROR invalid or duplicate flag\r\n");
  EXPECT_EQ(error(Status::kTooManyFlags), "CLIENT_ERROR options flags are too long\r\n");
  EXPECT_EQ(error(Status::kBadToken), "CLIENT_ERROR bad token in command line format\r\n");
  EXPECT_EQ(error(Status::kBadOpaque), "CLIENT_ERROR opaque token too long\r\n");
  EXPECT_EQ(error(Status::kBadKeyEncoding), "CLIENT_ERROR error decoding key\r\n");
  EXPECT_EQ(error(Status::kBadInitial), "CLIENT_ERROR invalid numeric initial value\r\n");
  EXPECT_EQ(error(Status::kBadMetaDelta), "CLIENT_ERROR invalid numeric delta value\r\n");
  EXPECT_EQ(error(Status::kBadSetMode), "CLIENT_ERROR invalid mode for ms M token\r\n");
  EXPECT_EQ(error(Status::kBadArithmeticMode), "CLIENT_ERROR invalid mode for ma M token\r\n");
}

TEST(ComposeText, EveryErrorFitsItsBound) {
  for (int status = 0; status < static_cast<int>(Status::kDeferred); ++status) {
    for (int op = 0; op <= static_cast<int>(Op::kInvalid); ++op) {
      EXPECT_LE(error_text(static_cast<Op>(op), static_cast<Status>(status)).size + 2,
                kErrorTextMax);
    }
  }
  static_assert(kErrorTextMax <= kTextLineMax && kErrorTextMax <= kMetaFrameMax);
}

TEST(ComposeMeta, GetHits) {
  Result result = hit();
  EXPECT_EQ(reply("mg key\r\n", result), "HD\r\n");
  EXPECT_EQ(reply("mg key v\r\n", result), "VA 5\r\nvalue\r\n");
  EXPECT_EQ(reply("mg key v q\r\n", result), "VA 5\r\nvalue\r\n");
  EXPECT_EQ(reply("mg key s t c f l h k Oxyz v\r\n", result),
            "VA 5 s5 t-1 c18446744073709551615 f4294967295 l17 h0 kkey Oxyz\r\nvalue\r\n");
  result.bits = kHitBefore | kItemKeyIsBinary;
  result.ttl = 4294967;
  EXPECT_EQ(reply("mg foo Oabc k h t q\r\n", result), "HD Oabc kZm9v b h1 t4294967\r\n");
  EXPECT_EQ(reply("mg Zm9v k b\r\n", result), "HD kZm9v b\r\n");
  result.bits = kWon | kStale | kAlreadySent;
  EXPECT_EQ(reply("mg key s\r\n", result), "HD s5 Z X W\r\n");
  result.bits = kWon | kStale;
  EXPECT_EQ(reply("mg key v s\r\n", result), "VA 5 s5 X W\r\nvalue\r\n");
}

TEST(ComposeMeta, GetOfWhatTheClientHas) {
  EXPECT_EQ(reply("mg key v s C18446744073709551615\r\n", hit()), "HD s5\r\n");
  EXPECT_EQ(reply("mg key v s C5\r\n", hit()), "VA 5 s5\r\nvalue\r\n");
}

TEST(ComposeMeta, GetMisses) {
  EXPECT_EQ(reply("mg key s v t\r\n", Outcome::kMiss), "EN\r\n");
  EXPECT_EQ(reply("mg key k Oabc s\r\n", Outcome::kMiss), "EN kkey Oabc\r\n");
  EXPECT_EQ(reply("mg Zm9v b k\r\n", Outcome::kMiss), "EN kZm9v b\r\n");
  EXPECT_EQ(reply("mg key q k\r\n", Outcome::kMiss), "");
}

TEST(ComposeMeta, Set) {
  Result stored = result_of(Outcome::kStored);
  stored.cas = 12;
  stored.value_size = 7;
  const auto set = [](const char* flags) {
    return std::string("ms foo 2 ") + flags + "\r\nab\r\n";
  };
  EXPECT_EQ(reply(set(""), stored), "HD\r\n");
  EXPECT_EQ(reply(set("c k s Oq F5 T0"), stored), "HD c12 kfoo s7 Oq\r\n");
  EXPECT_EQ(reply("ms Zm9v 2 b k\r\nab\r\n", stored), "HD kZm9v b\r\n");
  EXPECT_EQ(reply(set("q"), stored), "");
  EXPECT_EQ(reply(set("q c s"), Outcome::kExists), "EX c0 s2\r\n");
  EXPECT_EQ(reply(set("q Ox"), Outcome::kNotStored), "NS Ox\r\n");
  EXPECT_EQ(reply(set("k"), Outcome::kNotFound), "NF kfoo\r\n");
  EXPECT_EQ(reply(set("q"), Outcome::kError, Status::kTooLarge),
            "SERVER_ERROR object too large for cache\r\n");
}

TEST(ComposeMeta, Delete) {
  EXPECT_EQ(reply("md foo\r\n", Outcome::kDeleted), "HD\r\n");
  EXPECT_EQ(reply("md foo q\r\n", Outcome::kDeleted), "");
  EXPECT_EQ(reply("md foo q k Oabc\r\n", Outcome::kNotFound), "NF kfoo Oabc\r\n");
  EXPECT_EQ(reply("md foo k c t\r\n", Outcome::kExists), "EX kfoo\r\n");
}

TEST(ComposeMeta, Arithmetic) {
  Result number = result_of(Outcome::kNumber);
  number.number = 1234;
  number.cas = 9;
  number.ttl = 55;
  EXPECT_EQ(reply("ma n\r\n", number), "HD\r\n");
  EXPECT_EQ(reply("ma n v\r\n", number), "VA 4\r\n1234\r\n");
  EXPECT_EQ(reply("ma n t c v Ox k\r\n", number), "VA 4 t55 c9 Ox kn\r\n1234\r\n");
  EXPECT_EQ(reply("ma n v q\r\n", number), "");
  EXPECT_EQ(reply("ma n q k c\r\n", Outcome::kNotFound), "NF kn\r\n");
  EXPECT_EQ(reply("ma n Oq\r\n", Outcome::kExists), "EX Oq\r\n");
  EXPECT_EQ(reply("ma n q\r\n", Outcome::kError, Status::kNonNumeric),
            "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
}

TEST(ComposeMeta, NoopAndDebug) {
  EXPECT_EQ(reply("mn\r\n", Outcome::kNoop), "MN\r\n");
  Result result = hit();
  result.cas = 3;
  result.item_size = 64;
  EXPECT_EQ(reply("me foo\r\n", result), "ME foo exp=-1 la=17 cas=3 fetch=no cls=1 size=64\r\n");
  result.bits = kHitBefore | kItemKeyIsBinary;
  EXPECT_EQ(reply("me Zm9v b\r\n", result),
            "ME Zm9v exp=-1 la=17 cas=3 fetch=yes cls=1 size=64\r\n");
  EXPECT_EQ(reply("me foo\r\n", Outcome::kMiss), "EN\r\n");
}

TEST(ComposeMeta, LargestReplyFitsItsBound) {
  Result result = hit();
  result.bits = 0xff;
  result.ttl = INT32_MIN;
  result.idle = UINT32_MAX;
  result.value_size = 1u << 30;
  result.item_size = UINT32_MAX;
  const std::string key(248, 'k');
  const std::string flags = " s t c f l h k v O" + std::string(31, 'o') + "\r\n";
  EXPECT_GT(reply("mg " + key + flags, result).size(), 400u);
  EXPECT_GT(reply("me " + std::string(250, 'k') + "\r\n", result).size(), 300u);
}

// A binary reply as text: opcode, status, extras, key, value, cas.
std::string binary(uint8_t opcode, uint16_t status, const std::string& extras,
                   const std::string& key, const std::string& value, uint64_t cas = 0) {
  std::string bytes = binary_request(opcode, extras, key, value, cas);
  bytes[0] = '\x81';
  bytes[6] = static_cast<char>(status >> 8);
  bytes[7] = static_cast<char>(status);
  return bytes;
}

std::string on_key(uint8_t opcode, size_t extras = 0) {
  return binary_request(opcode, std::string(extras, '\0'), "key", "");
}

TEST(ComposeBinary, Reads) {
  const std::string flags = big_endian(0xffffffff, 4);
  for (const uint8_t opcode : {kOpGet, kOpGetQ}) {
    EXPECT_EQ(reply(on_key(opcode), hit()), binary(opcode, 0, flags, "", kValue, UINT64_MAX));
  }
  for (const uint8_t opcode : {kOpGetK, kOpGetKQ}) {
    EXPECT_EQ(reply(on_key(opcode), hit()), binary(opcode, 0, flags, "key", kValue, UINT64_MAX));
  }
  EXPECT_EQ(reply(on_key(kOpGatK, 4), hit()), binary(kOpGatK, 0, flags, "key", kValue, UINT64_MAX));
  EXPECT_EQ(reply(on_key(kOpGet), Outcome::kMiss), binary(kOpGet, 1, "", "", "Not found"));
  EXPECT_EQ(reply(on_key(kOpGetK), Outcome::kMiss), binary(kOpGetK, 1, "", "key", ""));
  for (const uint8_t opcode : {kOpGetQ, kOpGetKQ})
    EXPECT_EQ(reply(on_key(opcode), Outcome::kMiss), "");
  for (const uint8_t opcode : {kOpGatQ, kOpGatKQ})
    EXPECT_EQ(reply(on_key(opcode, 4), Outcome::kMiss), "");
}

TEST(ComposeBinary, Touch) {
  Result touched = hit();
  touched.outcome = Outcome::kTouched;
  EXPECT_EQ(reply(on_key(kOpTouch, 4), touched),
            binary(kOpTouch, 0, big_endian(0xffffffff, 4), "", "", UINT64_MAX));
  EXPECT_EQ(reply(on_key(kOpTouch, 4), Outcome::kNotFound),
            binary(kOpTouch, 1, "", "", "Not found"));
}

TEST(ComposeBinary, Stores) {
  Result stored = result_of(Outcome::kStored);
  stored.cas = 77;
  EXPECT_EQ(reply(on_key(kOpSet, 8), stored), binary(kOpSet, 0, "", "", "", 77));
  EXPECT_EQ(reply(on_key(kOpSetQ, 8), stored), "");
  EXPECT_EQ(reply(on_key(kOpSetQ, 8), Outcome::kExists),
            binary(kOpSetQ, 2, "", "", "Data exists for key."));
  EXPECT_EQ(reply(on_key(kOpSet, 8), Outcome::kNotFound), binary(kOpSet, 1, "", "", "Not found"));
  EXPECT_EQ(reply(on_key(kOpAdd, 8), Outcome::kNotStored),
            binary(kOpAdd, 2, "", "", "Data exists for key."));
  EXPECT_EQ(reply(on_key(kOpReplaceQ, 8), Outcome::kNotStored),
            binary(kOpReplaceQ, 1, "", "", "Not found"));
  EXPECT_EQ(reply(on_key(kOpAppend), Outcome::kNotStored),
            binary(kOpAppend, 5, "", "", "Not stored."));
  EXPECT_EQ(reply(on_key(kOpSetQ, 8), Outcome::kError, Status::kTooLarge),
            binary(kOpSetQ, 3, "", "", "Too large."));
  EXPECT_EQ(reply(on_key(kOpSet, 8), Outcome::kError, Status::kOutOfMemory),
            binary(kOpSet, 0x82, "", "", "Out of memory allocating item"));
}

TEST(ComposeBinary, Others) {
  EXPECT_EQ(reply(on_key(kOpDelete), Outcome::kDeleted), binary(kOpDelete, 0, "", "", ""));
  EXPECT_EQ(reply(on_key(kOpDeleteQ), Outcome::kDeleted), "");
  EXPECT_EQ(reply(on_key(kOpDeleteQ), Outcome::kNotFound),
            binary(kOpDeleteQ, 1, "", "", "Not found"));
  Result number = result_of(Outcome::kNumber);
  number.number = 0x0102030405060708u;
  number.cas = 5;
  EXPECT_EQ(reply(on_key(kOpIncrement, 20), number),
            binary(kOpIncrement, 0, "", "", "\x01\x02\x03\x04\x05\x06\x07\x08", 5));
  EXPECT_EQ(reply(on_key(kOpDecrementQ, 20), number), "");
  EXPECT_EQ(reply(on_key(kOpIncrement, 20), Outcome::kError, Status::kNonNumeric),
            binary(kOpIncrement, 6, "", "", "Non-numeric server-side value for incr or decr"));
  const std::string version = testing::text_of(server_version());
  EXPECT_EQ(reply(binary_request(kOpVersion, "", "", ""), Outcome::kVersion),
            binary(kOpVersion, 0, "", "", version));
  EXPECT_EQ(reply(binary_request(kOpNoop, "", "", ""), Outcome::kNoop),
            binary(kOpNoop, 0, "", "", ""));
  EXPECT_EQ(reply(binary_request(kOpQuit, "", "", ""), Outcome::kOk),
            binary(kOpQuit, 0, "", "", ""));
  EXPECT_EQ(reply(binary_request(kOpQuitQ, "", "", ""), Outcome::kOk), "");
  EXPECT_EQ(reply(binary_request(kOpFlushQ, "", "", ""), Outcome::kOk), "");
  EXPECT_EQ(reply(binary_request(kOpFlush, "", "", ""), Outcome::kError, Status::kFlushDisabled),
            binary(kOpFlush, 0x20, "", "", "Auth failure."));
  EXPECT_EQ(reply(binary_request(0x70, "", "", ""), Outcome::kError, Status::kUnknownCommand),
            binary(0x70, 0x81, "", "", "Unknown command"));
  EXPECT_EQ(reply(on_key(kOpVersion), Outcome::kError, Status::kInvalidArguments),
            binary(kOpVersion, 4, "", "", "Invalid arguments"));
}

}  // namespace
}  // namespace warpcache::protocol
