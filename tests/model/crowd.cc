// SPDX-License-Identifier: Apache-2.0
#include "model/crowd.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/assert.h"
#include "model/generator.h"
#include "model/pipeline.h"

namespace warpcache::model {

namespace {

constexpr int kStreamsPerScript = 8;  // more than a generator uses
constexpr int kScriptsPerPlayer = 6;
constexpr uint64_t kBytesPerScript = uint64_t{4} << 20;
constexpr uint64_t kMemoryPerPlayer = 2 * kScriptsPerPlayer * kBytesPerScript;
// Of all crowds together: kernels that stay need their places at the same time.
constexpr uint32_t kGpuBlocks = 128;
constexpr uint32_t kGpuBlocksOfOneMax = 64;

// One of the crowd: plays scripts, one after the other, and sees the common server as one with
// streams of its own.
class Member final : public Server {
 public:
  Member(const CrowdConfig& config, Server& server, uint32_t number)
      : config_(config),
        server_(server),
        number_(number),
        first_stream_(static_cast<int>(number) * kStreamsPerScript * kScriptsPerPlayer) {}

  void send_round(uint32_t round);
  void compare_round(bool ran);
  // Ends the script that is under way.
  void end_script();
  // By which time is to pass in this round. 0: none.
  uint32_t take_seconds() { return std::exchange(seconds_, 0); }
  CrowdResult& result() { return result_; }

  void send(int stream, const std::string& bytes) override {
    server_.send(first_stream_ + stream, bytes);
  }
  void send_datagram(const std::string&) override { WC_ASSERT(false); }
  bool run() override { WC_ASSERT(false); }  // the crowd does
  std::string take_output(int stream) override {
    return server_.take_output(first_stream_ + stream);
  }
  std::vector<std::string> take_datagrams() override { return {}; }
  bool closed(int stream) override { return server_.closed(first_stream_ + stream); }
  void advance(uint32_t seconds) override { seconds_ = seconds; }
  std::string finish() override { return {}; }  // when all are through
  int64_t now() const override { return server_.now(); }
  int64_t unix_start() const override { return server_.unix_start(); }
  std::string version() const override { return server_.version(); }
  uint64_t first_cas() const override { return server_.first_cas(); }
  bool cas_follows_requests() const override { return server_.cas_follows_requests(); }
  bool wait(int stream) override { return server_.wait(first_stream_ + stream); }
  bool runs_on() const override { return server_.runs_on(); }

 private:
  bool begin_script(uint32_t first_round);

