// SPDX-License-Identifier: Apache-2.0
#include "protocol/parse/parse.h"

#include <gtest/gtest.h>

#include <string>

#include "protocol/framing/frame.h"
#include "protocol/testing/messages.h"
#include "protocol/testing/parsed.h"

namespace warpcache::protocol {
namespace {

using testing::big_endian;
using testing::binary_request;
using testing::kLongKey;
using testing::Parsed;

void expect_invalid(const std::string& message, Status status, uint32_t bits = 0) {
  Parsed parsed(message);
  EXPECT_EQ(parsed.request.op, Op::kInvalid) << message;
  EXPECT_EQ(parsed.request.status, status) << message;
  EXPECT_EQ(parsed.request.bits & kNoReply, bits) << message;
}

void expect_op(const std::string& message, Op op, uint32_t bits, const std::string& key) {
  Parsed parsed(message);
  EXPECT_EQ(parsed.request.op, op) << message;
  EXPECT_EQ(parsed.request.bits, bits) << message;
  EXPECT_EQ(parsed.request.status, Status::kOk) << message;
  EXPECT_EQ(parsed.key(), key) << message;
}

TEST(ParseText, Reads) {
  expect_op("get a\r\n", Op::kGet, kReturnValue | kLastKey, "a");
  expect_op("get a b\r\n", Op::kGet, kReturnValue, "a");
  expect_op("gets a\r\n", Op::kGet, kReturnValue | kReturnCas | kLastKey, "a");
  expect_op("gat 7 a\r\n", Op::kGet, kReturnValue | kTouchBit | kLastKey, "a");
  Parsed gats("gats -7 a\r\n");
  EXPECT_EQ(gats.request.exptime, -7);
  EXPECT_EQ(gats.request.bits, kReturnValue | kTouchBit | kReturnCas | kLastKey);
}

TEST(ParseText, ReadErrors) {
  for (const std::string& line :
       {std::string("get"), std::string("gets "), std::string("gat"), std::string("gat 1"),
        "get " + kLongKey, "get a " + kLongKey, "gat 1 " + kLongKey}) {
    expect_invalid(line + "\r\n", Status::kBadFormat);
  }
  expect_invalid("get " + kLongKey + " noreply\r\n", Status::kBadFormat, kNoReply);
  expect_invalid("gat x a\r\n", Status::kBadExptime);
  expect_invalid("gats 99999999999 a\r\n", Status::kBadExptime);
}

TEST(ParseText, Stores) {
  Parsed set("set key 5 -10 3 noreply\r\nabc\r\n");
  EXPECT_EQ(set.request.op, Op::kSet);
  EXPECT_EQ(set.request.bits, uint32_t{kNoReply});
  EXPECT_EQ(set.key(), "key");
  EXPECT_EQ(set.value(), "abc");
  EXPECT_EQ(set.request.client_flags, 5u);
  EXPECT_EQ(set.request.exptime, -10);
  Parsed cas("cas key 4294967295 0 0 18446744073709551615 noreply\r\n\r\n");
  EXPECT_EQ(cas.request.bits, kNoReply | kCasCompare);
  EXPECT_EQ(cas.request.cas_compare, UINT64_MAX);
  EXPECT_EQ(cas.request.client_flags, UINT32_MAX);
  EXPECT_EQ(cas.value(), "");
  expect_op("add k 0 0 0\r\n\r\n", Op::kAdd, 0, "k");
  expect_op("replace k 0 0 0\r\n\r\n", Op::kReplace, 0, "k");
  expect_op("append k 0 0 0\r\n\r\n", Op::kAppend, 0, "k");
  expect_op("prepend k 0 0 0\r\n\r\n", Op::kPrepend, 0, "k");
  expect_op("set k 0 0 0 anything\r\n\r\n", Op::kSet, 0, "k");
}

// memcached cuts flags and exptime to 32 bits. Numbers of up to ten digits are read where the words
// of a set are known already, and others where the line is divided again: both as add is.
TEST(ParseText, StoresCutNumbersTo32Bits) {
  for (const char* number :
       {"0", "7", "12345678", "999999999", "0000000000", "1000000000", "2147483647", "2147483648",
        "4294967295", "4294967296", "9999999999", "10000000000", "00000000001",
        "18446744073709551616", "99999999999999999999", "-1", "+1", "1x", "12345678901x"}) {
    const std::string numbers[] = {std::string(number) + " 0", "0 " + std::string(number)};
    for (const std::string& words : numbers) {
      const std::string rest = " key " + words + " 3\r\nabc\r\n";
      Parsed set("set" + rest);
      Parsed add("add" + rest);
      EXPECT_EQ(set.request.op == Op::kSet, add.request.op == Op::kAdd) << rest;
      EXPECT_EQ(set.request.status, add.request.status) << rest;
      EXPECT_EQ(set.request.client_flags, add.request.client_flags) << rest;
      EXPECT_EQ(set.request.exptime, add.request.exptime) << rest;
    }
  }
  EXPECT_EQ(Parsed("set key 4294967295 0 0\r\n\r\n").request.client_flags, UINT32_MAX);
  EXPECT_EQ(Parsed("set key 4294967296 0 0\r\n\r\n").request.client_flags, 0u);
  EXPECT_EQ(Parsed("set key 9999999999 0 0\r\n\r\n").request.client_flags, 1410065407u);
  EXPECT_EQ(Parsed("set key 0 4294967295 0\r\n\r\n").request.exptime, -1);
}

// frame() has found the key: only other forms of the numbers are read by the general way.
TEST(ParseText, UsualSetsAreReadWithNumbersOfUpToTenDigits) {
  const auto reads = [](const std::string& line) {
    Parsed parsed(line);
    Request request = {};
    return parsed.frame_.detail != 0 &&
           parse_usual_set(parsed.input.data(), parsed.frame_, request);
  };
  EXPECT_TRUE(reads("set key 4294967295 0 0\r\n\r\n"));
  EXPECT_TRUE(reads("set key 9999999999 9999999999 0\r\n\r\n"));
  EXPECT_FALSE(reads("set key 10000000000 0 0\r\n\r\n"));
  EXPECT_FALSE(reads("set key 0 -1 0\r\n\r\n"));
}

TEST(ParseText, StoreErrors) {
  for (const char* line : {"set", "set k", "set k 0", "set k 0 0", "set k 0 0 x", "set k 0 0 -1",
                           "set k 0 0 1x", "set k 0 0 -1 noreply", "cas k 0 0"}) {
    expect_invalid(std::string(line) + "\r\n", Status::kBadFormat);
  }
  expect_invalid("set k x 0 0\r\n\r\n", Status::kBadFormat);
  expect_invalid("set k -1 0 0\r\n\r\n", Status::kBadFormat);
  expect_invalid("set k 0 x 0 noreply\r\n\r\n", Status::kBadFormat, kNoReply);
  expect_invalid("cas k 0 0 0\r\n\r\n", Status::kBadFormat);
  expect_invalid("cas k 0 0 0 noreply\r\n\r\n", Status::kBadFormat, kNoReply);
  expect_invalid("cas k 0 0 0 -1\r\n\r\n", Status::kBadFormat);
  expect_invalid("set " + kLongKey + " 0 0 0 noreply\r\n\r\n", Status::kBadFormat, kNoReply);
}

TEST(ParseText, BadDataChunkKeepsNoreply) {
  Parsed parsed("set k 0 0 1 noreply\r\nxyz\r\n");
  EXPECT_EQ(parsed.request.status, Status::kBadDataChunk);
  EXPECT_EQ(parsed.request.bits, uint32_t{kNoReply});
}

TEST(ParseText, RefusedStoresSayWhatToDrop) {
  FrameLimits limits = testing::default_limits();
  limits.item_size_max = 200;
  const auto drops = [&](const std::string& line) {
    Parsed parsed(line, limits);
    EXPECT_EQ(parsed.request.status, Status::kTooLarge) << line;
    EXPECT_LT(parsed.request.op, Op::kDelete);
    EXPECT_EQ(parsed.request.value_size, 300u);
    return (parsed.request.bits & kDropOld) != 0;
  };
  EXPECT_TRUE(drops("set k 0 0 300\r\n"));
  EXPECT_FALSE(drops("cas k 0 0 300 1\r\n"));
  EXPECT_FALSE(drops("add k 0 0 300\r\n"));
  EXPECT_FALSE(drops("append k 0 0 300\r\n"));
  EXPECT_TRUE(drops("ms k 300\r\n"));
  EXPECT_TRUE(drops("ms k 300 MA\r\n"));
  const std::string extras(8, '\0');
  EXPECT_TRUE(drops(binary_request(kOpSet, extras, "k", std::string(300, 'v'))));
  EXPECT_TRUE(drops(binary_request(kOpSetQ, extras, "k", std::string(300, 'v'), 5)));
  EXPECT_FALSE(drops(binary_request(kOpAdd, extras, "k", std::string(300, 'v'))));
}

TEST(ParseText, OtherCommandsOnKeys) {
  expect_op("delete k\r\n", Op::kDelete, 0, "k");
  expect_op("delete k 0\r\n", Op::kDelete, 0, "k");
  expect_op("delete k noreply\r\n", Op::kDelete, kNoReply, "k");
  expect_op("touch k 5\r\n", Op::kTouch, 0, "k");
  expect_op("incr k 5 noreply\r\n", Op::kIncr, kNoReply, "k");
  expect_op("decr k 18446744073709551615\r\n", Op::kDecr, 0, "k");
  Parsed incr("incr k 18446744073709551615\n");
  EXPECT_EQ(incr.request.delta, UINT64_MAX);
  Parsed touch("touch k -5\r\n");
  EXPECT_EQ(touch.request.exptime, -5);
  for (const char* line : {"delete", "touch k", "incr k", "decr"}) {
    expect_invalid(std::string(line) + "\r\n", Status::kBadFormat);
  }
  expect_invalid("delete " + kLongKey + "\r\n", Status::kBadFormat);
  expect_invalid("touch k x\r\n", Status::kBadExptime);
  expect_invalid("incr k x\r\n", Status::kBadDelta);
  expect_invalid("incr k -1\r\n", Status::kBadDelta);
  expect_invalid("incr k noreply\r\n", Status::kBadDelta, kNoReply);
}

TEST(ParseText, Administration) {
  expect_op("quit\r\n", Op::kQuit, 0, "");
  expect_op("version noreply\r\n", Op::kVersion, 0, "");
  expect_op("flush_all noreply\r\n", Op::kFlushAll, kNoReply, "");
  Parsed flush("flush_all 10 noreply\r\n");
  EXPECT_EQ(flush.request.exptime, 10);
  EXPECT_EQ(flush.request.bits, uint32_t{kNoReply});
  expect_invalid("flush_all x\r\n", Status::kBadExptime);
  expect_invalid("flush_all x noreply\r\n", Status::kBadExptime, kNoReply);
  Parsed verbosity("verbosity 2\r\n");
  EXPECT_EQ(verbosity.request.op, Op::kVerbosity);
  EXPECT_EQ(verbosity.request.delta, 2u);
  expect_invalid("verbosity\r\n", Status::kBadFormat);
  expect_invalid("verbosity -1 noreply\r\n", Status::kBadFormat, kNoReply);
  Parsed memlimit("cache_memlimit 128\r\n");
  EXPECT_EQ(memlimit.request.op, Op::kCacheMemlimit);
  EXPECT_EQ(memlimit.request.delta, 128u);
  expect_invalid("cache_memlimit x\r\n", Status::kUnknownCommand);
  Parsed stats("stats  detail on\r\n");
  EXPECT_EQ(stats.request.op, Op::kStats);
  EXPECT_EQ(stats.value(), "detail on");
  EXPECT_EQ(Parsed("stats\r\n").value(), "");
  Parsed shutdown("shutdown graceful\r\n");
  EXPECT_EQ(shutdown.request.op, Op::kShutdown);
  EXPECT_EQ(shutdown.value(), "graceful");
  for (const char* line : {"lru_crawler enable", "lru mode flat", "slabs reassign 1 2",
                           "watch evictions", "debugtime p", "refresh_certs", "extstore x"}) {
    Parsed parsed(std::string(line) + "\r\n");
    EXPECT_EQ(parsed.request.op, Op::kAdmin);
    EXPECT_EQ(parsed.value(), line);
  }
}

TEST(ParseText, UnknownCommands) {
  for (const char* line :
       {"foo", "foo bar", "get2 a", "GET a", "quits", " get a", "me2 k", "mx k"}) {
    expect_invalid(std::string(line) + "\r\n", Status::kUnknownCommand);
  }
  expect_invalid("foo noreply\r\n", Status::kUnknownCommand, kNoReply);
  expect_invalid("noreply\r\n", Status::kUnknownCommand, kNoReply);
  for (const char* line : {"\r\n", "\n", "a\r\n", "ab\n"}) expect_invalid(line, Status::kBadFormat);
}

TEST(ParseBinary, Fields) {
  const std::string extras = big_endian(0xdeadbeef, 4) + big_endian(100, 4);
  Parsed set(binary_request(kOpSetQ, extras, "key", "value", 42));
  EXPECT_EQ(set.request.protocol, Protocol::kBinary);
  EXPECT_EQ(set.request.op, Op::kSet);
  EXPECT_EQ(set.request.bits, kQuiet | kCasCompare);
  EXPECT_EQ(set.request.cas_compare, 42u);
  EXPECT_EQ(set.request.client_flags, 0xdeadbeefu);
  EXPECT_EQ(set.request.exptime, 100);
  EXPECT_EQ(set.request.opaque, 0xa1b2c3d4u);
  EXPECT_EQ(set.request.binary_opcode, kOpSetQ);
  EXPECT_EQ(set.key(), "key");
  EXPECT_EQ(set.value(), "value");
  // Add and replace with a CAS id are compare-and-swap.
  EXPECT_EQ(Parsed(binary_request(kOpAdd, extras, "k", "", 1)).request.op, Op::kSet);
  EXPECT_EQ(Parsed(binary_request(kOpAppend, "", "k", "v", 1)).request.op, Op::kAppend);
}

TEST(ParseBinary, Opcodes) {
  const auto on_key = [](uint8_t opcode, size_t extras) {
    return binary_request(opcode, std::string(extras, '\0'), "k", "");
  };
  expect_op(on_key(kOpGet, 0), Op::kGet, kReturnValue, "k");
  expect_op(on_key(kOpGetKQ, 0), Op::kGet, kReturnValue | kReturnKey | kQuiet, "k");
  expect_op(on_key(kOpGatKQ, 4), Op::kGet, kReturnValue | kTouchBit | kReturnKey | kQuiet, "k");
  expect_op(on_key(kOpTouch, 4), Op::kTouch, 0, "k");
  expect_op(on_key(kOpDeleteQ, 0), Op::kDelete, kQuiet, "k");
  expect_op(on_key(kOpReplace, 8), Op::kReplace, 0, "k");
  expect_op(on_key(kOpPrependQ, 0), Op::kPrepend, kQuiet, "k");
  expect_op(binary_request(kOpQuitQ, "", "", ""), Op::kQuit, kQuiet, "");
  expect_op(binary_request(kOpNoop, "", "", ""), Op::kNoop, 0, "");
  expect_op(binary_request(kOpFlushQ, "", "", ""), Op::kFlushAll, kQuiet, "");
  EXPECT_EQ(Parsed(binary_request(kOpFlush, big_endian(9, 4), "", "")).request.exptime, 9);
  expect_op(binary_request(kOpSaslListMechanisms, "", "", ""), Op::kSasl, 0, "");
  Parsed stat(binary_request(kOpStat, "", "items", ""));
  EXPECT_EQ(stat.request.op, Op::kStats);
  EXPECT_EQ(stat.value(), "items");
  Parsed sasl(binary_request(kOpSaslAuth, "", "PLAIN", "secret"));
  EXPECT_EQ(sasl.request.op, Op::kSasl);
  EXPECT_EQ(sasl.value(), "secret");
}

TEST(ParseBinary, Counters) {
  const std::string numbers = big_endian(5, 8) + big_endian(UINT64_MAX, 8);
  Parsed incr(binary_request(kOpIncrement, numbers + big_endian(60, 4), "k", ""));
  EXPECT_EQ(incr.request.op, Op::kIncr);
  EXPECT_EQ(incr.request.bits, uint32_t{kVivify});
  EXPECT_EQ(incr.request.delta, 5u);
  EXPECT_EQ(incr.request.initial, UINT64_MAX);
  EXPECT_EQ(incr.request.vivify_exptime, 60);
  expect_op(binary_request(kOpDecrementQ, numbers + big_endian(0xffffffff, 4), "k", ""), Op::kDecr,
            kQuiet, "k");
}

TEST(ParseBinary, TimesBehind2038AreNotNegative) {
  Parsed touch(binary_request(kOpTouch, big_endian(0xffffffff, 4), "k", ""));
  EXPECT_EQ(touch.request.exptime, INT32_MAX);
}

TEST(ParseBinary, RefusedHeaders) {
  Parsed unknown(binary_request(0x70, "", "", ""));
  EXPECT_EQ(unknown.request.op, Op::kInvalid);
  EXPECT_EQ(unknown.request.status, Status::kUnknownCommand);
  EXPECT_EQ(unknown.request.protocol, Protocol::kBinary);
  EXPECT_EQ(unknown.request.opaque, 0xa1b2c3d4u);
  EXPECT_EQ(unknown.request.binary_opcode, 0x70);
}

}  // namespace
}  // namespace warpcache::protocol
