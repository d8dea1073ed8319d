// SPDX-License-Identifier: Apache-2.0
//
// Multigets in packets on the simulated GPU (get_lines.cuh).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "simulated_gpu/packet_rig.h"

namespace warpcache::engine::cuda {
namespace {

// What a get line of these keys must get.
std::string text_of_line(const std::vector<std::string>& keys,
                         const std::map<std::string, std::string>& values) {
  std::string text;
  for (const std::string& key : keys) {
    const auto found = values.find(key);
    if (found == values.end()) continue;
    text += "VALUE " + key + " 0 " + std::to_string(found->second.size()) + "\r\n" + found->second +
            "\r\n";
  }
  return text + "END\r\n";
}

std::string line_of(const std::vector<std::string>& keys) {
  std::string line = "get";
  for (const std::string& key : keys) line += " " + key;
  return line + "\r\n";
}

// Parts of all sizes, so that datagrams end at every byte of a part; values that are copied by one
// lane and by the warp; values of several datagrams.
TEST_F(SimulatedGpuPackets, AnswerMultigets) {
  open(1);
  std::map<std::string, std::string> values;
  std::vector<std::string> keys;
  const std::vector<size_t> sizes = {0, 1, 2, 7, 31, 63, 64, 65, 200, 900, 1392, 5000, 20000};
  for (const size_t key_size : {size_t{1}, size_t{5}, size_t{16}, size_t{33}, size_t{250}}) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      const std::string key(key_size, static_cast<char>('a' + i));
      values[key] = value_of(sizes[i]);
      store_value(key, values[key]);
      keys.push_back(key);
    }
  }
  std::mt19937 dice(1);
  const auto below = [&dice](size_t bound) { return static_cast<uint32_t>(dice() % bound); };
  for (uint32_t round = 0; round < 60; ++round) {
    std::vector<std::string> commands;
    std::vector<std::string> texts;
    const bool is_short = round % 3 != 0;
    for (uint32_t i = 0; i < 10; ++i) {
      std::vector<std::string> line;
      size_t bytes = 5;
      for (uint32_t count = 1 + below(is_short ? 40 : 6); count > 0; --count) {
        std::string key = keys[below(keys.size())];
        if (is_short && values[key].size() > 200) key = keys[below(8)];
        if (below(6) == 0) key[0] = '_';  // a miss, unless the datagram is full
        bytes += key.size() + 1;
        if (bytes > 1300) break;
        line.push_back(key);
      }
      commands.push_back(line_of(line));
      texts.push_back(text_of_line(line, values));
    }
    packets_[0]->run(commands, 16);
    for (uint32_t i = 0; i < commands.size(); ++i) {
      if (packets_[0]->state(i) == PacketState::kHost) {  // the arena is full
        EXPECT_FALSE(is_short);
        continue;
      }
      ASSERT_EQ(text_of(packets_[0]->replies(i)), texts[i]) << commands[i];
    }
  }
}

// A datagram may end anywhere in a part: every byte of key, numbers, value and line ends.
TEST_F(SimulatedGpuPackets, DivideMultigetsAtAnyByte) {
  open(1);
  std::map<std::string, std::string> values;
  for (const size_t size : {size_t{1}, size_t{40}, size_t{80}}) {
    values["key" + std::to_string(size)] = value_of(size);
  }
  std::vector<std::string> shifts;
  for (uint32_t i = 0; i < 64; ++i) {
    const std::string key = "s" + std::to_string(100 + i);
    values[key] = value_of(1000 + 2 * i);
    shifts.push_back(key);
  }
  for (const auto& [key, value] : values) store_value(key, value);
  for (const char* const last : {"key1", "key40", "key80", "missing"}) {
    std::vector<std::string> commands;
    std::vector<std::string> texts;
    for (const std::string& shift : shifts) {
      // About 1,392 bytes up to the end of the last part, one way or the other.
      const std::vector<std::string> keys = {shift, "key80", "key80", "key40", last};
      commands.push_back(line_of(keys));
      texts.push_back(text_of_line(keys, values));
    }
    packets_[0]->run(commands, 16);
    for (uint32_t i = 0; i < commands.size(); ++i) {
      ASSERT_EQ(text_of(packets_[0]->replies(i)), texts[i]) << commands[i];
    }
  }
}

