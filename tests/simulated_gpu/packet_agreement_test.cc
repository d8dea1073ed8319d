// SPDX-License-Identifier: Apache-2.0
//
// Random frames in bursts to the simulated GPU, and to the stages on the CPU, one frame
// after the other on a store in host memory: the reply frames must be the same byte by byte.
//
// The packets of a batch have no order. So a key that a frame of the batch may change occurs in no
// other frame of it, except in a copy of the same SET. There are no CAS ids, which the engines
// count differently.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/effort.h"
#include "engine/cuda/packets/packet_runner.h"
#include "net/packet.h"
#include "packets/random_frames.h"
#include "protocol/framing/frame.h"
#include "protocol/framing/udp_frame.h"
#include "request/stages.h"
#include "store/cuda/cuda_store.h"
#include "store/testing/store_fixture.h"

namespace warpcache::simulated_gpu {
namespace {

using engine::cuda::PacketResult;
using engine::cuda::PacketRunner;
using engine::cuda::PacketRunnerConfig;
using engine::cuda::PacketSlot;
using engine::cuda::PacketState;
using gpu::CudaMemory;
using packets::RandomFrames;
using protocol::testing::Aligned;

constexpr uint64_t kMemory = uint64_t{16} << 20;  // of each store
constexpr uint32_t kBatchMax = 80;
constexpr uint32_t kBufferBytes = 1024 * 1024;
constexpr size_t kFrameMax = 3 * 1024;  // the GPU leaves larger frames to the host
constexpr size_t kKeysMax = 128;        // and multigets of more keys

// A frame up to its commands, or its keys if it is a multiget.
struct Opened {
  enum class Kind : uint8_t { kDropped, kCutHeader, kSeveral, kMultiget, kOne };
  Kind kind = Kind::kDropped;
  net::Packet packet;
  protocol::UdpHeader header;
  std::vector<protocol::Frame> commands;
};

// The commands are the keys of one get or gets line.
bool is_multiget(const std::vector<protocol::Frame>& commands) {
  for (const protocol::Frame& command : commands) {
    const bool is_last = &command == &commands.back();
    if (command.kind != protocol::FrameKind::kTextKey) return false;
    if ((command.detail & protocol::kKeyOfGat) != 0) return false;
    if (((command.detail & protocol::kKeyLast) != 0) != is_last) return false;
  }
  return true;
}

Opened open(Aligned& frame, uint8_t protocol) {
  Opened opened;
  const Bytes bytes = {frame.data(), frame.size};
  if (net::parse_packet(bytes, net::testing::kTestPort, opened.packet) !=
      net::PacketVerdict::kRequest) {
    return opened;
  }
  const Bytes datagram = bytes.sub(opened.packet.payload_offset, opened.packet.payload_size);
  if (protocol::parse_udp_header(datagram, opened.header) != protocol::UdpVerdict::kRequest) {
    return opened;
  }
  protocol::FrameState state = {};
  protocol::FrameLimits limits = protocol::testing::packet_limits();
  limits.cas_enabled = false;
  limits.protocol = protocol;
  constexpr uint32_t kCommandsMax = 2000;
  opened.commands.resize(kCommandsMax);
  const protocol::FrameResult framed =
      protocol::frame_datagram(state, limits, datagram.from(protocol::kUdpHeaderSize),
                               opened.packet.payload_offset + protocol::kUdpHeaderSize, 0,
                               opened.commands.data(), kCommandsMax);
  EXPECT_EQ(framed.end, protocol::FrameEnd::kClose);
  opened.commands.resize(framed.count);
  if (framed.count == 0) {  // the first bytes of a binary header: no answer, but not dropped
    opened.kind = Opened::Kind::kCutHeader;
    return opened;
  }
  opened.kind = Opened::Kind::kSeveral;
  if (is_multiget(opened.commands)) opened.kind = Opened::Kind::kMultiget;
  if (framed.count == 1) opened.kind = Opened::Kind::kOne;
  return opened;
}

struct Answer {
  bool dropped = false;
  std::vector<std::string> frames;
};

// The reply's frames: each datagram has headers of its own.
std::vector<std::string> frames_with(const Aligned& frame, const Opened& opened, Bytes text) {
  std::vector<std::string> frames;
  const auto size = static_cast<uint32_t>(text.size);
  const uint32_t count = protocol::udp_datagram_count(size);
  const uint32_t headers = net::reply_headers_size(opened.packet);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t part = protocol::udp_payload_size(size, i);
    const uint32_t payload = protocol::kUdpHeaderSize + part;
    std::string reply(headers + payload + net::kEthernetFrameMin, '\0');
    auto* const out = reinterpret_cast<uint8_t*>(reply.data());
    net::compose_reply_headers(frame.data(), opened.packet, payload, out);
    const protocol::UdpHeader header = {opened.header.request_id, static_cast<uint16_t>(i),
                                        static_cast<uint16_t>(count)};
    protocol::compose_udp_header(header, out + headers);
    put(out + headers + protocol::kUdpHeaderSize, text.sub(i * protocol::kUdpPayloadMax, part));
    net::finish_udp_checksum(opened.packet, payload, out);
    reply.resize(net::pad_frame(out, headers + payload));
    frames.push_back(reply);
  }
  return frames;
}

// Runs one frame at a time with the stages that the CPU engine runs.
class HostStages {
 public:
  explicit HostStages(uint8_t protocol = protocol::kProtocolAuto) : protocol_(protocol) {
    EXPECT_EQ(store_->register_thread(&thread_), Status::kOk);
  }
  ~HostStages() { store_->unregister_thread(&thread_); }
  HostStages(const HostStages&) = delete;
  HostStages& operator=(const HostStages&) = delete;

