// SPDX-License-Identifier: Apache-2.0
//
// Runs the program in the kernel on frames, without an interface.
#include "nic_cache/program.h"

#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "net/testing/packets.h"
#include "nic_cache/testing/loaded_program.h"
#include "nic_cache/write_back.h"

namespace warpcache::nic_cache {
namespace {

class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string failure = loaded_.load();
    if (!failure.empty()) GTEST_SKIP() << failure;
  }
  CopyTable& table() { return loaded_.table(); }
  nic_control& control() { return loaded_.control(); }

  void fill(const std::string& key, const std::string& value, uint32_t expiry = 0) {
    ASSERT_TRUE(table().fill({.key = bytes_of(key),
                              .value = bytes_of(value),
                              .cas = 9,
                              .client_flags = 5,
                              .expiry = expiry}));
  }
  // The text of the reply; "" if the program passes the frame, which is then unchanged.
  std::string ask(const std::string& text, const net::testing::FrameForm& form = {}) {
    return loaded_.ask(text, form);
  }

  LoadedProgram loaded_;
};

TEST_F(ProgramTest, AnswersGets) {
  fill("a", "xyz");
  fill("b", "");
  EXPECT_EQ(ask("get a\r\n"), "VALUE a 5 3\r\nxyz\r\nEND\r\n");
  EXPECT_EQ(ask("gets a\r\n"), "VALUE a 5 3 9\r\nxyz\r\nEND\r\n");
  EXPECT_EQ(ask("get b\r\n"), "VALUE b 5 0\r\n\r\nEND\r\n");
  EXPECT_EQ(ask("get c\r\n"), "");
  EXPECT_EQ(ask("get a"), "");
  EXPECT_EQ(ask("get a \r\n"), "");
  EXPECT_EQ(ask("get a\r\n\r\n"), "");
  EXPECT_EQ(ask("delete a\r\n"), "");
}

TEST_F(ProgramTest, AnswersSeveralKeysIfThereAreCopiesOfAll) {
  fill("a", "1");
  fill("bb", "22");
  fill("ccc", "");
  const std::string a = "VALUE a 5 1\r\n1\r\n";
  const std::string bb = "VALUE bb 5 2\r\n22\r\n";
  const std::string ccc = "VALUE ccc 5 0\r\n\r\n";
  EXPECT_EQ(ask("get a bb ccc\r\n"), a + bb + ccc + "END\r\n");
  EXPECT_EQ(ask("get bb bb\r\n"), bb + bb + "END\r\n");
  EXPECT_EQ(ask("gets bb a\r\n"), "VALUE bb 5 2 9\r\n22\r\nVALUE a 5 1 9\r\n1\r\nEND\r\n");
  EXPECT_EQ(ask("get a none bb\r\n"), "");
  EXPECT_EQ(ask("get a  bb\r\n"), "");
  EXPECT_EQ(ask("get  a bb\r\n"), "");
  EXPECT_EQ(ask("get a bb \r\n"), "");
  EXPECT_EQ(ask("get a bb\r\nget a\r\n"), "");
  std::string sixteen;
  std::string values;
  for (int i = 0; i < 16; ++i) {
    sixteen += " a";
    values += a;
  }
  EXPECT_EQ(ask("get" + sixteen + "\r\n"), values + "END\r\n");
  EXPECT_EQ(ask("get" + sixteen + " a\r\n"), "");
}

TEST_F(ProgramTest, SeveralValuesThatAreTooLongTogetherPass) {
  fill("a", std::string(700, 'a'));
  fill("b", std::string(700, 'b'));
  EXPECT_NE(ask("get a\r\n"), "");
  EXPECT_EQ(ask("get a b\r\n"), "");
}

