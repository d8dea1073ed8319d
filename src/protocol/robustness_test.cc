// SPDX-License-Identifier: Apache-2.0
//
// Malformed bytes, framed in random pieces, parsed and composed. No read or write is out of bounds
// (checked by sanitizers), every reply keeps its bound, and the result does not depend on the
// pieces.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "protocol/compose/compose.h"
#include "protocol/framing/frame.h"
#include "protocol/parse/parse.h"
#include "protocol/testing/messages.h"

namespace warpcache::protocol {
namespace {

using testing::binary_request;
using testing::HeapCopy;
using testing::Stream;

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  uint32_t operator()() { return static_cast<uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

// Longer than lines of other commands may be.
std::string long_get() {
  std::string line = "get";
  for (int i = 0; i < 30; ++i) line += " " + std::string(100, 'k') + std::to_string(i);
  return line + "\r\n";
}

const std::vector<std::string>& seeds() {
  static const std::vector<std::string> all = {
      "get key\r\n",
      "gets a b c\r\n",
      "get key of multiget\r\n",
      "get " + std::string(40, 'k') + " " + std::string(100, 'l') + " m\r\n",
      long_get(),
      "gat 100 a b\r\n",
      "get " + std::string(300, 'k') + "\r\n",
      "get a " + std::string(2500, 'x') + " b\r\n",
      "set key 1 0 5\r\nvalue\r\n",
      "set key 4000000000 2592000 5\r\nvalue\r\n",
      "set key 9999999999 4294967296 5\r\nvalue\r\n",
      "set key 1 0 5 noreply\r\nvalue\r\n",
      "cas key 1 0 5 12345\r\nvalue\r\n",
      "set key 1 0 300\r\n" + std::string(300, 'v') + "\r\n",
      "append key 0 0 0\r\n\r\n",
      "incr n 5\r\n",
      "touch k 10 noreply\r\n",
      "delete k\r\n",
      "ms key 5 T0 F3 c k s Oab q I\r\nvalue\r\n",
      "ms Zm9vYmFy 3 b k MA N30\r\nabc\r\n",
      "ms key 5\r\nvalue\r\n",
      "mg key v\r\n",
      "mg Zm9v b k v s t f c l h q T30 Oxyz\r\n",
      "ma n N30 J5 D2 v t c MI\r\n",
      "md k q I T30 x\r\n",
      "me Zm9v b\r\n",
      "mn\r\n",
      "stats items\r\n",
      "flush_all 5 noreply\r\n",
      "version\r\n",
      "verbosity 1\r\n",
      "lru_crawler metadump all\r\n",
      binary_request(kOpGet, "", "key", ""),
      binary_request(kOpGetKQ, "", "key", ""),
      binary_request(kOpSet, std::string(8, '\1'), "key", "value", 7),
      binary_request(kOpSetQ, std::string(8, '\0'), "key", std::string(300, 'v')),
      binary_request(kOpIncrement, std::string(20, '\2'), "n", ""),
      binary_request(kOpAppendQ, "", "k", "v"),
      binary_request(kOpTouch, std::string(4, '\0'), "k", ""),
      binary_request(kOpStat, "", "settings", ""),
      binary_request(kOpFlush, std::string(4, '\0'), "", ""),
      binary_request(kOpSaslAuth, "", "PLAIN", "x"),
      binary_request(0x7f, "abc", "k", "v"),
  };
  return all;
}

void mutate(Random& random, std::string& text) {
  const char* const pieces[] = {" ",    "\r\n", "\n", "\r", "noreply", "-1", "99999999999999999999",
                                "\x80", " b",   "="};
  const uint32_t edits = random() % 4;
  for (uint32_t i = 0; i < edits && !text.empty(); ++i) {
    const size_t at = random() % text.size();
    switch (random() % 5) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, 1 + random() % 5);
        break;
      case 2:
        text.insert(at, pieces[random() % std::size(pieces)]);
        break;
      case 3:
        text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
        break;
      default:
        text.insert(at, text.substr(random() % text.size(), random() % 40));
        break;
    }
  }
}

std::string random_stream(Random& random) {
  std::string bytes;
  const bool binary = random() % 3 == 0;
  const uint32_t count = 1 + random() % 6;
  for (uint32_t i = 0; i < count; ++i) {
    std::string message = seeds()[random() % seeds().size()];
    // Mostly of one protocol; otherwise most streams would end at their second message.
    while (random() % 8 != 0 && (message[0] == '\x80') != binary)
      message = seeds()[random() % seeds().size()];
    if (random() % 2 == 0) mutate(random, message);
    bytes += message;
  }
  return bytes;
}

FrameLimits random_limits(Random& random) {
  FrameLimits limits = testing::default_limits();
  limits.item_size_max = random() % 2 == 0 ? 200 : 2000;
  limits.inline_body_max = random() % 2 == 0 ? 100 : 1000;
  limits.cas_enabled = random() % 2 == 0;
  return limits;
}

TEST(Robustness, CutsChangeNothing) {
  Random random(1);
  for (int round = 0; round < 6000; ++round) {
    const std::string bytes = random_stream(random);
    const FrameLimits limits = random_limits(random);
    Stream whole(limits, 1000);
    whole.feed(bytes);
    Stream pieces(limits, 1 + random() % 3);
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = 1 + random() % (random() % 2 == 0 ? 5 : 200);
      pieces.feed(bytes.substr(at, size));
      at += size;
    }
    ASSERT_EQ(pieces.seen(), whole.seen()) << "round " << round;
  }
}