  void set_clock(const store::Clock& clock) {
    clock_ = clock;
    store_->set_clock(clock.now);
  }

  Answer run(const std::string& bytes) {
    Aligned frame(bytes);
    const Opened opened = open(frame, protocol_);
    if (opened.kind == Opened::Kind::kDropped) return {true, {}};
    if (opened.kind == Opened::Kind::kCutHeader) return {false, {}};
    request::Context context;
    context.store = store_->ref();
    context.thread = &thread_;
    context.input = frame.data();
    context.clock = clock_;
    context.counters = &counters_;
    context.item_size_max = protocol::testing::packet_limits().item_size_max;
    context.cas_enabled = false;
    std::vector<uint8_t> text(1024 * 1024);
    uint8_t* end = text.data();
    context.store.enter_batch(thread_);
    for (const protocol::Frame& command : opened.commands) {
      EXPECT_EQ(request::process_request(context, command, end), Status::kOk);
    }
    context.store.leave_batch(thread_);
    return {false,
            frames_with(frame, opened, {text.data(), static_cast<size_t>(end - text.data())})};
  }

 private:
  uint8_t protocol_;
  std::unique_ptr<store::Store> store_ = store::make_store(store::quiet_config(kMemory));
  store::ThreadContext thread_;
  request::Counters counters_;
  store::Clock clock_ = {};
};

// How bursts are run.
struct Mode {
  bool persistent = false;
  uint32_t copied_packets_min = 0;
  uint8_t protocol = protocol::kProtocolAuto;
  uint32_t frame_room = 0;
};

class GpuPackets {
 public:
  explicit GpuPackets(const Mode& mode) : frame_room_(mode.frame_room) {
    store::CudaStoreConfig config;
    config.block_scratch_bytes = engine::cuda::block_scratch_bytes();
    config.store = store::quiet_config(kMemory);
    config.engines = 1;
    config.blocks_per_engine = 4;
    EXPECT_EQ(store::CudaStore::create(config, faults_, &store_), "");
    PacketRunnerConfig packets;
    packets.udp_port = net::testing::kTestPort;
    packets.cas_enabled = false;
    packets.protocol = mode.protocol;
    packets.jobs.blocks_max = config.blocks_per_engine;
    packets.jobs.persistent = mode.persistent;
    packets.copied_packets_min = mode.copied_packets_min;
    EXPECT_EQ(PacketRunner::create(packets, *store_, faults_, counters_, &engine_), "");
    EXPECT_TRUE(input_.allocate(CudaMemory::Place::kHost, kBufferBytes));
    EXPECT_TRUE(replies_.allocate(CudaMemory::Place::kHost, kBufferBytes));
    EXPECT_TRUE(slots_.allocate(CudaMemory::Place::kHost, kBatchMax * sizeof(PacketSlot)));
    EXPECT_TRUE(results_.allocate(CudaMemory::Place::kHost, kBatchMax * sizeof(PacketResult)));
  }
  ~GpuPackets() { engine_->release_device(); }
  GpuPackets(const GpuPackets&) = delete;
  GpuPackets& operator=(const GpuPackets&) = delete;