TEST_F(ProgramTest, AnswersMetaGets) {
  fill("key", "hello");
  EXPECT_EQ(ask("mg key v\r\n"), "VA 5\r\nhello\r\n");
  EXPECT_EQ(ask("mg key s v f k Oabc c q\r\n"), "VA 5 s5 f5 kkey Oabc c9\r\nhello\r\n");
  EXPECT_EQ(ask("mg key c Oabcdefghijklmnopqrstuvwxyz012345 f\r\n"),
            "HD c9 Oabcdefghijklmnopqrstuvwxyz012345 f5\r\n");
  EXPECT_EQ(ask("mg key\r\n"), "HD\r\n");
  EXPECT_EQ(ask("mg other v\r\n"), "");
  EXPECT_EQ(ask("mg key v v\r\n"), "");
  EXPECT_EQ(ask("mg key t v\r\n"), "");
  EXPECT_EQ(ask("mg key v T30\r\n"), "");
  EXPECT_EQ(ask("mg key v N30\r\n"), "");
  EXPECT_EQ(ask("mg key vq\r\n"), "");
  EXPECT_EQ(ask("mg key v q\r\nmn\r\n"), "");
  const std::string long_key(250, 'k');
  fill(long_key, "x");
  EXPECT_EQ(ask("mg " + long_key + " k v\r\n"), "VA 1 k" + long_key + "\r\nx\r\n");
}

std::string binary_get(int opcode, const std::string& key) {
  std::string command = {'\x80', static_cast<char>(opcode), 0, static_cast<char>(key.size())};
  command += std::string(7, '\0') + static_cast<char>(key.size()) + "wxyz" + std::string(8, '\0');
  return command + key;
}

TEST_F(ProgramTest, AnswersBinaryGets) {
  fill("key", "hello");
  for (const int opcode : {0x00, 0x09, 0x0c, 0x0d}) {
    const std::string shown = opcode >= 0x0c ? "key" : "";
    std::string want = {'\x81', static_cast<char>(opcode), 0, static_cast<char>(shown.size())};
    want += std::string("\4\0\0\0\0\0\0", 7) + static_cast<char>(9 + shown.size()) + "wxyz";
    want += std::string("\0\0\0\0\0\0\0\x9\0\0\0\5", 12) + shown + "hello";
    EXPECT_EQ(ask(binary_get(opcode, "key")), want);
  }
  EXPECT_EQ(ask(binary_get(0, "other")), "");
  EXPECT_EQ(ask(binary_get(1, "key")), "");
  EXPECT_EQ(ask(binary_get(9, "key") + binary_get(10, "")), "");
}

TEST_F(ProgramTest, AnswersOnlyTheProtocolsThatTheServerSpeaks) {
  fill("a", "x");
  control().text = 0;
  EXPECT_EQ(ask("get a\r\n"), "");
  EXPECT_EQ(ask("mg a v\r\n"), "");
  EXPECT_NE(ask(binary_get(0, "a")), "");
  control().text = 1;
  control().binary = 0;
  EXPECT_NE(ask("get a\r\n"), "");
  EXPECT_EQ(ask(binary_get(0, "a")), "");
}

TEST_F(ProgramTest, AnswersEveryFormOfHeaders) {
  fill("a", "xyz");
  for (const bool ipv6 : {false, true}) {
    for (size_t tags = 0; tags <= 2; ++tags) {
      for (const bool checksum : {false, true}) {
        net::testing::FrameForm form;
        form.ipv6 = ipv6;
        form.checksum = checksum;
        form.vlan_tags.assign(tags, 0x8100);
        loaded_.listen(form);
        const std::string want = ipv6 && !checksum ? "" : "VALUE a 5 3\r\nxyz\r\nEND\r\n";
        EXPECT_EQ(ask("get a\r\n", form), want) << ipv6 << tags << checksum;
      }
    }
  }
}

