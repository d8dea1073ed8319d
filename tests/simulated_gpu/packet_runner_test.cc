// SPDX-License-Identifier: Apache-2.0
//
// Packet bursts on the simulated GPU: what tests/packets cannot test, since it runs one batch
// at a time and does not know the index.
#include "engine/cuda/packets/packet_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "net/testing/packets.h"
#include "protocol/framing/udp_frame.h"
#include "store/cuda/cuda_store.h"
#include "store/index/index.h"

namespace warpcache::engine::cuda {
namespace {

constexpr uint32_t kBufferBytes = 256 * 1024;
constexpr uint32_t kPacketsMax = 64;
constexpr uint64_t kMemory = uint64_t{16} << 20;  // of the store

// An engine with buffers for a batch of commands, one datagram each.
class Packets {
 public:
  Packets(const PacketRunnerConfig& config, store::CudaStore& store, gpu::DeviceFaults& faults) {
    EXPECT_EQ(PacketRunner::create(config, store, faults, counters_, &engine_), "");
    EXPECT_TRUE(input_.allocate(gpu::CudaMemory::Place::kHost, kBufferBytes));
    EXPECT_TRUE(replies_.allocate(gpu::CudaMemory::Place::kHost, kBufferBytes));
    EXPECT_TRUE(
        results_.allocate(gpu::CudaMemory::Place::kHost, kPacketsMax * sizeof(PacketResult)));
  }

  // A batch of these commands, in slots of one size.
  net::PacketBurst batch_of(const std::vector<std::string>& commands, size_t granule) {
    std::vector<std::string> frames;
    size_t slot = 0;
    for (const std::string& command : commands) {
      frames.push_back(net::testing::frame_of(std::string("\0\7\0\0\0\1\0\0", 8) + command));
      slot = std::max(slot, frames.back().size());
    }
    slot = (slot + granule - 1) / granule * granule;
    std::string all;
    for (std::string& frame : frames) {
      frame.resize(slot);
      all += frame;
    }
    all.resize((all.size() + 15) / 16 * 16);
    EXPECT_LE(all.size(), kBufferBytes);
    EXPECT_LE(commands.size(), kPacketsMax);
    std::copy(all.begin(), all.end(), input_.data());
    net::PacketBurst batch;
    batch.input = input_.data();
    batch.input_bytes = static_cast<uint32_t>(all.size());
    batch.count = static_cast<uint32_t>(commands.size());
    batch.slot_bytes = static_cast<uint32_t>(slot);
    batch.replies = replies_.data();
    batch.reply_bytes = kBufferBytes;
    batch.results = results_.as<PacketResult>();
    return batch;
  }

  void run(const std::vector<std::string>& commands, size_t granule = 16) {
    ASSERT_TRUE(engine_->run(batch_of(commands, granule)));
  }
  PacketState state(size_t command) const { return results_.as<PacketResult>()[command].state(); }
  // The reply frames to a command of the latest batch.
  std::vector<std::string> replies(size_t command) const {
    EXPECT_EQ(state(command), PacketState::kDone);
    const net::ReplyFrames frames(replies_.data(), results_.as<PacketResult>()[command]);
    std::vector<std::string> all;
    for (uint32_t i = 0; i < frames.count(); ++i) {
      all.emplace_back(reinterpret_cast<const char*>(frames[i].data), frames[i].size);
    }
    return all;
  }
  // The only reply frame, or "".
  std::string reply(size_t command) const {
    const std::vector<std::string> frames = replies(command);
    EXPECT_EQ(frames.size(), 1u);
    return frames.empty() ? "" : frames[0];
  }
  PacketRunner& engine() { return *engine_; }
  const request::Counters& counters() const { return counters_; }