  void advance(uint32_t seconds) { store_->set_clock(store_->clock().now + seconds); }
  store::Clock clock() const { return store_->clock(); }
  uint64_t hash_seed() const { return store_->resources().core.seed.value; }

  void run(const std::vector<std::string>& frames) {
    uint32_t used = 0;
    ASSERT_LE(frames.size(), kBatchMax);
    for (size_t i = 0; i < frames.size(); ++i) {
      const auto size = static_cast<uint32_t>(frames[i].size());
      ASSERT_LE(used + size, kBufferBytes);
      mem_copy(input_.data() + used, frames[i].data(), size);
      slots_.as<PacketSlot>()[i] = {used, size};
      used += std::max((size + 15) / 16 * 16, frame_room_);
    }
    net::PacketBurst& batch = batch_;
    batch.input = input_.data();
    batch.input_bytes = frame_room_ == 0 ? used : 0;
    batch.frame_room = frame_room_;
    batch.count = static_cast<uint32_t>(frames.size());
    batch.slots = slots_.as<PacketSlot>();
    batch.replies = replies_.data();
    batch.reply_bytes = kBufferBytes;
    batch.results = results_.as<PacketResult>();
    ASSERT_TRUE(engine_->run(batch));
  }
  PacketState state(size_t number) const { return result(number).state(); }
  bool is_beside(size_t number) const {
    return net::ReplyFrames(batch_, static_cast<uint32_t>(number)).is_beside();
  }
  Answer answer(size_t number) const {
    Answer answer;
    answer.dropped = state(number) == PacketState::kDropped;
    const net::ReplyFrames frames(batch_, static_cast<uint32_t>(number));
    for (uint32_t i = 0; i < frames.count(); ++i) {
      answer.frames.emplace_back(reinterpret_cast<const char*>(frames[i].data), frames[i].size);
    }
    return answer;
  }

 private:
  PacketResult result(size_t number) const { return results_.as<PacketResult>()[number]; }

  uint32_t frame_room_;
  net::PacketBurst batch_;  // the latest

  gpu::DeviceFaults faults_;
  std::unique_ptr<store::CudaStore> store_;
  request::Counters counters_;
  std::unique_ptr<PacketRunner> engine_;
  CudaMemory input_;  // pinned, as the others are
  CudaMemory replies_;
  CudaMemory slots_;
  CudaMemory results_;
};

// Collects a batch whose result does not depend on the order of its frames.
class Unordered {
 public:
  explicit Unordered(uint8_t protocol) : protocol_(protocol) {}

  const std::vector<std::string>& frames() const { return frames_; }

  // Adds the frame unless its effect would depend on the order.
  void add(const std::string& bytes) {
    Aligned frame(bytes);
    const Opened opened = open(frame, protocol_);
    const bool runs = opened.kind == Opened::Kind::kOne || opened.kind == Opened::Kind::kMultiget;
    for (const protocol::Frame& command : opened.commands) {
      if (runs && !fits(frame, command, bytes)) return;
    }
    frames_.push_back(bytes);
  }

 private:
  bool fits(Aligned& frame, const protocol::Frame& command, const std::string& bytes) {
    protocol::Request request;
    protocol::parse_request(command, frame.data(), request);
    if (!request::acts_on_key(request.op)) return true;
    const auto* const begin = reinterpret_cast<const char*>(frame.data());
    const std::string key(begin + request.key_offset, request.key_size);
    const bool text = request.protocol == protocol::Protocol::kText;
    const bool reads =
        text && request.op == protocol::Op::kGet && (request.bits & protocol::kTouchBit) == 0;
    const bool sets = text && request.op == protocol::Op::kSet;
    const auto [place, is_new] = users_.try_emplace(key, reads ? "" : bytes);
    if (is_new) return true;
    return reads ? place->second.empty() : sets && place->second == bytes;
  }