// The host's network stack answers those.
TEST_F(ProgramTest, PassesIpv6ExtensionHeadersOn) {
  fill("a", "xyz");
  net::testing::FrameForm form;
  form.ipv6 = true;
  loaded_.listen(form);
  EXPECT_NE(ask("get a\r\n", form), "");
  for (const uint8_t type : {uint8_t{0}, uint8_t{43}, uint8_t{60}}) {
    form.extensions = {net::testing::extension_of(type)};
    EXPECT_EQ(ask("get a\r\n", form), "") << int{type};
  }
  // Whose first bytes look like a request's UDP header.
  form.extensions = {{60, std::string("\x40\x2b\xcb\0\x17\0\0", 7)}};
  EXPECT_EQ(ask("get a\r\n", form), "");
}

TEST_F(ProgramTest, KeysOfEveryLength) {
  for (size_t size = 1; size <= kNicKeyMax; ++size) {
    const std::string key = std::string(size - 1, 'k') + 'e';
    fill(key, "v");
    EXPECT_EQ(ask("get " + key + "\r\n"), "VALUE " + key + " 5 1\r\nv\r\nEND\r\n");
    std::string other = key;
    other[size / 2] = '!';
    EXPECT_EQ(ask("get " + other + "\r\n"), "");
  }
  EXPECT_EQ(ask("get " + std::string(251, 'k') + "\r\n"), "");
}

TEST_F(ProgramTest, ValuesOfEveryLength) {
  for (size_t size = 0; size <= 1365; ++size) {
    std::string value(size, 'v');
    for (size_t i = 0; i < size; ++i) value[i] = static_cast<char>(i * 7);
    fill("key", value);
    const std::string text = "VALUE key 5 " + std::to_string(size) + "\r\n" + value + "\r\nEND\r\n";
    ASSERT_EQ(ask("get key\r\n"), text) << size;
    table().drop(bytes_of(std::string("key")));
    if (table().retire_begin()) table().retire_end();
  }
}

TEST_F(ProgramTest, DeadCopiesAreNotAnswered) {
  control().now = 10;
  fill("a", "x", 12);
  EXPECT_NE(ask("get a\r\n"), "");
  control().now = 11;
  EXPECT_NE(ask("get a\r\n"), "");
  control().now = 12;
  EXPECT_EQ(ask("get a\r\n"), "");
  fill("b", "x");
  EXPECT_NE(ask("get b\r\n"), "");
  ++control().generation;
  EXPECT_EQ(ask("get b\r\n"), "");
}

TEST_F(ProgramTest, PassesAllWhenTheServerIsSilent) {
  fill("a", "x");
  EXPECT_NE(ask("get a\r\n"), "");
  control().alive_until = 1;
  EXPECT_EQ(ask("get a\r\n"), "");
  EXPECT_EQ(loaded_.program().counters(0).asleep, 1u);
  control().alive_until = UINT64_MAX;
  EXPECT_NE(ask("get a\r\n"), "");
}

TEST_F(ProgramTest, LongRepliesOnlyToAllowedNetworks) {
  fill("a", std::string(100, 'v'));
  control().amplification = 1;
  EXPECT_NE(ask("get a\r\n"), "");
  control().network_count = 0;
  EXPECT_EQ(ask("get a\r\n"), "");
  EXPECT_EQ(loaded_.program().counters(0).guarded, 1u);
  control().amplification = 10;
  EXPECT_NE(ask("get a\r\n"), "");
}

std::string frame_with(const std::string& command, const net::testing::FrameForm& form = {}) {
  return net::testing::frame_of(std::string("\0\1\0\0\0\1\0\0", 8) + command, form);
}

// The same frame from another source.
std::string from(std::string frame, const std::string& address) {
  const size_t l3 = net::testing::l3_offset_of(frame);
  frame.replace(l3 + (address.size() == 4 ? 12 : 8), address.size(), address);
  net::testing::mend(frame, net::testing::kMendAll);
  return frame;
}

class RateTest : public ProgramTest {
 protected:
  // The second of the program's clock.
  static int64_t second() {
    timespec now = {};
    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec;
  }
  uint32_t action(const std::string& frame) {
    TestRun run;
    EXPECT_EQ(loaded_.program().test_run(bytes_of(frame), 1, &run), "");
    return run.action;
  }
};