 private:
  request::Counters counters_;
  std::unique_ptr<PacketRunner> engine_;
  gpu::CudaMemory input_;
  gpu::CudaMemory replies_;
  gpu::CudaMemory results_;
};

class SimulatedGpuPackets : public testing::Test {
 protected:
  void open(uint32_t engines, uint32_t copied_min = 0, bool persistent = false) {
    store::CudaStoreConfig config;
    config.block_scratch_bytes = engine::cuda::block_scratch_bytes();
    config.store.memory_limit = kMemory;
    config.store.segment_size = 64 * 1024;  // a value of 20,000 bytes is no chain
    config.engines = engines;
    config.blocks_per_engine = 4;
    ASSERT_EQ(store::CudaStore::create(config, faults_, &store_), "");
    PacketRunnerConfig packets;
    packets.udp_port = net::testing::kTestPort;
    packets.jobs.blocks_max = config.blocks_per_engine;
    packets.jobs.persistent = persistent;
    packets.copied_packets_min = copied_min;
    for (uint32_t i = 0; i < engines; ++i) {
      packets_.push_back(std::make_unique<Packets>(packets, *store_, faults_));
    }
  }
  void store_keys(const std::vector<std::string>& keys) {
    std::vector<std::string> commands;
    for (const std::string& key : keys) commands.push_back(set_of(key));
    packets_[0]->run(commands);
    for (size_t i = 0; i < keys.size(); ++i) expect(*packets_[0], i, "STORED");
  }
  // The value follows from the key.
  static std::string set_of(const std::string& key) {
    return "set " + key + " 0 0 " + std::to_string(key.size()) + "\r\n" + key + "\r\n";
  }
  static std::string hit_of(const std::string& key) {
    return "VALUE " + key + " 0 " + std::to_string(key.size()) + "\r\n" + key + "\r\nEND";
  }
  static void expect(const Packets& packets, size_t command, const std::string& what) {
    EXPECT_NE(packets.reply(command).find(what), std::string::npos) << command << ": " << what;
  }

  // Stores `value` in pieces that fit into datagrams.
  void store_value(const std::string& key, const std::string& value) {
    constexpr size_t kPiece = 1000;
    for (size_t at = 0; at == 0 || at < value.size(); at += kPiece) {
      const std::string piece = value.substr(at, kPiece);
      packets_[0]->run({(at == 0 ? "set " : "append ") + key + " 0 0 " +
                        std::to_string(piece.size()) + "\r\n" + piece + "\r\n"});
      expect(*packets_[0], 0, "STORED");
    }
  }
  // The payloads of a reply's frames, joined.
  static std::string text_of(const std::vector<std::string>& frames) {
    constexpr size_t kTextOffset = 14 + 20 + 8 + 8;  // headers up to memcached's
    std::string text;
    for (size_t i = 0; i < frames.size(); ++i) {
      const std::string& frame = frames[i];
      EXPECT_EQ(net::testing::get16(frame, kTextOffset - 6), i);
      EXPECT_EQ(net::testing::get16(frame, kTextOffset - 4), frames.size());
      EXPECT_EQ(net::testing::get16(frame, 14 + 20 + 6), net::testing::udp_checksum_of(frame));
      text += frame.substr(kTextOffset, net::testing::get16(frame, 14 + 20 + 4) - 16u);
    }
    return text;
  }

