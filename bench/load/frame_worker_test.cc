// SPDX-License-Identifier: Apache-2.0
#include "load/frame_worker.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "net/testing/packets.h"

namespace warpcache::load {
namespace {

using net::testing::byte_at;
using net::testing::get16;

constexpr size_t kPayload = 42;
constexpr size_t kBody = 50;

// What the server does with a request's text. It sends each of the frames; none: it is lost.
using Answer = std::function<std::vector<std::string>(const std::string& text)>;

// A port whose other side is a function. It verifies each frame byte by byte, without the code that
// has made it.
class ServerPort final : public io::FramePort {
 public:
  explicit ServerPort(Answer answer) : answer_(std::move(answer)) {}

  bool receive(io::FrameBuffer& buffer, int /*timeout_ms*/) override {
    while (buffer.has_space() && !replies_.empty() && buffer.count < burst_) {
      const std::string& reply = replies_.front();
      std::memcpy(buffer.next(), reply.data(), reply.size());
      buffer.add(static_cast<uint32_t>(reply.size()), 0);
      replies_.pop_front();
    }
    return true;
  }
  void send(uint32_t /*burst*/, const io::TxFrame* frames, uint32_t count) override {
    for (uint32_t i = 0; i < count; ++i) {
      take({reinterpret_cast<const char*>(frames[i].bytes.data), frames[i].bytes.size});
    }
  }
  void pass_on(const MutableBytes*, uint32_t) override {}
  void stop() override {}
  std::string describe() const override { return "a test's server"; }

  // The most frames of one receive().
  void set_burst(uint32_t frames) { burst_ = frames; }
  // Changes a reply, whose checksums are right before.
  std::function<void(std::string&)> change = [](std::string&) {};

  std::vector<std::string> texts;                 // of all requests
  std::map<uint16_t, std::vector<uint16_t>> ids;  // by the client's port
  uint32_t shortest = ~0u;                        // frame

 private:
  void take(const std::string& frame) {
    shortest = std::min(shortest, static_cast<uint32_t>(frame.size()));
    ASSERT_GE(frame.size(), 60u);
    ASSERT_EQ(frame.substr(0, 14), std::string("\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\0", 14));
    const size_t udp_size = get16(frame, 38);
    ASSERT_EQ(get16(frame, 16), 20 + udp_size);
    const size_t end = 34 + udp_size;
    ASSERT_EQ(frame.size(), std::max<size_t>(end, 60));
    ASSERT_EQ(frame.substr(end), std::string(frame.size() - end, '\0'));
    std::string mended = frame;
    net::testing::mend(mended, net::testing::kMendAll, frame.size() - end);
    ASSERT_EQ(frame, mended);
    ASSERT_EQ(frame.substr(26, 8), std::string("\x0a\x09\0\x01\x0a\x09\0\x02", 8));
    ASSERT_EQ(get16(frame, 36), 11211);
    ASSERT_EQ(frame.substr(44, 6), std::string("\0\0\0\1\0\0", 6));
    const uint16_t port = get16(frame, 34);
    texts.push_back(frame.substr(kBody, end - kBody));
    ids[port].push_back(get16(frame, kPayload));
    const std::vector<std::string> parts = answer_(texts.back());
    for (size_t part = 0; part < parts.size(); ++part) {
      std::string payload =
          frame.substr(kPayload, 2) + std::string("\0\0\0\0\0\0", 6) + parts[part];
      payload[3] = static_cast<char>(part);
      payload[5] = static_cast<char>(parts.size());
      net::testing::FrameForm form;
      form.source_port = 11211;
      form.destination_port = port;
      std::string reply = net::testing::frame_of(payload, form);
      change(reply);
      replies_.push_back(std::move(reply));
    }
  }

  Answer answer_;
  uint32_t burst_ = ~0u;
  std::deque<std::string> replies_;
};

class FrameWorkerTest : public testing::Test {
 protected:
  FrameWorkerTest() {
    options.frames = "a test's";
    options.connections = 4;
    options.pipeline = 3;
    options.sets = 0;
    options.keys = 500;
    options.requests = 2000;
    options.distribution = "uniform";
    options.sizes = "fixed:16:2";
  }