TEST_F(RateTest, MoreThanASourceMaySendIsDropped) {
  fill("a", "x");
  control().rate = 3;
  for (const bool ipv6 : {false, true}) {
    net::testing::FrameForm form;
    form.ipv6 = ipv6;
    loaded_.listen(form);
    int answered = 0;
    int dropped = 0;
    const int64_t begun = second();
    for (int i = 0; i < 100; ++i) {
      // Other commands count, too.
      const uint32_t done = action(frame_with(i % 2 == 0 ? "get a\r\n" : "delete a\r\n", form));
      (done == XDP_DROP ? dropped : answered) += 1;
    }
    EXPECT_GE(answered, 3);
    EXPECT_LE(answered, 3 * (second() - begun + 1));
    EXPECT_EQ(answered + dropped, 100);
  }
  EXPECT_GT(loaded_.program().counters(0).limited, 0u);
}

TEST_F(RateTest, EachSecondAndEachSourceHasItsOwn) {
  fill("a", "x");
  control().rate = 1;
  const std::string frame = frame_with("get a\r\n");
  const std::string other = from(frame, std::string("\xc0\0\2\x4d", 4));
  const int64_t begun = second();
  while (action(frame) != XDP_DROP) ASSERT_LT(second(), begun + 60);
  EXPECT_EQ(action(other), uint32_t{XDP_TX});
  while (action(frame) == XDP_DROP) ASSERT_LT(second(), begun + 60);
  control().rate = 0;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(action(frame), uint32_t{XDP_TX});
}

TEST_F(ProgramTest, NotForSourcesThatNoOtherHostHas) {
  fill("a", "x");
  for (const bool ipv6 : {false, true}) {
    net::testing::FrameForm form;
    form.ipv6 = ipv6;
    loaded_.listen(form);
    EXPECT_NE(ask("get a\r\n", form), "");
    const std::string frame = frame_with("get a\r\n", form);
    const size_t target = net::testing::l3_offset_of(frame) + (ipv6 ? 24 : 16);
    const std::string loopback = ipv6 ? std::string(15, '\0') + '\1' : std::string("\x7f\0\0\1", 4);
    for (const std::string& address : {loopback, frame.substr(target, loopback.size())}) {
      EXPECT_EQ(loaded_.run(from(frame, address)), "") << ipv6;
    }
  }
  EXPECT_EQ(loaded_.program().counters(0).foreign, 4u);
}

TEST_F(ProgramTest, OnlyForItsOwnAddress) {
  fill("a", "x");
  control().mac[5] ^= 1;
  EXPECT_EQ(ask("get a\r\n"), "");
  control().mac[5] ^= 1;
  control().addresses[0].words[1] ^= 1;
  EXPECT_EQ(ask("get a\r\n"), "");
  control().addresses[0].words[1] ^= 1;
  control().addresses[0].vlan = 3;
  EXPECT_EQ(ask("get a\r\n"), "");
  EXPECT_EQ(loaded_.program().counters(0).foreign, 3u);
}

TEST_F(ProgramTest, ReportsMissedKeys) {
  const std::string long_key(250, 'l');
  (void)ask("get a\r\n");
  (void)ask("gets b " + long_key + "\r\n");
  std::vector<std::string> keys;
  const auto take = [&](Bytes key) {
    keys.emplace_back(reinterpret_cast<const char*>(key.data), key.size);
  };
  loaded_.program().take_wanted(take);
  EXPECT_EQ(keys, (std::vector<std::string>{"a", "b", long_key}));
  control().read_allocate = 0;
  (void)ask("get c\r\n");
  loaded_.program().take_wanted(take);
  EXPECT_EQ(keys.size(), 3u);
}

TEST_F(ProgramTest, NotesHits) {
  fill("a", "x");
  (void)ask("get a\r\n");
  std::vector<std::vector<uint8_t>> keys;
  table().take_touched(loaded_.program().memory().set_count, &keys);
  EXPECT_EQ(keys.size(), 1u);
}

