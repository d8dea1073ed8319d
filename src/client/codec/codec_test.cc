// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/codec/binary.h"
#include "client/codec/text.h"

namespace warpcache::client {
namespace {

std::string text(std::string_view verb, const auto& write) {
  std::string out = "before ";
  append(1000, &out, [&](char* at) {
    RequestLine line(at, verb);
    write(line);
    return line.end();
  });
  return out.substr(7);
}

TEST(RequestLine, WritesWordsNumbersAndFlags) {
  const auto key = [](char* out) { return std::string_view("made").copy(out, 4); };
  EXPECT_EQ(text("mn", [](auto&) {}), "mn\r\n");
  EXPECT_EQ(text("get", [&](auto& line) { line.key("a").key(std::string("b")).key(key); }),
            "get a b made\r\n");
  EXPECT_EQ(text("incr", [](auto& line) { line.key("n").number(UINT64_MAX); }),
            "incr n 18446744073709551615\r\n");
  EXPECT_EQ(text("ms",
                 [](auto& line) {
                   line.key("k").number(3u).flag('q').flag('M', 'E').flag('T', -1).flag('F', 7u);
                 }),
            "ms k 3 q ME T-1 F7\r\n");
}

TEST(RequestLine, FitsIntoTheBytesThatAreSaid) {
  const std::string key(250, 'k');
  const uint64_t cas = UINT64_MAX;
  std::string out(line_bytes_max(key.size()), '\0');
  const StoreFields fields = {UINT32_MAX, INT64_MIN, SIZE_MAX, &cas};
  const char* const end = write_store("prepend", key, fields, out.data());
  EXPECT_LE(static_cast<size_t>(end - out.data()), out.size());
}

TEST(RequestLine, WritesStores) {
  std::string out;
  const uint64_t cas = 9;
  append(200, &out, [](char* at) { return write_store("set", "k", {1, -1, 5}, at); });
  append(200, &out, [&](char* at) { return write_store("cas", "k", {1, 60, 5, &cas}, at); });
  EXPECT_EQ(out, "set k 1 -1 5\r\ncas k 1 60 5 9\r\n");
}

TEST(TextReply, TakesALineOrAValueOnceItIsThere) {
  const std::string answer = "VALUE key 7 4 99\r\na\r\nb\r\nEND\r\n";
  const size_t value_end = answer.size() - 5;
  TextReply reply;
  for (size_t size = 0; size < value_end; ++size) {
    std::string_view in = std::string_view(answer).substr(0, size);
    ASSERT_EQ(take_reply(&in, &reply), Taken::kPart) << size;
    ASSERT_EQ(in.size(), size);
  }
  std::string_view in = answer;
  ASSERT_EQ(take_reply(&in, &reply), Taken::kWhole);
  EXPECT_EQ(reply.code, ReplyCode::kValue);
  EXPECT_EQ(reply.head.key, "key");
  EXPECT_EQ(reply.head.client_flags, 7u);
  EXPECT_TRUE(reply.head.has_cas);
  EXPECT_EQ(reply.head.cas, 99u);
  EXPECT_EQ(reply.value, "a\r\nb");
  ASSERT_EQ(take_reply(&in, &reply), Taken::kWhole);
  EXPECT_EQ(reply.code, ReplyCode::kEnd);
  EXPECT_FALSE(reply.head.has_cas);
  EXPECT_TRUE(in.empty());
}

TEST(TextReply, ShowsTheFlagsOfMetaReplies) {
  TextReply reply;
  std::string_view in = "VA 2 f1 O5\r\nab\r\nHD c12 kx\r\nEN\r\nVA 0\r\n\r\n";
  ASSERT_EQ(take_reply(&in, &reply), Taken::kWhole);
  EXPECT_EQ(reply.meta_flags(), "f1 O5");
  EXPECT_EQ(reply.value, "ab");
  ASSERT_EQ(take_reply(&in, &reply), Taken::kWhole);
  EXPECT_EQ(reply.code, ReplyCode::kMetaDone);
  EXPECT_EQ(reply.meta_flags(), "c12 kx");
  ASSERT_EQ(take_reply(&in, &reply), Taken::kWhole);
  EXPECT_EQ(reply.code, ReplyCode::kMetaMiss);
  EXPECT_EQ(reply.meta_flags(), "");
  ASSERT_EQ(take_reply(&in, &reply), Taken::kWhole);
  EXPECT_EQ(reply.meta_flags(), "");
}

TEST(TextReply, KnowsTheWordsThatAnswer) {
  EXPECT_EQ(code_of("STORED"), ReplyCode::kStored);
  EXPECT_EQ(code_of("NOT_STORED"), ReplyCode::kNotStored);
  EXPECT_EQ(code_of("EXISTS"), ReplyCode::kExists);
  EXPECT_EQ(code_of("NOT_FOUND"), ReplyCode::kNotFound);
  EXPECT_EQ(code_of("DELETED"), ReplyCode::kDeleted);
  EXPECT_EQ(code_of("TOUCHED"), ReplyCode::kTouched);
  EXPECT_EQ(code_of("OK"), ReplyCode::kOk);
  EXPECT_EQ(code_of("ERROR"), ReplyCode::kError);
  EXPECT_EQ(code_of(kOutOfMemory), ReplyCode::kError);
  EXPECT_EQ(code_of("CLIENT_ERROR bad data chunk"), ReplyCode::kError);
  EXPECT_EQ(code_of("MN"), ReplyCode::kMetaNoop);
  EXPECT_EQ(code_of("NF O3"), ReplyCode::kMetaNotFound);
  EXPECT_EQ(code_of("NS"), ReplyCode::kMetaNotStored);
  EXPECT_EQ(code_of("EX k1"), ReplyCode::kMetaExists);
  for (const char* line : {"", "12", "STORED ", "ENDS", "OK x", "VALUE", "VA", "ERRORS", "HDx"}) {
    EXPECT_EQ(code_of(line), ReplyCode::kOther) << line;
  }
}

TEST(TextReply, RefusesWhatIsNoReply) {
  const std::vector<std::string> bad = {
      "END\n",                            // an end without its first half
      "VALUE k 0\r\n",                    // no size
      "VALUE k x 1\r\na\r\n",             // no number
      "VALUE k 0 1 2 3\r\na\r\n",         // one word too many
      "VALUE k 0 -1\r\na\r\n",            //
      "VALUE k 0 2\r\nabc\r\n",           // longer than said
      "VALUE k 0 11\r\n01234567890\r\n",  // above the limit of this call
      "VA x\r\n",
  };
  for (const std::string& answer : bad) {
    std::string_view in = answer;
    TextReply reply;
    EXPECT_EQ(take_reply(&in, &reply, 10), Taken::kBad) << answer;
    EXPECT_EQ(in, answer);
  }
}

TEST(Binary, WritesRequests) {
  std::string out;
  append_request({0x05, 0xdeadbeef, 0x0102, "12345678", "key", "value"}, &out);
  const std::string header("\x80\x05\0\x03\x08\0\0\0\0\0\0\x10\xde\xad\xbe\xef\0\0\0\0\0\0\1\2",
                           24);
  EXPECT_EQ(out, header + "12345678keyvalue");
  const BinaryHeader read = read_header(out);
  EXPECT_EQ(read.magic, kBinaryRequest);
  EXPECT_EQ(read.opcode, 0x05);
  EXPECT_EQ(read.key_size, 3);
  EXPECT_EQ(read.extras_size, 8);
  EXPECT_EQ(read.status, 0);
  EXPECT_EQ(read.body_size, 16u);
  EXPECT_EQ(read.opaque, 0xdeadbeef);
  EXPECT_EQ(read.cas, 0x0102u);
}

std::string packet(uint16_t key_size, uint8_t extras_size, uint32_t body_size) {
  std::string out;
  BinaryHeader header;
  header.magic = kBinaryReply;
  header.key_size = key_size;
  header.extras_size = extras_size;
  header.status = kBinaryExists;
  header.body_size = body_size;
  append_header(header, &out);
  return out;
}

TEST(Binary, TakesAPacketOnceItIsThere) {
  const std::string answer = packet(3, 4, 12) + "extrkeyvalue";
  BinaryPacket reply;
  for (size_t size = 0; size < answer.size(); ++size) {
    std::string_view in = std::string_view(answer).substr(0, size);
    ASSERT_EQ(take_reply(&in, &reply), Taken::kPart) << size;
  }
  std::string_view in = answer;
  ASSERT_EQ(take_reply(&in, &reply), Taken::kWhole);
  EXPECT_TRUE(in.empty());
  EXPECT_EQ(reply.header.status, kBinaryExists);
  EXPECT_EQ(reply.extras, "extr");
  EXPECT_EQ(reply.key, "key");
  EXPECT_EQ(reply.value, "value");
}

TEST(Binary, RefusesWhatIsNoReply) {
  std::string request;
  append_request({}, &request);
  for (const std::string& answer : {request, std::string("END\r\n"), packet(3, 4, 6)}) {
    std::string_view in = answer;
    BinaryPacket reply;
    EXPECT_EQ(take_reply(&in, &reply), Taken::kBad) << answer;
  }
}

}  // namespace
}  // namespace warpcache::client