  const CrowdConfig& config_;
  Server& server_;
  const uint32_t number_;
  int first_stream_;
  int scripts_ = 0;  // begun
  bool differs_ = false;
  uint32_t seconds_ = 0;
  Script script_;
  std::optional<Player> player_;  // of the script; none between two
  CrowdResult result_;
};

// False: it has played all that it may.
bool Member::begin_script(uint32_t first_round) {
  if (differs_ || scripts_ == kScriptsPerPlayer) return false;
  if (scripts_ != 0) first_stream_ += kStreamsPerScript;
  GeneratorConfig config;
  config.bytes_max = kBytesPerScript;
  config.datagrams = false;
  config.messages_max = config_.messages_max;
  config.shared = true;
  config.prefix = "p" + std::to_string(number_) + "." + std::to_string(scripts_) + ".";
  config.first_round = first_round;
  config.last_round = config_.rounds;
  SeededDice dice((config_.seed * 1'000'003 + number_) * kScriptsPerPlayer +
                  static_cast<uint64_t>(scripts_));
  script_ = Generator(config, dice).generate();
  player_.emplace(script_, *this, false);
  ++scripts_;
  return true;
}

// Where the model is at a loss, another script with keys of its own goes on.
void Member::send_round(uint32_t round) {
  while (player_.has_value() || begin_script(round)) {
    if (player_->send_round()) return;
    end_script();
  }
}

void Member::compare_round(bool ran) {
  if (!player_.has_value() || player_->compare_round(ran)) return;
  // What is missing was not waited for.
  if (config_.stops()) return player_.reset();
  end_script();
}

void Member::end_script() {
  if (!player_.has_value()) return;
  Played played = player_->end();
  player_.reset();
  if (result_.add(std::move(script_), std::move(played))) differs_ = true;
}

PipelineConfig pipeline_config(const CrowdConfig& config, uint32_t jobs) {
  PipelineConfig pipeline;
  pipeline.engine = config.engine;
  pipeline.cuts = config.seed;
  pipeline.gpu_blocks = std::clamp(kGpuBlocks / jobs, 1u, kGpuBlocksOfOneMax);
  pipeline.memory_bytes = config.players * kMemoryPerPlayer;
  return pipeline;
}

std::unique_ptr<Server> start(const CrowdConfig& config, uint32_t jobs) {
  if (config.program.empty()) return std::make_unique<Pipeline>(pipeline_config(config, jobs));
  ProcessConfig process;
  process.program = config.program;
  process.options = {"-M", "-m", std::to_string(config.players * kMemoryPerPlayer >> 20)};
  process.cuts = config.seed;
  process.runs_on = true;
  process.ends_with_parent = true;
  process.stop = config.stop;
  return config.start(process);
}

class Crowd {
 public:
  Crowd(const CrowdConfig& config, uint32_t jobs) : config_(config), server_(start(config, jobs)) {
    for (uint32_t i = 0; i < config.players; ++i) {
      members_.push_back(std::make_unique<Member>(config_, *server_, i));
    }
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  void play();
  CrowdResult result();

 private:
  const CrowdConfig config_;
  const std::unique_ptr<Server> server_;
  std::vector<std::unique_ptr<Member>> members_;
  bool cut_short_ = false;
};

void Crowd::play() {
  bool runs = true;
  for (uint32_t round = 1; round <= config_.rounds && runs && !cut_short_; ++round) {
    uint32_t seconds = 0;
    for (const auto& member : members_) {
      member->send_round(round);
      seconds = std::max(seconds, member->take_seconds());  // all that pass time say the same
    }
    if (seconds != 0) server_->advance(seconds);
    runs = server_->run();
    for (const auto& member : members_) member->compare_round(runs);
    cut_short_ = config_.stops();
  }
}

CrowdResult Crowd::result() {
  CrowdResult all;
  for (const auto& member : members_) {
    member->end_script();
    CrowdResult& one = member->result();
    all.commands += one.commands;
    for (const auto& [loss, count] : one.losses) all.losses[loss] += count;
    for (CrowdResult::Failure& failure : one.failures) all.failures.push_back(std::move(failure));
  }
  all.cut_short = cut_short_;
  all.counts = server_->counts();
  if (!cut_short_) all.broken = server_->finish();
  return all;
}

}  // namespace

bool CrowdResult::add(Script script, Played played) {
  commands += played.commands;
  if (!played.loss.empty()) ++losses[played.loss];
  if (!played.difference.has_value()) return false;
  failures.push_back({std::move(script), *std::move(played.difference)});
  return true;
}

CrowdResult play_crowd(const CrowdConfig& config) {
  return std::move(play_crowds({config}).front());
}

// All are made before one plays, and have finished before one is gone: taking and giving back a
// GPU's memory waits for all its kernels, and one that stays ends when its pipeline finishes.
std::vector<CrowdResult> play_crowds(const std::vector<CrowdConfig>& configs) {
  std::vector<std::unique_ptr<Crowd>> crowds;
  const auto jobs = static_cast<uint32_t>(configs.size());
  for (const CrowdConfig& config : configs) {
    crowds.push_back(std::make_unique<Crowd>(config, jobs));
  }
  std::vector<std::thread> threads;
  for (const auto& crowd : crowds) threads.emplace_back([&crowd] { crowd->play(); });
  for (std::thread& thread : threads) thread.join();
  std::vector<CrowdResult> results;
  for (const auto& crowd : crowds) results.push_back(crowd->result());
  return results;
}

}  // namespace warpcache::model