// The program looks at the first way with the key's tag, and then at all of them.
TEST_F(ProgramTest, FindsCopiesBehindOtherWaysWithTheirTag) {
  fill("a", "x");
  const CopyMemory memory = loaded_.program().memory();
  nic_set* const set =
      std::find_if(memory.sets, memory.sets + memory.set_count, [](const nic_set& one) {
        return std::any_of(one.slots, one.slots + kNicWays,
                           [](uint32_t slot) { return slot != 0; });
      });
  ASSERT_NE(set, memory.sets + memory.set_count);
  uint32_t way = 0;
  while (set->slots[way] == 0) ++way;
  const uint16_t tag = set->tags[way];
  const uint32_t slot = set->slots[way];
  const std::string want = "VALUE a 5 1\r\nx\r\nEND\r\n";
  fill("another", "y");  // its copy has another key
  uint32_t other = 0;
  for (uint32_t i = 0; i < memory.set_count * kNicWays; ++i) {
    const uint32_t found = memory.sets[i / kNicWays].slots[i % kNicWays];
    if (found != 0 && found != slot) other = found;
  }
  ASSERT_NE(other, 0u);
  for (uint32_t to = 0; to < kNicWays; ++to) {
    for (uint32_t i = 0; i < kNicWays; ++i) {
      set->tags[i] = tag;
      set->slots[i] = i == to ? slot : i % 2 == 0 ? 0 : other;
    }
    EXPECT_EQ(ask("get a\r\n"), want) << to;
    EXPECT_EQ(ask("get a a\r\n"), want.substr(0, 16) + want) << to;
    for (uint32_t i = 0; i < kNicWays; ++i) {
      set->tags[i] = i == to ? tag : static_cast<uint16_t>(tag + 1);
    }
    EXPECT_EQ(ask("get a\r\n"), want) << to;
  }
}

class WriteBackTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    if (IsSkipped()) return;
    write_back_.emplace(loaded_.program());
    control().write_back = 1;
  }
  // What the server takes over, as "key flags value" each.
  std::vector<std::string> settle() {
    std::vector<std::string> writes;
    write_back_->settle([&](const nic_write& write) {
      writes.push_back(std::string(reinterpret_cast<const char*>(write.key), write.key_size) + ' ' +
                       std::to_string(write.client_flags) + ' ' +
                       std::string(reinterpret_cast<const char*>(write.value), write.value_size));
    });
    return writes;
  }
  void refill(const std::string& key, const std::string& value) {
    const uint32_t version = table().version_of(bytes_of(key));
    ASSERT_TRUE(table().fill({.key = bytes_of(key), .value = bytes_of(value), .version = version}));
  }

  std::optional<WriteBack> write_back_;
};

TEST_F(WriteBackTest, SetsOfCopiedItemsAreAccepted) {
  const std::string long_key(250, 'k');
  const std::string long_value(200, 'v');
  fill("a", "old");
  EXPECT_EQ(ask("set a 7 0 3\r\nnew\r\n"), "STORED\r\n");
  EXPECT_EQ(ask("get a\r\n"), "");  // the copy is dead
  EXPECT_EQ(ask("set a 7 0 3\r\nnew\r\n"), "");
  EXPECT_EQ(settle(), std::vector<std::string>{"a 7 new"});
  EXPECT_TRUE(settle().empty());
  refill("a", "new");
  EXPECT_EQ(ask("get a\r\n"), "VALUE a 0 3\r\nnew\r\nEND\r\n");
  EXPECT_EQ(ask("set a 4294967295 0 0\r\n\r\n"), "STORED\r\n");
  fill(long_key, "old");
  EXPECT_EQ(ask("set " + long_key + " 0 0 200\r\n" + long_value + "\r\n"), "STORED\r\n");
  EXPECT_EQ(settle(), (std::vector<std::string>{"a 4294967295 ", long_key + " 0 " + long_value}));
  EXPECT_EQ(loaded_.program().counters(0).writes, 3u);
}