  uint8_t protocol_;
  std::vector<std::string> frames_;
  std::map<std::string, std::string> users_;  // by key: the frame that may change it, or ""
};

// The GPU may leave this frame to the host.
bool is_for_host(const std::string& bytes, uint8_t protocol) {
  if (bytes.size() > kFrameMax) return true;
  Aligned frame(bytes);
  net::Packet packet;
  if (net::parse_packet_without_extensions({frame.data(), frame.size}, net::testing::kTestPort,
                                           packet) == net::PacketVerdict::kExtensions) {
    return true;
  }
  const Opened opened = open(frame, protocol);
  if (opened.kind == Opened::Kind::kMultiget) return opened.commands.size() > kKeysMax;
  if (opened.kind != Opened::Kind::kOne) return opened.kind == Opened::Kind::kSeveral;
  protocol::Request request;
  protocol::parse_request(opened.commands[0], frame.data(), request);
  return request::is_administrative(request.op);
}

// What a seed's frames came to, so that a generator that makes nothing but errors is noticed.
struct Tally {
  uint64_t answered = 0;
  uint64_t hits = 0;  // frames
  uint64_t multigets = 0;
  uint64_t multigets_beside = 0;  // answered in the requests' buffers
  uint64_t dropped = 0;
  uint64_t left_to_host = 0;
};

// Runs a batch on both. What the GPU leaves to the host runs on neither.
void compare(GpuPackets& gpu, HostStages& host, const std::vector<std::string>& frames,
             Tally& tally, uint8_t protocol = protocol::kProtocolAuto) {
  ASSERT_NO_FATAL_FAILURE(gpu.run(frames));
  for (size_t i = 0; i < frames.size(); ++i) {
    if (gpu.state(i) == PacketState::kHost) {
      EXPECT_TRUE(is_for_host(frames[i], protocol)) << testing::PrintToString(frames[i]);
      ++tally.left_to_host;
      continue;
    }
    const Answer theirs = gpu.answer(i);
    const Answer ours = host.run(frames[i]);
    ASSERT_EQ(theirs.dropped, ours.dropped) << testing::PrintToString(frames[i]);
    ASSERT_EQ(theirs.frames, ours.frames) << testing::PrintToString(frames[i]);
    if (ours.dropped) ++tally.dropped;
    Aligned sent(frames[i]);
    if (open(sent, protocol).kind == Opened::Kind::kMultiget) {
      ++tally.multigets;
      if (gpu.is_beside(i)) ++tally.multigets_beside;
    }
    if (!ours.frames.empty()) ++tally.answered;
    for (const std::string& frame : ours.frames) {
      if (frame.find("VALUE ") != std::string::npos) ++tally.hits;
    }
  }
}

void run_seed(uint64_t seed, const Mode& mode, Tally& tally) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  GpuPackets gpu(mode);
  HostStages host(mode.protocol);
  RandomFrames random(seed);
  for (int round = 0; round < 12; ++round) {
    if (random.one_in(3)) gpu.advance(random.below(4));
    host.set_clock(gpu.clock());
    Unordered batch(mode.protocol);
    const uint32_t count = 1 + random.below(kBatchMax - 8);
    for (uint32_t i = 0; i < count && batch.frames().size() + 2 <= kBatchMax; ++i) {
      const std::string frame = random.frame();
      batch.add(frame);
      if (random.one_in(10)) batch.add(frame);
    }
    ASSERT_NO_FATAL_FAILURE(compare(gpu, host, batch.frames(), tally, mode.protocol));
  }
  std::vector<std::string> gets;
  for (const std::string& key : random.keys()) gets.push_back(RandomFrames::get_frame(key));
  compare(gpu, host, gets, tally, mode.protocol);
}

