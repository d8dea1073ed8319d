// SPDX-License-Identifier: Apache-2.0
#include "model/crowd.h"

#include <atomic>
#include <barrier>
#include <memory>
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

class Crowd;

// What one player sees of the pipeline.
class Member final : public Server {
 public:
  Member(Crowd& crowd, int number)
      : crowd_(crowd), first_stream_(number * kStreamsPerScript * kScriptsPerPlayer) {}

  void send(int stream, const std::string& bytes) override {
    outbox_[first_stream_ + stream] += bytes;
  }
  void send_datagram(const std::string&) override { WC_ASSERT(false); }
  bool run() override;
  std::string take_output(int stream) override;
  std::vector<std::string> take_datagrams() override { return {}; }
  bool closed(int stream) override;
  void advance(uint32_t seconds) override;
  std::string finish() override { return {}; }  // when all are through
  int64_t now() const override;
  int64_t unix_start() const override;
  std::string version() const override;
  uint64_t first_cas() const override;

  // Hands on what was sent since the last call.
  void deliver(Pipeline& pipeline);

  // Another script begins: its streams are new ones.
  void begin_script() { first_stream_ += kStreamsPerScript; }
  uint32_t rounds() const { return rounds_; }

 private:
  Crowd& crowd_;
  int first_stream_;
  uint32_t rounds_ = 0;                // run so far
  std::map<int, std::string> outbox_;  // by the pipeline's number of the stream
};

class Crowd {
 public:
  explicit Crowd(const CrowdConfig& config);

  CrowdResult play();

  Pipeline& pipeline() { return pipeline_; }
  // Waits for all players; then the pipeline runs. False: it is stuck.
  bool meet();
  // Likewise, and time passes. All players ask for the same.
  void meet_and_advance(uint32_t seconds);

 private:
  struct Meeting {
    Crowd* crowd;
    void operator()() noexcept { crowd->work(); }
  };

  void work();
  void play_one(uint32_t player);
  Script script_of(uint32_t player, int number, uint32_t first_round) const;

  CrowdConfig config_;
  Pipeline pipeline_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<CrowdResult> results_;  // of the players
  std::barrier<Meeting> barrier_;
  std::atomic<uint32_t> seconds_{0};
  bool stuck_ = false;
};

bool Member::run() {
  ++rounds_;
  return crowd_.meet();
}
std::string Member::take_output(int stream) {
  return crowd_.pipeline().take_output(first_stream_ + stream);
}
bool Member::closed(int stream) { return crowd_.pipeline().closed(first_stream_ + stream); }
void Member::advance(uint32_t seconds) { crowd_.meet_and_advance(seconds); }
int64_t Member::now() const { return crowd_.pipeline().now(); }
int64_t Member::unix_start() const { return crowd_.pipeline().unix_start(); }
std::string Member::version() const { return crowd_.pipeline().version(); }
uint64_t Member::first_cas() const { return crowd_.pipeline().first_cas(); }

void Member::deliver(Pipeline& pipeline) {
  for (const auto& [stream, bytes] : outbox_) pipeline.send(stream, bytes);
  outbox_.clear();
}

PipelineConfig pipeline_config(const CrowdConfig& config) {
  PipelineConfig pipeline;
  pipeline.engine = config.engine;
  pipeline.cuts = config.seed;
  pipeline.gpu_blocks = 64;
  pipeline.memory_bytes = config.players * kMemoryPerPlayer;
  return pipeline;
}

Crowd::Crowd(const CrowdConfig& config)
    : config_(config),
      pipeline_(pipeline_config(config)),
      results_(config.players),
      barrier_(config.players, Meeting{this}) {
  for (uint32_t i = 0; i < config.players; ++i) {
    members_.push_back(std::make_unique<Member>(*this, static_cast<int>(i)));
  }
}

bool Crowd::meet() {
  barrier_.arrive_and_wait();
  return !stuck_;
}

void Crowd::meet_and_advance(uint32_t seconds) {
  seconds_ = seconds;
  barrier_.arrive_and_wait();
}

void Crowd::work() {
  for (const auto& member : members_) member->deliver(pipeline_);
  const uint32_t seconds = seconds_.exchange(0);
  if (seconds != 0) {
    pipeline_.advance(seconds);
  } else {
    stuck_ = !pipeline_.run();
  }
}

Script Crowd::script_of(uint32_t player, int number, uint32_t first_round) const {
  GeneratorConfig config;
  config.bytes_max = kBytesPerScript;
  config.datagrams = false;
  config.messages_max = config_.messages_max;
  config.shared = true;
  config.prefix = "p" + std::to_string(player) + "." + std::to_string(number) + ".";
  config.first_round = first_round;
  config.last_round = config_.rounds;
  SeededDice dice((config_.seed * 1'000'003 + player) * kScriptsPerPlayer +
                  static_cast<uint64_t>(number));
  return Generator(config, dice).generate();
}

// Where the model is at a loss, another script with keys of its own goes on.
void Crowd::play_one(uint32_t player) {
  Member& member = *members_[player];
  CrowdResult& result = results_[player];
  for (int number = 0; number < kScriptsPerPlayer && member.rounds() < config_.rounds; ++number) {
    if (number > 0) member.begin_script();
    Script script = script_of(player, number, member.rounds() + 1);
    const Played played = model::play(script, member);
    result.commands += played.commands;
    if (!played.loss.empty()) ++result.losses[played.loss];
    if (!played.difference.has_value()) continue;
    result.failures.push_back({std::move(script), *played.difference});
    break;
  }
  (void)barrier_.arrive_and_drop();
}

CrowdResult Crowd::play() {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < config_.players; ++i) {
    threads.emplace_back([this, i] { play_one(i); });
  }
  for (std::thread& thread : threads) thread.join();
  CrowdResult all;
  for (CrowdResult& one : results_) {
    all.commands += one.commands;
    for (const auto& [loss, count] : one.losses) all.losses[loss] += count;
    for (CrowdResult::Failure& failure : one.failures) all.failures.push_back(std::move(failure));
  }
  all.broken = pipeline_.finish();
  return all;
}

}  // namespace

CrowdResult play_crowd(const CrowdConfig& config) { return Crowd(config).play(); }

}  // namespace warpcache::model
