// SPDX-License-Identifier: Apache-2.0
//
// Random frames to two CPU engines, of which one may use the single-key fast path: their replies
// must be the same byte by byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/effort.h"
#include "engine/cpu/cpu_engine.h"
#include "engine/testing/store_admin.h"
#include "packets/random_frames.h"
#include "store/testing/store_fixture.h"

namespace warpcache::packets {
namespace {

constexpr uint32_t kReplyBytes = 256 * 1024;

// Sees the keys of all requests where `watches`: such an engine uses the general path only.
class Admin final : public engine::AdminHandler {
 public:
  Admin(store::StoreOwner& store, bool watches) : admin_(store), watches_(watches) {}

  void run(const protocol::Request& request, const uint8_t* input, engine::BatchEntry& entry,
           std::string& reply) override {
    admin_.run(request, input, entry, reply);
  }
  void authenticate(const protocol::Request&, const uint8_t*, engine::BatchEntry&,
                    std::string&) override {}
  bool wants_keys() const override { return watches_; }
  void saw_key(protocol::Op, Bytes, bool) override { ++seen_; }
  uint64_t seen() const { return seen_; }

 private:
  engine::StoreAdmin admin_;
  bool watches_;
  uint64_t seen_ = 0;
};

class Server {
 public:
  explicit Server(bool general_only)
      : store_(store::make_store(store::quiet_config(uint64_t{16} << 20))),
        admin_(*store_, general_only),
        engine_(config(), *store_, admin_),
        replies_(kReplyBytes / sizeof(Granule)) {
    engine::PacketSettings settings;
    settings.udp_port = net::testing::kTestPort;
    EXPECT_EQ(engine_.open_packets(settings), "");
  }

  void advance(uint32_t seconds) { store_->set_clock(store_->clock().now + seconds); }
  uint64_t seen() const { return admin_.seen(); }

  // Of each packet: its state and its reply's frames. The arena has `reply_bytes`.
  std::vector<std::vector<std::string>> run(const std::vector<std::string>& frames,
                                            uint32_t reply_bytes = kReplyBytes,
                                            uint32_t frame_room = 0) {
    std::vector<Granule> input;
    std::vector<net::PacketSlot> slots;
    for (const std::string& frame : frames) {
      slots.push_back({static_cast<uint32_t>(input.size() * sizeof(Granule)),
                       static_cast<uint32_t>(frame.size())});
      const size_t granules = (frame.size() + sizeof(Granule) - 1) / sizeof(Granule);
      input.resize(input.size() + granules);
      mem_copy(input.data() + input.size() - granules, frame.data(), frame.size());
      const size_t room = frame_room / sizeof(Granule);
      if (room > granules) input.resize(input.size() + room - granules);
    }
    std::vector<net::PacketResult> results(frames.size());
    net::PacketBurst burst;
    burst.input = reinterpret_cast<uint8_t*>(input.data());
    burst.input_bytes = static_cast<uint32_t>(input.size() * sizeof(Granule));
    burst.count = static_cast<uint32_t>(frames.size());
    burst.slots = slots.data();
    burst.replies = reinterpret_cast<uint8_t*>(replies_.data());
    burst.reply_bytes = reply_bytes;
    burst.results = results.data();
    burst.frame_room = frame_room;
    engine_.submit_packets(&burst);
    EXPECT_EQ(engine_.poll_packets(), &burst);
    dropped_ = burst.replies_dropped;
    std::vector<std::vector<std::string>> all;
    for (uint32_t packet = 0; packet < burst.count; ++packet) {
      std::vector<std::string>& answer = all.emplace_back();
      answer.push_back(std::to_string(static_cast<int>(results[packet].state())));
      const net::ReplyFrames reply(burst, packet);
      if (reply.is_beside()) ++beside_;
      for (uint32_t i = 0; i < reply.count(); ++i) {
        answer.emplace_back(reinterpret_cast<const char*>(reply[i].data), reply[i].size);
      }
    }
    return all;
  }
  uint32_t dropped() const { return dropped_; }
  uint32_t beside() const { return beside_; }  // replies that lay beside their requests
  const request::Counters& counters() const { return engine_.counters(); }

 private:
  struct alignas(16) Granule {
    uint8_t bytes[16];
  };

  static engine::CpuEngineConfig config() {
    engine::CpuEngineConfig config;
    config.admin_window = {};  // no answer depends on time
    return config;
  }