void run_seeds(const Mode& mode) {
  const uint64_t seeds = testing_effort<uint64_t>(20, 500);
  Tally tally;
  for (uint64_t seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed) {
    run_seed(seed, mode, tally);
  }
  if (testing::Test::HasFailure()) return;
  EXPECT_GT(tally.answered, 200 * seeds);
  EXPECT_GT(tally.hits, 30 * seeds);
  EXPECT_GT(tally.multigets, 10 * seeds);
  EXPECT_EQ(tally.multigets_beside > seeds, mode.frame_room != 0);
  EXPECT_GT(tally.dropped, 10 * seeds);
  EXPECT_GT(tally.left_to_host, seeds);
}

// Two keys of 19 bytes that an index takes for the same until it compares their last three bytes:
// all bits of the hash that choose a pair, a tag and a slot are equal.
std::pair<std::string, std::string> twins(uint64_t seed) {
  constexpr uint64_t kBits = 0xffff0000ffffffu;
  std::vector<std::pair<uint64_t, std::string>> keys;
  for (int prefix = 0; prefix < 100; ++prefix) {
    keys.clear();
    const std::string begin = std::to_string(1000000000000000 + prefix);
    for (char a = '!'; a <= '~'; ++a) {
      for (char b = '!'; b <= '~'; ++b) {
        for (char c = '!'; c <= '~'; ++c) {
          const std::string key = begin + a + b + c;
          keys.emplace_back(hash_key(seed, bytes_of(key)) & kBits, key);
        }
      }
    }
    std::sort(keys.begin(), keys.end());
    const auto same = [](const auto& one, const auto& other) { return one.first == other.first; };
    const auto found = std::adjacent_find(keys.begin(), keys.end(), same);
    if (found != keys.end()) return {found->second, (found + 1)->second};
  }
  return {};
}

TEST(PacketAgreement, OfKeysThatDifferInTheirLastBytesOnly) {
  GpuPackets gpu({});
  HostStages host;
  host.set_clock(gpu.clock());
  const auto [one, other] = twins(gpu.hash_seed());
  ASSERT_NE(one, other);
  const auto set_frame = [](const std::string& key, const std::string& value) {
    return net::testing::frame_of(protocol::testing::kHeader + "set " + key + " 0 0 1\r\n" + value +
                                  "\r\n");
  };
  const std::vector<std::string> gets = {RandomFrames::get_frame(one),
                                         RandomFrames::get_frame(other)};
  Tally tally;
  compare(gpu, host, {set_frame(one, "1")}, tally);
  compare(gpu, host, gets, tally);
  EXPECT_EQ(tally.hits, 1u);
  compare(gpu, host, {set_frame(other, "2")}, tally);
  compare(gpu, host, gets, tally);
  EXPECT_EQ(tally.hits, 3u);
}

TEST(PacketAgreement, OfLaunches) { run_seeds({false, 0}); }
TEST(PacketAgreement, OfCopiedBatches) { run_seeds({false, 1}); }
TEST(PacketAgreement, OfAPersistentKernel) { run_seeds({true, 0}); }

// Replies beside their requests: all of them, or those that fit.
TEST(PacketAgreement, OfRepliesBesideTheirRequests) {
  run_seeds({false, 0, protocol::kProtocolAuto, 2048});
  run_seeds({true, 0, protocol::kProtocolAuto, 192});
}

// With -B a server speaks one protocol: what is not of it is no request.
TEST(PacketAgreement, OfOneProtocol) {
  const auto run = [](uint8_t protocol) {
    Tally tally;
    for (uint64_t seed = 1; seed <= 5 && !testing::Test::HasFailure(); ++seed) {
      run_seed(seed, {false, 0, protocol}, tally);
    }
    return tally;
  };
  const Tally text = run(protocol::kProtocolText);
  const Tally binary = run(protocol::kProtocolBinary);
  EXPECT_GT(text.hits, 0u);
  EXPECT_GT(binary.answered, 0u);
  EXPECT_EQ(binary.hits, 0u);  // in text
}

}  // namespace
}  // namespace warpcache::simulated_gpu