  gpu::DeviceFaults faults_;
  std::unique_ptr<store::CudaStore> store_;
  std::vector<std::unique_ptr<Packets>> packets_;
};

// Contiguous slots of any size need not begin at words of 16 bytes.
TEST_F(SimulatedGpuPackets, LieInSlotsOfAnySize) {
  open(1);
  for (const std::string prefix : {"k", "key", "longer_k"}) {
    std::vector<std::string> sets;
    std::vector<std::string> gets;
    for (uint32_t i = 100; i < 140; ++i) {
      sets.push_back(set_of(prefix + std::to_string(i)));
      gets.push_back("get " + prefix + std::to_string(i) + "\r\n");
    }
    for (const auto* commands : {&sets, &gets}) {
      ASSERT_NE(packets_[0]->batch_of(*commands, 1).slot_bytes % 16, 0u);
      packets_[0]->run(*commands, 1);
      for (uint32_t i = 0; i < 40; ++i) {
        const std::string key = prefix + std::to_string(100 + i);
        expect(*packets_[0], i, commands == &sets ? "STORED" : hit_of(key));
      }
    }
  }
}

// More keys than a pair of sets holds: some lie in overflow sets, and are answered as well.
TEST_F(SimulatedGpuPackets, FindKeysInOverflowSets) {
  open(1);
  const store::Core core = store_->resources().core;
  const auto place_of = [&core](const std::string& key) {
    const uint64_t hash =
        hash_key(core.seed, {reinterpret_cast<const uint8_t*>(key.data()), key.size()});
    return store::pair_of(hash, core.shared->pair_count) * 2 + store::home_of(hash);
  };
  const uint32_t place = place_of("key0");
  std::vector<std::string> keys;
  for (uint32_t i = 0; keys.size() < 52; ++i) {
    const std::string key = "key" + std::to_string(i);
    if (place_of(key) == place) keys.push_back(key);
  }
  store_keys(keys);
  ASSERT_EQ(place_of("key0"), place) << "the index has grown";
  const uint32_t first = store::pair_at(core, place / 2)->overflow;
  ASSERT_NE(first, 0u);
  ASSERT_NE(store::overflow_at(core, first)->overflow, 0u) << "a chain";
  std::vector<std::string> gets;
  for (const std::string& key : keys) gets.push_back("get " + key + "\r\n");
  gets.push_back("get " + keys[0] + "x\r\n");
  packets_[0]->run(gets);
  for (size_t i = 0; i < keys.size(); ++i) expect(*packets_[0], i, hit_of(keys[i]));
  EXPECT_EQ(packets_[0]->reply(keys.size()).find("VALUE"), std::string::npos);
  packets_[0]->run({"delete " + keys[50] + "\r\n"});
  packets_[0]->run({gets[50], gets[51]});
  EXPECT_EQ(packets_[0]->reply(0).find("VALUE"), std::string::npos);
  expect(*packets_[0], 1, hit_of(keys[51]));
}

std::string value_of(size_t size) {
  std::string value(size, '\0');
  for (size_t i = 0; i < size; ++i) value[i] = static_cast<char>(size_t{'A'} + i % 61);
  return value;
}

// Long replies stand between short ones, each complete. The host handles those that do not fit.
TEST_F(SimulatedGpuPackets, AnswerInSeveralDatagrams) {
  open(1);
  const std::vector<size_t> sizes = {5, 1362, 2753, 5, 4096, 20000};
  std::vector<std::string> commands;
  std::vector<std::string> texts;
  for (uint32_t i = 0; i < 40; ++i) {
    const size_t size = sizes[i % sizes.size()];
    const std::string key = "k" + std::to_string(size);
    const std::string value = value_of(size) + "\r\n";
    if (i < sizes.size()) store_value(key, value_of(size));
    commands.push_back(i % 2 == 0 ? "get " + key + "\r\n" : "mg " + key + " v\r\n");
    texts.push_back(i % 2 == 0
                        ? "VALUE " + key + " 0 " + std::to_string(size) + "\r\n" + value + "END\r\n"
                        : "VA " + std::to_string(size) + "\r\n" + value);
  }
  net::PacketBurst batch = packets_[0]->batch_of(commands, 16);
  for (const uint32_t space : {kBufferBytes, 32u * 1024}) {
    batch.reply_bytes = space;
    ASSERT_TRUE(packets_[0]->engine().run(batch));
    uint32_t left = 0;
    for (uint32_t i = 0; i < 40; ++i) {
      if (packets_[0]->state(i) == PacketState::kHost) {
        ++left;
        continue;
      }
      const std::vector<std::string> frames = packets_[0]->replies(i);
      EXPECT_EQ(frames.size(),
                protocol::udp_datagram_count(static_cast<uint32_t>(texts[i].size())));
      EXPECT_EQ(text_of(frames), texts[i]) << i;
    }
    // Of six replies with 20,000 bytes one fits, if it comes first.
    EXPECT_GE(left, space == kBufferBytes ? 0u : 5u);
    EXPECT_LE(left, space == kBufferBytes ? 0u : 39u);
  }
}

// A request that may change the store has reserved space for its whole reply.
TEST_F(SimulatedGpuPackets, ReserveWritersSpaceForSeveralDatagrams) {
  open(1);
  const std::string value = value_of(3000);
  const std::string hit = "VALUE long 0 3000\r\n" + value + "\r\nEND\r\n";
  store_value("long", value);
  const std::vector<std::string> commands(40, "gat 100 long\r\n");
  net::PacketBurst batch = packets_[0]->batch_of(commands, 16);
  for (const uint32_t space : {kBufferBytes, 32u * 1024}) {
    batch.reply_bytes = space;
    ASSERT_TRUE(packets_[0]->engine().run(batch));
    uint32_t done = 0;
    for (uint32_t i = 0; i < commands.size(); ++i) {
      if (packets_[0]->state(i) == PacketState::kHost) continue;
      EXPECT_EQ(text_of(packets_[0]->replies(i)), hit);
      ++done;
    }
    // A warp gets space for all of its packets or for none: 32 and 8 of them, 3.1 KB each.
    EXPECT_EQ(done, space == kBufferBytes ? 40u : 8u);
  }
}

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

// One thread runs several batches at the same time, in place and copied.
TEST_F(SimulatedGpuPackets, OfSeveralBatchesAtATime) {
  open(3, 20);
  const std::vector<uint32_t> counts = {40, 10, 30};
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < 3; ++i) {
      std::vector<std::string> commands;
      for (uint32_t k = 0; k < counts[i]; ++k) {
        const std::string key = std::to_string(1000 * i + k);
        commands.push_back(round == 0 ? set_of(key) : "get " + key + "\r\n");
      }
      packets_[i]->engine().begin(packets_[i]->batch_of(commands, 16));
    }
    for (const uint32_t i : {2u, 0u, 1u}) {
      while (!packets_[i]->engine().ended()) {
      }
      ASSERT_TRUE(packets_[i]->engine().finish());
      for (uint32_t k = 0; k < counts[i]; ++k) {
        expect(*packets_[i], k, round == 0 ? "STORED" : hit_of(std::to_string(1000 * i + k)));
      }
    }
  }
  packets_[0]->engine().begin({});
  EXPECT_TRUE(packets_[0]->engine().ended());
  EXPECT_TRUE(packets_[0]->engine().finish());
}

