// SPDX-License-Identifier: Apache-2.0
#include "offline/study.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "offline/report.h"

namespace warpcache::offline {
namespace {

StudyConfig small_study() {
  StudyConfig config;
  config.workload.keys = 5000;
  config.requests = 20000;
  config.batches = {1, 100};
  config.passes = 1;
  return config;
}

StudyResult run_on_cpu(const StudyConfig& config, uint32_t threads = 2) {
  BackendConfig backend;
  backend.memory_bytes = uint64_t{64} << 20;
  backend.threads = threads;
  return run_study(config, *make_cpu_backend(backend), [](const std::string&) {});
}

void expect_all_right(const StudyConfig& config) {
  for (const Row& row : run_on_cpu(config).rows) {
    EXPECT_EQ(row.wrong, 0u) << row.first_wrong;
    EXPECT_EQ(row.verified, config.requests);
    EXPECT_GT(row.requests_per_s, 0);
    EXPECT_LE(row.p50_us, row.p99_us);
  }
}

TEST(StudyTest, EveryReplyIsRight) { expect_all_right(small_study()); }

TEST(StudyTest, EveryKindOfRequestIsAnswered) {
  StudyConfig config = small_study();
  config.batches = {64};
  config.workload.hit_ratio = 0.85;
  config.workload.set_share = 0.3;
  config.workload.theta = 0.99;
  for (const auto& [key, value] : {std::pair{8u, 0u}, {16u, 2u}, {127u, 33u}, {250u, 900u}}) {
    for (const bool checksum : {false, true}) {
      SCOPED_TRACE(std::to_string(key) + " " + std::to_string(value));
      config.workload.key_size = key;
      config.workload.value_size = value;
      config.workload.udp_checksum = checksum;
      expect_all_right(config);
    }
  }
  config.workload.set_share = 1;
  expect_all_right(config);
  config.workload.ping = true;
  expect_all_right(config);
}

TEST(StudyTest, MultigetsAreAnswered) {
  StudyConfig config = small_study();
  config.requests = 2000;
  config.batches = {64};
  config.workload.hit_ratio = 0.85;
  config.workload.set_share = 0.1;
  for (const uint32_t keys : {2u, 24u, 40u}) {
    for (const uint32_t value : {2u, 100u}) {
      SCOPED_TRACE(std::to_string(keys) + " " + std::to_string(value));
      config.workload.multiget = keys;
      config.workload.value_size = value;
      expect_all_right(config);
    }
  }
}

TEST(StudyTest, MixturesAndSortedBatchesAreAnswered) {
  StudyConfig config = small_study();
  config.batches = {64, 1000};
  config.workload.key_mixture = {{16, 0.7}, {40, 0.2}, {250, 0.1}};
  config.workload.set_share = 0.2;
  for (const Order order : {Order::kDrawn, Order::kCommand, Order::kKeySize}) {
    config.order = order;
    expect_all_right(config);
  }
}

// Values that are stored in pieces and answered in one or several datagrams.
TEST(StudyTest, LargeValuesAreAnswered) {
  StudyConfig config = small_study();
  config.workload.keys = 1000;
  config.requests = 2000;
  config.batches = {64};
  config.workload.hit_ratio = 0.85;
  for (const uint32_t value : {1024u, 1025u, 1353u, 1354u, 2745u, 2746u, 4096u, 16384u}) {
    for (const bool checksum : {false, true}) {
      SCOPED_TRACE(value);
      config.workload.value_size = value;
      config.workload.udp_checksum = checksum;
      expect_all_right(config);
    }
  }
}

TEST(StudyTest, ItemsOfManySizesAreAnswered) {
  StudyConfig config = small_study();
  config.batches = {64};
  config.workload.etc = true;
  config.workload.set_share = 0.2;
  config.workload.hit_ratio = 0.9;
  config.workload.theta = 0.99;
  expect_all_right(config);
}

// A backend that changes one byte in the reply to one request, or adds or omits a frame.
class BrokenBackend final : public Backend {
 public:
  enum class Fault : uint8_t { kByte, kNone, kOneMore };

  BrokenBackend(Fault fault, size_t wrong_at)
      : right_(make_cpu_backend({})), fault_(fault), wrong_at_(wrong_at) {}