// Lines with as many keys as fit, also of one byte; what is not for the device is the host's.
TEST_F(SimulatedGpuPackets, LeaveSomeMultigetsToTheHost) {
  open(1);
  std::map<std::string, std::string> values;
  for (const char* const key : {"a", "b", "c"}) {
    values[key] = key;
    store_value(key, key);
  }
  const std::vector<uint32_t> counts = {1, 2, 31, 32, 33, 64, 100, 127, 128, 129, 300};
  std::vector<std::string> commands;
  std::vector<std::string> texts;
  for (uint32_t round = 0; round < 3; ++round) {
    for (const uint32_t count : counts) {
      std::vector<std::string> keys;
      for (uint32_t i = 0; i < count; ++i) keys.emplace_back(1, "abcd"[(i + round) % 4]);
      commands.push_back(line_of(keys));
      texts.push_back(text_of_line(keys, values));
    }
  }
  packets_[0]->run(commands, 16);
  for (uint32_t i = 0; i < commands.size(); ++i) {
    const bool is_host = packets_[0]->state(i) == PacketState::kHost;
    ASSERT_EQ(is_host, counts[i % counts.size()] > 128) << commands[i];
    if (!is_host) {
      ASSERT_EQ(text_of(packets_[0]->replies(i)), texts[i]) << commands[i];
    }
  }
  // 40,000 bytes are a chain here.
  store_value("chain", value_of(40000));
  packets_[0]->run({"get a chain b\r\n", "get a b\r\n", "get a\r\nget b\r\n", "gat 0 a b\r\n",
                    "get a " + std::string(251, 'k') + "\r\n"});
  EXPECT_EQ(packets_[0]->state(0), PacketState::kHost);
  EXPECT_EQ(packets_[0]->reply(1).find("VALUE a 0 1") != std::string::npos, true);
  EXPECT_EQ(packets_[0]->state(2), PacketState::kHost);
  EXPECT_EQ(packets_[0]->state(3), PacketState::kHost);
  expect(*packets_[0], 4, "CLIENT_ERROR");
}

// CAS ids of 1 to 20 digits, also where a datagram ends.
TEST_F(SimulatedGpuPackets, ShowTheCasIdsOfMultigets) {
  open(1);
  const std::vector<std::string> ids = {"1", "42", "9999999999", "10000000000",
                                        "18446744073709551615"};
  const std::string value = value_of(50);
  std::vector<std::string> sets;
  for (size_t i = 0; i < ids.size(); ++i) {
    sets.push_back("ms k" + std::to_string(i) + " 50 F4294967295 E" + ids[i] + "\r\n" + value +
                   "\r\n");
  }
  packets_[0]->run(sets);
  std::vector<std::string> commands;
  std::vector<std::string> texts;
  for (uint32_t keys = 1; keys <= 60; ++keys) {
    std::string line = "gets";
    std::string text;
    for (uint32_t i = 0; i < keys; ++i) {
      const size_t key = (i + keys) % (ids.size() + 1);  // the last is a miss
      line += " k" + std::to_string(key);
      if (key == ids.size()) continue;
      text +=
          "VALUE k" + std::to_string(key) + " 4294967295 50 " + ids[key] + "\r\n" + value + "\r\n";
    }
    commands.push_back(line + "\r\n");
    texts.push_back(text + "END\r\n");
  }
  packets_[0]->run(commands, 16);
  for (uint32_t i = 0; i < commands.size(); ++i) {
    ASSERT_EQ(text_of(packets_[0]->replies(i)), texts[i]) << commands[i];
  }
}

TEST_F(SimulatedGpuPackets, CountTheKeysOfMultigets) {
  open(1);
  packets_[0]->run({"set a 0 0 1\r\na\r\n", "set b 0 -1 1\r\nb\r\n", "set c 0 0 1\r\nc\r\n"});
  const auto read = [this](request::Counter counter) {
    return packets_[0]->counters().read(counter);
  };
  const auto at = [&](uint64_t gets, uint64_t hits, uint64_t misses, uint64_t expired) {
    EXPECT_EQ(read(request::Counter::kCmdGet), gets);
    EXPECT_EQ(read(request::Counter::kGetHits), hits);
    EXPECT_EQ(read(request::Counter::kGetMisses), misses);
    EXPECT_EQ(read(request::Counter::kGetExpired), expired);
  };
  packets_[0]->run({"gets a b c d a\r\n", "get d e\r\n"});
  at(7, 3, 4, 1);
  packets_[0]->run({"get b\r\n", "gets a\r\n"});
  at(9, 4, 5, 2);
}

