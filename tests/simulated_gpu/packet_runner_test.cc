// SPDX-License-Identifier: Apache-2.0
//
// Packet bursts on the simulated GPU: what tests/packets cannot test, since it runs one batch
// at a time and does not know the index.
#include "engine/cuda/packets/packet_runner.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "simulated_gpu/packet_rig.h"
#include "store/index/index.h"

namespace warpcache::engine::cuda {
namespace {

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