  // Runs the load against the answers. `prepare` may change the port.
  void run(const Answer& answer, const std::function<void(ServerPort&)>& prepare = {}) {
    bench::Sizes sizes;
    std::string why;
    ASSERT_TRUE(bench::Sizes::parse(options.sizes, &sizes, &why)) << why;
    ASSERT_TRUE(Distribution::parse(options.distribution, &distribution_, &why)) << why;
    distribution_.prepare(options.keys, nullptr);
    keys = std::make_unique<Keyspace>(options.seed, sizes, options.keys);
    numbers_.clear();
    for (uint32_t id = 0; id < options.keys; ++id) numbers_[key(id)] = id;
    auto owned = std::make_unique<ServerPort>(answer);
    port = owned.get();
    if (prepare) prepare(*port);
    sockaddr_in client = {};
    sockaddr_in server = {};
    inet_pton(AF_INET, "10.9.0.1", &client.sin_addr);
    inet_pton(AF_INET, "10.9.0.2", &server.sin_addr);
    server.sin_port = htons(11211);
    worker = std::make_unique<FrameWorker>(options, *keys, &distribution_, 0, &stop_,
                                           std::move(owned), client, server);
    if (options.fill) worker->fill();
    Window window;
    window.begin_ns = 0;
    worker->load(window);
  }

  std::string key(uint32_t id) const {
    std::string out(bench::kKeySizeMax, '\0');
    out.resize(keys->write_key(id, out.data()));
    return out;
  }
  uint32_t number_of(const std::string& name) const { return numbers_.at(name); }

  // "VALUE" with its value and line ends.
  std::string value(const std::string& name, uint32_t version = 9) const {
    const uint32_t id = number_of(name);
    std::string bytes(keys->value_size(id), '\0');
    keys->write_value(id, version, bytes.data());
    return "VALUE " + name + " " + std::to_string(keys->flags(id, version)) + " " +
           std::to_string(bytes.size()) + "\r\n" + bytes + "\r\n";
  }

  // The names in a get.
  static std::vector<std::string> names_of(const std::string& text) {
    std::vector<std::string> names;
    size_t at = std::string("get").size();
    while (text[at] == ' ') {
      const size_t end = text.find_first_of(" \r", at + 1);
      names.push_back(text.substr(at + 1, end - at - 1));
      at = end;
    }
    return names;
  }

  std::vector<std::string> answer_rightly(const std::string& text) const {
    if (text.starts_with("set ")) return {"STORED\r\n"};
    if (text.starts_with("delete ")) return {"DELETED\r\n"};
    std::string reply;
    for (const std::string& name : names_of(text)) reply += value(name);
    return {reply + "END\r\n"};
  }

  void run_rightly(const std::function<void(ServerPort&)>& prepare = {}) {
    run([this](const std::string& text) { return answer_rightly(text); }, prepare);
    EXPECT_EQ(worker->failure(), "");
    EXPECT_EQ(counters().wrong.get(), 0u) << worker->findings().first_wrong;
    EXPECT_EQ(counters().lost.get(), 0u);
    EXPECT_EQ(counters().refused.get(), 0u);
    EXPECT_EQ(counters().misses.get(), 0u);
    EXPECT_EQ(answered(), options.requests);
  }

  const Counters& counters() const { return worker->counters(); }
  uint64_t answered() const {
    uint64_t all = 0;
    for (const Counter& one : counters().requests) all += one.get();
    return all;
  }

  Options options = [] {
    Options made;
    made.fill = false;
    return made;
  }();
  std::unique_ptr<Keyspace> keys;
  std::unique_ptr<FrameWorker> worker;
  ServerPort* port = nullptr;  // the worker's