// The hits in the text of a reply, as key and words after it; each value must be value_of(its
// size), and its flags its size.
std::vector<std::pair<std::string, std::string>> hits_of_sizes(std::string text) {
  std::vector<std::pair<std::string, std::string>> hits;
  while (text.rfind("VALUE ", 0) == 0) {
    const size_t key_end = text.find(' ', 6);
    const size_t line_end = text.find("\r\n");
    const size_t size = std::stoul(text.substr(key_end));
    const std::string words = text.substr(key_end, line_end - key_end);
    const std::string number = " " + std::to_string(size);
    EXPECT_EQ(words.rfind(number + number, 0), 0u) << words;
    EXPECT_EQ(text.substr(line_end, size + 4), "\r\n" + value_of(size) + "\r\n");
    hits.emplace_back(text.substr(6, key_end - 6), words);
    text.erase(0, line_end + size + 4);
  }
  EXPECT_EQ(text, "END\r\n");
  return hits;
}

// While another engine stores, deletes and gives items CAS ids of other lengths, each part is of
// one item. A multiget whose CAS ids change length under way, or of which a key seems to move, is
// the host's.
TEST_F(SimulatedGpuPackets, AnswerMultigetsBesideWriters) {
  open(2);
  std::mt19937 dice(2);
  const auto below = [&dice](size_t bound) { return static_cast<uint32_t>(dice() % bound); };
  uint64_t hits = 0;
  for (uint32_t round = 0; round < 150; ++round) {
    std::vector<std::string> writes;
    std::vector<std::string> reads;
    for (uint32_t i = 0; i < 32; ++i) {
      const std::string key = "key" + std::to_string(below(20));
      const std::string size = std::to_string(below(3) == 0 ? below(900) : below(70));
      const std::string id = below(2) == 0 ? "7" : "1234567890123";
      switch (below(4)) {
        case 0:
          writes.push_back("delete " + key + "\r\n");
          break;
        case 1:
          writes.push_back("md " + key + " I E" + id + "\r\n");
          break;
        default:
          writes.push_back("set " + key + " " + size + " 0 " + size + "\r\n" +
                           value_of(std::stoul(size)) + "\r\n");
      }
      std::string line = below(2) == 0 ? "get" : "gets";
      for (uint32_t keys = 1 + below(24); keys > 0; --keys) {
        line += " key" + std::to_string(below(20));
      }
      reads.push_back(line + "\r\n");
    }
    packets_[0]->engine().begin(packets_[0]->batch_of(writes, 16));
    packets_[1]->engine().begin(packets_[1]->batch_of(reads, 16));
    ASSERT_TRUE(packets_[1]->engine().finish());
    ASSERT_TRUE(packets_[0]->engine().finish());
    for (uint32_t i = 0; i < reads.size(); ++i) {
      if (packets_[1]->state(i) == PacketState::kHost) continue;
      for (const auto& [key, words] : hits_of_sizes(text_of(packets_[1]->replies(i)))) {
        EXPECT_NE(reads[i].find(" " + key), std::string::npos);
        const auto blanks = std::count(words.begin(), words.end(), ' ');
        EXPECT_EQ(blanks, reads[i].rfind("gets ", 0) == 0 ? 3 : 2);
        ++hits;
      }
    }
  }
  EXPECT_GT(hits, 1000u);
}

// Packets whose replies do not fit get space when the arena is empty; the last go to the host.
TEST_F(SimulatedGpuPackets, AMultigetWithoutReplySpace) {
  open(1);
  std::map<std::string, std::string> values = {{"k", value_of(900)}};
  store_value("k", values["k"]);
  const std::vector<std::string> keys(4, "k");
  const std::vector<std::string> commands(20, line_of(keys));
  net::PacketBurst batch = packets_[0]->batch_of(commands, 16);
  batch.reply_bytes = 16 * 1024;
  ASSERT_TRUE(packets_[0]->engine().run(batch));
  uint32_t done = 0;
  for (uint32_t i = 0; i < commands.size(); ++i) {
    if (packets_[0]->state(i) == PacketState::kHost) continue;
    EXPECT_EQ(text_of(packets_[0]->replies(i)), text_of_line(keys, values));
    ++done;
  }
  EXPECT_EQ(done, 4u);  // of 3.9 KB each
  EXPECT_EQ(packets_[0]->counters().read(request::Counter::kGetHits), 16u);
}

}  // namespace
}  // namespace warpcache::engine::cuda