  std::unique_ptr<store::Store> store_;
  Admin admin_;
  engine::CpuEngine engine_;
  std::vector<Granule> replies_;
  uint32_t dropped_ = 0;
  uint32_t beside_ = 0;
};

std::vector<std::string> gets_of(const std::vector<std::string>& keys) {
  std::vector<std::string> frames;
  for (const std::string& key : keys) frames.push_back(RandomFrames::get_frame(key));
  return frames;
}

// The general path writes all replies to the arena.
void compare_paths(uint32_t frame_room, uint64_t seeds) {
  uint64_t hits = 0;
  uint64_t beside = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Server fast(false);
    Server general(true);
    RandomFrames random(seed);
    for (int round = 0; round < 20; ++round) {
      const uint32_t seconds = random.below(4);
      fast.advance(seconds);
      general.advance(seconds);
      std::vector<std::string> frames;
      for (uint32_t count = 1 + random.below(100); count > 0; --count) {
        frames.push_back(random.frame());
      }
      const auto one = fast.run(frames, kReplyBytes, frame_room);
      const auto other = general.run(frames);
      for (size_t i = 0; i < frames.size(); ++i) {
        ASSERT_EQ(one[i], other[i]) << testing::PrintToString(frames[i]);
      }
      const auto answers = fast.run(gets_of(random.keys()), kReplyBytes, frame_room);
      ASSERT_EQ(answers, general.run(gets_of(random.keys())));
      for (const auto& answer : answers) hits += answer.at(1).find("VALUE ") != std::string::npos;
    }
    EXPECT_GT(general.seen(), 100u);
    beside += fast.beside();
    EXPECT_EQ(fast.seen(), 0u);
    for (int i = 0; i < static_cast<int>(request::Counter::kCount); ++i) {
      const auto counter = static_cast<request::Counter>(i);
      EXPECT_EQ(fast.counters().read(counter), general.counters().read(counter)) << i;
    }
  }
  EXPECT_GT(hits, 100 * seeds);
  EXPECT_EQ(beside > 100 * seeds, frame_room != 0);
}

TEST(SingleKeyFastPath, AnswersAsTheGeneralPath) {
  compare_paths(0, testing_effort<uint64_t>(20, 500));
}

TEST(SingleKeyFastPath, AnswersBesideTheRequests) {
  compare_paths(192, testing_effort<uint64_t>(10, 250));
  compare_paths(2048, testing_effort<uint64_t>(10, 250));
}

// Replies without space in the arena are dropped and counted, whoever composes them.
TEST(SingleKeyFastPath, AnArenaThatFills) {
  Server server(false);
  const std::string value(400, 'v');
  (void)server.run(
      {net::testing::frame_of(protocol::testing::kHeader + "set k 5 0 400\r\n" + value + "\r\n")});
  const std::vector<std::string> gets(8, RandomFrames::get_frame("k"));
  for (uint32_t bytes = 0; bytes <= 8 * 512; bytes += 16) {
    const auto answers = server.run(gets, bytes);
    uint32_t answered = 0;
    for (const auto& answer : answers) {
      if (answer.size() == 1) continue;
      ++answered;
      EXPECT_NE(answer[1].find(value), std::string::npos);
    }
    ASSERT_EQ(answered + server.dropped(), gets.size()) << bytes;
    ASSERT_EQ(answered, std::min<uint32_t>(bytes / 480, 8)) << bytes;
  }
  (void)server.run(gets, 0, 1024);
  EXPECT_EQ(server.dropped(), 0u);
}

// More packets than an epoch takes, and requests of both paths among each other.
TEST(SingleKeyFastPath, LongBursts) {
  Server fast(false);
  Server general(true);
  std::vector<std::string> sets;
  std::vector<std::string> gets;
  for (int i = 0; i < 3000; ++i) {
    const std::string key = "key" + std::to_string(i);
    const std::string expiry = i % 3 == 0 ? "100" : "0";
    sets.push_back(net::testing::frame_of(protocol::testing::kHeader + "set " + key + " " +
                                          std::to_string(i) + " " + expiry + " 1\r\nx\r\n"));
    gets.push_back(RandomFrames::get_frame(i % 5 == 0 ? key + " " + key : key));
  }
  EXPECT_EQ(fast.run(sets, kReplyBytes), general.run(sets, kReplyBytes));
  EXPECT_EQ(fast.run({gets.begin(), gets.begin() + 2000}),
            general.run({gets.begin(), gets.begin() + 2000}));
}

}  // namespace
}  // namespace warpcache::packets