TEST_F(WriteBackTest, OtherWritesPass) {
  fill("a", "old");
  for (const char* const text : {"set b 0 0 1\r\nx\r\n",
                                 "set a 0 0 1 noreply\r\nx\r\n",
                                 "set a 0 5 1\r\nx\r\n",
                                 "set a 0 00 1\r\nx\r\n",
                                 "set a 0 0 2\r\nx\r\n",
                                 "set a 0 0 0\r\nx\r\n",
                                 "set a 0 0 1\r\nx",
                                 "set a 0 0 1\r\nx\r\nget a\r\n",
                                 "set a 0 0 -1\r\nx\r\n",
                                 "set a -1 0 1\r\nx\r\n",
                                 "set a 4294967296 0 1\r\nx\r\n",
                                 "set a 12345678901 0 1\r\nx\r\n",
                                 "set a  0 0 1\r\nx\r\n",
                                 "set a 0x 0 1\r\nx\r\n",
                                 "set a 0 0 1x\r\nx\r\n",
                                 "set a 0 0  1\r\nx\r\n",
                                 "set a 0 0\r\n1\r\n",
                                 "set a 0\r\n0 1\r\nx\r\n",
                                 "set a\r\n0 0 1\r\nx\r\n",
                                 "set  0 0 1\r\nx\r\n",
                                 "set a 0 0 1 \r\nx\r\n",
                                 "add a 0 0 1\r\nx\r\n",
                                 "cas a 0 0 1 9\r\nx\r\n",
                                 "set a 0 0 8589934593\r\nx\r\n"}) {
    EXPECT_EQ(ask(text), "") << text;
  }
  EXPECT_EQ(ask("get a\r\n"), "VALUE a 5 3\r\nold\r\nEND\r\n");
  control().write_back = 0;
  EXPECT_EQ(ask("set a 0 0 1\r\nx\r\n"), "");
  EXPECT_TRUE(settle().empty());
}

// What was read before a write was accepted makes no copy that is shown.
TEST_F(WriteBackTest, ACopyOfAnOlderItemIsDead) {
  fill("a", "old");
  const uint32_t version = table().version_of(bytes_of(std::string("a")));
  EXPECT_EQ(ask("set a 0 0 3\r\nnew\r\n"), "STORED\r\n");
  const std::string old = "old";
  ASSERT_TRUE(table().fill(
      {.key = bytes_of(std::string("a")), .value = bytes_of(old), .version = version}));
  EXPECT_EQ(ask("get a\r\n"), "");
}

TEST_F(WriteBackTest, AFullRingPassesWrites) {
  int accepted = 0;
  for (;; ++accepted) {
    ASSERT_LT(accepted, 10'000);
    refill("a", "old");
    if (table().retire_begin()) table().retire_end();
    if (ask("set a 0 0 3\r\nnew\r\n").empty()) break;
  }
  EXPECT_GT(accepted, 100);
  EXPECT_NE(ask("get a\r\n"), "");
  EXPECT_EQ(settle().size(), static_cast<size_t>(accepted));
  EXPECT_EQ(ask("set a 0 0 3\r\nnew\r\n"), "STORED\r\n");
}

// The limits of the kernel, with room for what later kernels count differently.
TEST_F(ProgramTest, TheVerifierHasRoomLeft) {
  const ProgramSize size = loaded_.program().size();
  RecordProperty("instructions", static_cast<int>(size.instructions));
  RecordProperty("verified", static_cast<int>(size.verified));
  EXPECT_LT(size.instructions, 4096u);
  EXPECT_LT(size.verified, 750'000u);
  ASSERT_FALSE(size.stack.empty());
  for (const uint32_t bytes : size.stack) EXPECT_LE(bytes, 256u);
}

}  // namespace
}  // namespace warpcache::nic_cache