 private:
  std::atomic<bool> stop_{false};
  Distribution distribution_;
  std::map<std::string, uint32_t> numbers_;
};

TEST_F(FrameWorkerTest, GetsAreWholeFramesAndCountOnce) {
  run_rightly();
  EXPECT_EQ(counters().hits.get(), 2000u);
  EXPECT_EQ(counters().latency_ns[0].count(), 2000u);
  ASSERT_EQ(port->texts.size(), 2000u);
  const size_t sent = port->texts[0].size() + DatagramHeader::kSize;
  EXPECT_EQ(counters().bytes_sent.get(), 2000 * sent);
  const std::set<std::string> different(port->texts.begin(), port->texts.end());
  EXPECT_GT(different.size(), 450u);
}

TEST_F(FrameWorkerTest, KeysOfAllSizesHaveTheirChecksums) {
  for (uint32_t size = bench::kKeySizeMin; size <= bench::kKeySizeMax; ++size) {
    options.requests = 30;
    options.sizes = "fixed:" + std::to_string(size) + ":2";
    run_rightly();
    EXPECT_EQ(port->texts[0].size(), size + 6);
    if (HasFatalFailure()) return;
  }
}

TEST_F(FrameWorkerTest, FramesOfSeveralSizesMix) {
  options.sizes = "keys:7:8=1,9=1,16=1,33=1,250=1";
  options.sets = 0.3;
  options.deletes = 0.2;
  run_rightly();
  EXPECT_GT(counters().requests[1].get(), 300u);
  EXPECT_GT(counters().requests[2].get(), 200u);
  std::set<size_t> sizes;
  for (const std::string& text : port->texts) sizes.insert(text.size());
  EXPECT_GT(sizes.size(), 10u);
}

TEST_F(FrameWorkerTest, IdsWrap) {
  options.connections = 1;
  options.requests = 70'000;
  run_rightly();
  ASSERT_EQ(port->ids.size(), 1u);
  const std::vector<uint16_t>& ids = port->ids.begin()->second;
  EXPECT_EQ(std::set<uint16_t>(ids.begin(), ids.end()).size(), 3 * 65536u / 4);
  for (size_t i = 0; i + 3 < ids.size(); ++i) {
    ASSERT_EQ(std::set<uint16_t>(&ids[i], &ids[i] + 3).size(), 3u);
  }
}

TEST_F(FrameWorkerTest, AllConnectionsAreUsedWithTheirPlaces) {
  options.connections = 70;
  options.pipeline = 5;
  run_rightly([](ServerPort& server) { server.set_burst(7); });
  EXPECT_EQ(port->ids.size(), 70u);
  for (const auto& [client, ids] : port->ids) EXPECT_GE(ids.size(), 5u) << client;
}

TEST_F(FrameWorkerTest, Multigets) {
  options.multiget = 24;
  run_rightly();
  EXPECT_EQ(counters().hits.get(), 24 * 2000u);
}

TEST_F(FrameWorkerTest, LongMultigetsThatFit) {
  options.multiget = 80;  // of which the longest would not fit
  run_rightly();
  EXPECT_EQ(counters().hits.get(), 80 * 2000u);
}

TEST_F(FrameWorkerTest, RequestsThatDoNotFitEndTheRun) {
  options.multiget = 90;
  run([this](const std::string& text) { return answer_rightly(text); });
  EXPECT_NE(worker->failure().find("does not fit into a frame"), std::string::npos);
}

TEST_F(FrameWorkerTest, MissesAreStoredWithLookAside) {
  options.look_aside = true;
  std::set<std::string> stored;
  run([&](const std::string& text) -> std::vector<std::string> {
    const size_t space = text.find(' ') + 1;
    const std::string name = text.substr(space, text.find_first_of(" \r", space) - space);
    if (text.starts_with("set ")) stored.insert(name);
    if (text.starts_with("get ") && !stored.contains(name)) return {"END\r\n"};
    return answer_rightly(text);
  });
  EXPECT_EQ(counters().wrong.get(), 0u);
  EXPECT_GT(stored.size(), 450u);
  EXPECT_EQ(counters().misses.get() + counters().hits.get(), counters().requests[0].get());
  EXPECT_EQ(counters().requests[1].get(), counters().misses.get());
}

TEST_F(FrameWorkerTest, FillSetsEachKeyOnce) {
  options.fill = true;
  run_rightly();
  std::multiset<std::string> set;
  for (const std::string& text : port->texts) {
    if (text.starts_with("set ")) set.insert(text.substr(4, 16));
  }
  EXPECT_EQ(set.size(), 500u);
  for (uint32_t id = 0; id < options.keys; ++id) EXPECT_EQ(set.count(key(id)), 1u);
}

TEST_F(FrameWorkerTest, OpenLoop) {
  options.rate = 1e6;
  run_rightly();
  EXPECT_EQ(counters().delay_ns.count(), 2000u);
}

TEST_F(FrameWorkerTest, RepliesInPiecesAreJoined) {
  options.sizes = "fixed:16:900";
  run([this](const std::string& text) -> std::vector<std::string> {
    const std::string all = answer_rightly(text)[0];
    return {all.substr(0, 300), all.substr(300, 400), all.substr(700)};
  });
  EXPECT_EQ(counters().wrong.get(), 0u);
  EXPECT_EQ(counters().hits.get(), 2000u);
}

TEST_F(FrameWorkerTest, WhatDoesNotComeIsLost) {
  options.connections = 1;
  options.requests = 20;
  options.timeout_s = 0.01;
  uint32_t count = 0;
  run([&](const std::string& text) {
    return ++count % 2 == 0 ? std::vector<std::string>{} : answer_rightly(text);
  });
  EXPECT_EQ(answered(), 10u);
  EXPECT_GE(counters().lost.get(), 10u - options.pipeline);  // of the last ones nobody waits
}

// Each with a share of the replies that are checked whole: all, or every tenth.
class VerifyTest : public FrameWorkerTest, public testing::WithParamInterface<double> {
 protected:
  VerifyTest() {
    options.verify_share = GetParam();
    options.requests = 1000;
  }
  uint64_t checked() const { return static_cast<uint64_t>(1000 * GetParam()); }
};

TEST_P(VerifyTest, RightValues) { run_rightly(); }

TEST_P(VerifyTest, WrongValues) {
  run([this](const std::string& text) {
    std::string reply = answer_rightly(text)[0];
    reply[reply.size() - 8] ^= 1;
    return std::vector<std::string>{reply};
  });
  EXPECT_EQ(counters().wrong.get(), checked());
  EXPECT_EQ(counters().hits.get(), 1000 - checked());
}

TEST_P(VerifyTest, ValuesOfAnotherKey) {
  run([this](const std::string& text) {
    const uint32_t id = number_of(names_of(text)[0]);
    return std::vector<std::string>{value(key((id + 1) % options.keys)) + "END\r\n"};
  });
  EXPECT_EQ(counters().wrong.get(), checked());
}

TEST_P(VerifyTest, WrongFlags) {
  run([this](const std::string& text) {
    std::string reply = answer_rightly(text)[0];
    const size_t at = reply.find(" 2\r") - 1;
    reply[at] = reply[at] == '1' ? '2' : '1';
    return std::vector<std::string>{reply};
  });
  EXPECT_EQ(counters().wrong.get(), checked());
}

TEST_P(VerifyTest, WrongChecksums) {
  options.connections = 200;  // for all requests at once
  options.pipeline = 5;
  options.timeout_s = 0.01;
  for (const size_t at : {size_t{24}, size_t{40}}) {  // IP's and UDP's
    run([this](const std::string& text) { return answer_rightly(text); },
        [at](ServerPort& server) {
          server.change = [at](std::string& reply) {
            reply[at] = static_cast<char>(reply[at] ^ 0x55);
          };
        });
    EXPECT_EQ(counters().wrong.get(), 0u);
    EXPECT_EQ(answered(), 1000 - checked());  // those that are found are as good as lost
  }
}

INSTANTIATE_TEST_SUITE_P(Shares, VerifyTest, testing::Values(1.0, 0.1));

}  // namespace
}  // namespace warpcache::load
