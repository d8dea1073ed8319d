// SPDX-License-Identifier: Apache-2.0
//
// Bursts of packets on the simulated GPU, for tests of PacketRunner.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/packets/packet_runner.h"
#include "net/testing/packets.h"
#include "protocol/framing/udp_frame.h"
#include "store/cuda/cuda_store.h"

namespace warpcache::engine::cuda {

inline constexpr uint32_t kBufferBytes = 256 * 1024;
inline constexpr uint32_t kBatchPacketsMax = 64;
inline constexpr uint64_t kMemory = uint64_t{16} << 20;  // of the store

// An engine with buffers for a batch of commands, one datagram each.
class Packets {
 public:
  Packets(const PacketRunnerConfig& config, store::CudaStore& store, gpu::DeviceFaults& faults) {
    EXPECT_EQ(PacketRunner::create(config, store, faults, counters_, &engine_), "");
    EXPECT_TRUE(input_.allocate(gpu::CudaMemory::Place::kHost, kBufferBytes));
    EXPECT_TRUE(replies_.allocate(gpu::CudaMemory::Place::kHost, kBufferBytes));
    EXPECT_TRUE(
        results_.allocate(gpu::CudaMemory::Place::kHost, kBatchPacketsMax * sizeof(PacketResult)));
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
    EXPECT_LE(commands.size(), kBatchPacketsMax);
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

inline std::string value_of(size_t size) {
  std::string value(size, '\0');
  for (size_t i = 0; i < size; ++i) value[i] = static_cast<char>(size_t{'A'} + i % 61);
  return value;
}

}  // namespace warpcache::engine::cuda