Result random_result(Random& random, const std::string& value) {
  Result result = {};
  result.outcome = static_cast<Outcome>(random() % (static_cast<uint32_t>(Outcome::kError) + 1));
  result.status = static_cast<Status>(random() % static_cast<uint32_t>(Status::kDeferred));
  result.value = bytes_of(value);
  result.value_size = static_cast<uint32_t>(random());
  result.cas = uint64_t{random()} << 32 | random();
  result.number = uint64_t{random()} << 32 | random();
  result.client_flags = static_cast<uint32_t>(random());
  result.ttl = static_cast<int32_t>(random());
  result.idle = static_cast<uint32_t>(random());
  result.item_size = static_cast<uint32_t>(random());
  result.bits = static_cast<uint8_t>(random());
  return result;
}

void parse_and_compose(Random& random, const Frame& frame, HeapCopy& input) {
  Request request;
  parse_request(frame, input.data(), request);
  ASSERT_LE(uint64_t{request.key_offset} + request.key_size, input.bytes().size);
  ASSERT_LE(uint64_t{request.meta_offset} + request.meta_size, input.bytes().size);
  if (request.status == Status::kOk) {
    ASSERT_LE(uint64_t{request.value_offset} + request.value_size, input.bytes().size);
  }
  if (request.op <= Op::kTouch) {
    ASSERT_GT(request.key_size, 0);
    ASSERT_LE(request.key_size, kKeySizeMax);
  }
  for (int i = 0; i < 4; ++i) {
    Result result = random_result(random, "");
    if (request.op == Op::kInvalid) result.outcome = Outcome::kError;
    // A heap block of exactly the bound, so that sanitizers notice a write beyond it.
    const uint32_t bound = reply_bound(request, result);
    const auto out = std::make_unique<uint8_t[]>(bound);
    uint8_t* end = compose_head(request, result, input.data(), out.get());
    end = compose_tail(request, result, input.data(), end);
    ASSERT_LE(end - out.get(), static_cast<ptrdiff_t>(bound));
  }
}

// Frames, parses and composes.
void run(Random& random, const std::string& bytes, bool datagram) {
  HeapCopy input(bytes);
  const FrameLimits limits = random_limits(random);
  FrameState state = {};
  Frame frames[16];
  uint32_t at = 0;
  for (size_t call = 0; call <= bytes.size() + 1; ++call) {
    const Bytes rest = input.bytes().from(at);
    const FrameResult result = datagram ? frame_datagram(state, limits, rest, at, 0, frames, 16)
                                        : frame(state, limits, rest, at, 0, frames, 16);
    ASSERT_LE(result.consumed, rest.size);
    testing::check_usual_lines(frames, result.count, limits, input.bytes(), false);
    for (uint32_t i = 0; i < result.count; ++i) {
      parse_and_compose(random, frames[i], input);
    }
    at += result.consumed;
    if (result.end != FrameEnd::kFull) return;
  }
  FAIL() << "no end";
}

TEST(Robustness, MutatedMessages) {
  Random random(2);
  for (int round = 0; round < 20000; ++round) run(random, random_stream(random), round % 4 == 0);
}

TEST(Robustness, RandomBytes) {
  Random random(3);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes)
      c = random() % 3 == 0 ? " \r\nmgsetb0123\x80"[random() % 14] : static_cast<char>(random());
    run(random, bytes, round % 2 == 0);
  }
}

}  // namespace
}  // namespace warpcache::protocol