// More items than the buffer of a walk holds.
TEST_F(SimulatedGpuPackets, WalkFindsEveryItemOnce) {
  open(1);
  std::multiset<std::string> stored;
  for (uint32_t round = 0; round < 100; ++round) {
    std::vector<std::string> sets;
    for (uint32_t i = 0; i < 60; ++i) {
      const std::string key = "key" + std::to_string(60 * round + i);
      sets.push_back(set_of(key));
      stored.insert(key);
    }
    packets_[0]->run(sets);
  }
  std::multiset<std::string> walked;
  for (uint64_t cursor = 0; cursor != store::StoreOwner::kWalkEnd;) {
    const Status status = store_->walk(cursor, [&walked](const store::WalkedItem& item) {
      walked.insert(std::string(reinterpret_cast<const char*>(item.key.data), item.key.size));
    });
    ASSERT_EQ(status, Status::kOk);
  }
  EXPECT_EQ(walked, stored);
}

// A kernel that waits for work stays in an epoch, which must not hold back memory.
TEST_F(SimulatedGpuPackets, AWaitingKernelHoldsBackNoMemory) {
  open(2, 0, true);
  packets_[1]->run({"get nothing\r\n"});
  constexpr uint32_t kSets = 40;
  const std::string value = value_of(1300);
  const uint64_t rounds = 3 * kMemory / 2 / (kSets * value.size());
  for (uint64_t round = 0; round < rounds; ++round) {
    std::vector<std::string> sets;
    for (uint32_t i = 0; i < kSets; ++i) {
      sets.push_back("set k" + std::to_string(round * kSets + i) + " 0 0 1300\r\n" + value +
                     "\r\n");
    }
    packets_[0]->run(sets);
    for (uint32_t i = 0; i < kSets; ++i) expect(*packets_[0], i, "STORED");
  }
  packets_[1]->run({"get k" + std::to_string(rounds * kSets - 1) + "\r\n"});
  expect(*packets_[1], 0, "VALUE");
  for (const auto& packets : packets_) packets->engine().release_device();
}

}  // namespace
}  // namespace warpcache::engine::cuda