  std::string describe() const override { return "broken"; }
  uint8_t* input(uint64_t bytes) override { return right_->input(bytes); }
  PassResult run(const Pass& pass) override { return right_->run(pass); }
  // Positions count through all frames of the reply.
  Bytes reply(uint64_t request, uint32_t datagram) const override {
    const Bytes reply = right_->reply(request, datagram);
    if (request != 777) return reply;
    if (fault_ == Fault::kNone) return {};
    if (fault_ == Fault::kOneMore) {
      return reply.size != 0 ? reply : right_->reply(request, datagram - 1);
    }
    size_t place = wrong_at_;
    for (uint32_t i = 0; i < datagram; ++i) place -= right_->reply(request, i).size;
    if (place >= reply.size) return reply;
    copy_.assign(reply.data, reply.data + reply.size);
    copy_[place] ^= 1;
    return {copy_.data(), copy_.size()};
  }

 private:
  std::unique_ptr<Backend> right_;
  Fault fault_;
  size_t wrong_at_;
  mutable std::vector<uint8_t> copy_;
};

void expect_one_wrong(const StudyConfig& config, BrokenBackend::Fault fault, size_t at = 0) {
  BrokenBackend backend(fault, at);
  const std::vector<Row> rows = run_study(config, backend, [](const std::string&) {}).rows;
  EXPECT_EQ(rows.at(0).wrong, 1u) << "byte " << at;
  EXPECT_NE(rows.at(0).first_wrong.find("777"), std::string::npos);
}

TEST(StudyTest, AnyWrongByteIsSeen) {
  StudyConfig config = small_study();
  config.requests = 1000;
  config.batches = {100};
  config.workload.udp_checksum = true;
  config.workload.keys = 100;  // so few that filling does not reach the fault
  for (const uint32_t value : {2u, 2000u}) {
    SCOPED_TRACE(value);
    config.workload.value_size = value;
    expect_one_wrong(config, BrokenBackend::Fault::kNone);
    expect_one_wrong(config, BrokenBackend::Fault::kOneMore);
    const size_t step = value < 100 ? 1 : 37;
    const size_t size = 50 + 6 + 16 + 3 + 1 + 2 + value + 2 + 5;
    for (size_t at = 0; at < size; at += step) {
      expect_one_wrong(config, BrokenBackend::Fault::kByte, at);
    }
  }
}

TEST(StudyTest, AStoreThatIsTooSmallIsNotedAsWrong) {
  StudyConfig config = small_study();
  config.batches = {100};
  config.workload.keys = 200'000;
  config.workload.value_size = 1000;
  EXPECT_GT(run_on_cpu(config).rows.at(0).wrong, 1000u);
}

TEST(StudyTest, TheSameSeedMakesTheSameFrames) {
  const Workload one(small_study().workload);
  const Workload two(small_study().workload);
  WorkloadConfig other = small_study().workload;
  other.seed = 2;
  const Workload three(other);
  uint32_t same = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    uint8_t a[256];
    uint8_t b[256];
    const uint32_t size = one.write_request(i, a);
    ASSERT_EQ(two.write_request(i, b), size);
    ASSERT_EQ(std::memcmp(a, b, size), 0);
    ASSERT_LE(size, one.request_slot());
    same +=
        static_cast<uint32_t>(three.write_request(i, b) == size && std::memcmp(a, b, size) == 0);
  }
  EXPECT_LT(same, 10u);
}

TEST(ReportTest, JsonHasWhatTheTableHas) {
  const StudyConfig config = small_study();
  const StudyResult result = run_on_cpu(config);
  const auto json = nlohmann::json::parse(json_report(config, "here", result));
  EXPECT_EQ(json["fabric"], "here");
  EXPECT_EQ(json["request_slot_bytes"], 80);
  EXPECT_EQ(json["reply_slot_bytes"], 96);
  ASSERT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][1]["batch"], 100);
  EXPECT_EQ(json["rows"][1]["wrong"], 0);
  const std::string text = text_report(config, "here", result);
  EXPECT_NE(text.find("slots of 80 B in, 96 B out"), std::string::npos) << text;
}

}  // namespace
}  // namespace warpcache::offline
