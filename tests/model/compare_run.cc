// SPDX-License-Identifier: Apache-2.0
#include "model/compare_run.h"

#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string_view>

#include "model/comparison.h"
#include "model/player.h"

namespace warpcache::model {

namespace {

// A difference counts if it shows again with more patience: see ProcessConfig::patience_ms.
constexpr int kPatienceMs[] = {20, 300, 2000};

constexpr size_t kProgressCommands = 50'000;
constexpr uint32_t kMessagesMax = 10;  // of a stream in a round, most of the time

class Run {
 public:
  explicit Run(const CompareConfig& config) : config_(config) {}

  int play_all();
  int play_one(const Script& script);

 private:
  GeneratorConfig generator_config() const;
  Compared play(const Script& script, int patience_ms) const;
  Compared play_until_sure(const Script& script);
  void report(uint64_t seed, const Script& script, const Unlisted& difference);
  void print_totals(uint64_t scripts) const;

  const CompareConfig& config_;
  size_t commands_ = 0;
  size_t differences_ = 0;
  size_t unsteady_ = 0;  // scripts that differed once and not again
  std::map<std::string_view, size_t> listed_;
  std::map<std::string, size_t> kinds_;
};

ProcessConfig process_config(const std::string& program, const Script& script, int patience_ms) {
  ProcessConfig config;
  config.program = program;
  config.options = {"-m", "128"};
  if (script.item_size_max != Script{}.item_size_max) {
    // memcached wants such an item to be whole chunks.
    for (const char* word : {"-o", "slab_chunk_max=8", "-I"}) config.options.emplace_back(word);
    config.options.push_back(std::to_string(script.item_size_max));
  }
  config.cuts = script.cuts;
  config.patience_ms = patience_ms;
  return config;
}

// The rounds up to `last` of which it takes as few as possible, by doubling, to differ.
Script last_rounds(const Script& script, uint32_t last,
                   const std::function<bool(const Script&)>& differs) {
  for (uint32_t rounds = 1;; rounds *= 2) {
    Script tail = script;
    std::erase_if(tail.steps, [last, rounds](const Step& step) {
      return step.round > last || step.round + rounds <= last;
    });
    if (rounds > last || differs(tail)) return tail;
  }
}

GeneratorConfig Run::generator_config() const {
  const ServerProcess theirs(process_config(config_.memcached, Script{}, kPatienceMs[0]));
  if (!theirs.ok()) throw std::runtime_error(config_.memcached + " does not start");
  GeneratorConfig generator;
  generator.protocol = config_.protocol;
  generator.common = theirs.version().starts_with("1.6.18");
  generator.wide = !generator.common;
  generator.clock = theirs.clock_moves();
  generator.datagrams = false;
  generator.messages_max = kMessagesMax;
  generator.steps = config_.steps;
  return generator;
}

Compared Run::play(const Script& script, int patience_ms) const {
  ServerProcess ours(process_config(config_.warpcached, script, patience_ms));
  ServerProcess theirs(process_config(config_.memcached, script, patience_ms));
  if (!ours.ok()) throw std::runtime_error(config_.warpcached + " does not start");
  if (!theirs.ok()) throw std::runtime_error(config_.memcached + " does not start");
  Compared compared = Comparison(script, ours, theirs).play();
  const std::string ours_end = ours.finish();
  const std::string theirs_end = theirs.finish();
  if (!ours_end.empty() || !theirs_end.empty()) {
    compared.difference = Unlisted{0, 0, ours_end, theirs_end};
  }
  return compared;
}

Compared Run::play_until_sure(const Script& script) {
  Compared compared;
  for (const int patience_ms : kPatienceMs) {
    compared = play(script, patience_ms);
    if (!compared.difference.has_value()) {
      unsteady_ += patience_ms == kPatienceMs[0] ? 0 : 1;
      break;
    }
  }
  return compared;
}

void Run::report(uint64_t seed, const Script& script, const Unlisted& difference) {
  ++differences_;
  const std::string kind = kind_of(difference);
  if (++kinds_[kind] > 1) return;
  const auto differs = [this, &kind](const Script& candidate) {
    const Compared compared = play(candidate, kPatienceMs[0]);
    return compared.difference.has_value() && kind_of(*compared.difference) == kind;
  };
  const Script small = shrink(last_rounds(script, difference.round, differs), differs);
  const Compared again = play(small, kPatienceMs[1]);
  std::cout << "seed " << seed << "\n"
            << write_script(again.transcript) << describe(again.difference.value_or(difference))
            << std::endl;
}

int Run::play_all() {
  const GeneratorConfig generator = generator_config();
  uint64_t seed = config_.seed;
  for (; commands_ < config_.commands; ++seed) {
    if (differences_ != 0 && !config_.keep_going) break;
    SeededDice dice(seed);
    const Script script = Generator(generator, dice).generate();
    const Compared compared = play_until_sure(script);
    const size_t before = commands_;
    commands_ += compared.commands;
    if (before / kProgressCommands != commands_ / kProgressCommands) {
      std::cerr << commands_ << " commands, " << differences_ << " differences so far\n";
    }
    for (const auto& [name, count] : compared.listed) listed_[name] += count;
    if (compared.difference.has_value()) report(seed, script, *compared.difference);
  }
  print_totals(seed - config_.seed);
  return differences_ == 0 ? 0 : 1;
}

int Run::play_one(const Script& script) {
  const Compared compared = play_until_sure(script);
  std::cout << write_script(compared.transcript);
  for (const auto& [name, count] : compared.listed) std::cout << "# listed: " << name << "\n";
  if (!compared.difference.has_value()) return 0;
  std::cout << describe(*compared.difference);
  return 1;
}

void Run::print_totals(uint64_t scripts) const {
  std::cout << scripts << " scripts, " << commands_ << " commands, " << differences_
            << " differences that are not listed, of " << kinds_.size() << " kinds; " << unsteady_
            << " scripts differed once and not again\n";
  for (const ListedDifference& listed : listed_differences()) {
    const auto met = listed_.find(listed.name);
    std::cout << "listed: " << listed.name << ": " << (met == listed_.end() ? 0 : met->second)
              << "\n";
  }
}

}  // namespace

int run_comparison(const CompareConfig& config) { return Run(config).play_all(); }

int compare_script(const CompareConfig& config, const Script& script) {
  return Run(config).play_one(script);
}

}  // namespace warpcache::model
