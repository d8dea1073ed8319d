// SPDX-License-Identifier: Apache-2.0
//
// The long form of model_test, and the tool for single scripts. See usage().
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/compare_run.h"
#include "model/crowd.h"
#include "model/frames_crowd.h"
#include "model/generator.h"
#include "model/message_server.h"
#include "model/player.h"
#include "model/server_process.h"

namespace {

using namespace warpcache::model;

constexpr char kUsage[] =
    "usage: run_model [--seconds N] [--first SEED] [--steps N] [--keep-going]\n"
    "                 [--engine cpu|cuda|cuda-persistent|cuda-host-values|cuda-edge | --memcached "
    "PROGRAM]\n"
    "       run_model --crowd PLAYERS [--jobs N] [--rounds N] [--messages N] [--seconds N]\n"
    "                 [--first SEED] [--engine NAME] [--keep-going] [--details FOLDER]\n"
    "       run_model --crowd PLAYERS --server PROGRAM [--ucx] [--jobs N] [--rounds N]\n"
    "                 [--messages N] [--seconds N] [--total N] [--first SEED] [--keep-going]\n"
    "                 [--details FOLDER]\n"
    "       run_model [--engine NAME | --server PROGRAM [--ucx] | [--compare PROGRAM] "
    "--memcached PROGRAM]\n"
    "                 --replay FILE\n"
    "       run_model --frames memif|pipes --server PROGRAM [--requests N] [--players N]\n"
    "                 [--rounds N] [--messages N] [--seconds N] [--first SEED] [--engine NAME]\n"
    "                 [--keep-going] [--details FOLDER]\n"
    "       run_model --compare PROGRAM --memcached PROGRAM [--protocol text|meta|binary]\n"
    "                 [--commands N] [--first SEED] [--steps N] [--keep-going]\n"
    "Plays random scripts against the pipeline (or memcached) and the model; shrinks and prints\n"
    "what differs. --crowd plays as many at a time against one pipeline, in large batches; with\n"
    "--jobs N: N such crowds at a time, a thread and a pipeline each. --details: what differs\n"
    "in a crowd is written there at full length, with the scripts.\n"
    "--frames plays as many scripts of datagrams at a time against a server's port of raw\n"
    "Ethernet frames, through shared memory (memif, needs DPDK) or captures in named pipes; it\n"
    "ends after --requests, or after --seconds.\n"
    "--server: a warpcached with `debugtime` is started by PROGRAM for each crowd instead, and "
    "the\n"
    "players are its clients. --ucx: by active messages, which it is given --ucx for. --total: "
    "crowds\n"
    "are played until there were that number of messages.\n"
    "SIGTERM, SIGINT and SIGHUP end crowds: what was compared until then is told, and the crowd "
    "that\n"
    "is ended in its middle does not count. The status is then 3, or 1 if something differs.\n"
    "--replay prints a script with its answers.\n"
    "--compare sends the same random commands to warpcached, given by its program, and to\n"
    "memcached, and compares all answers; only what docs/compatibility.md lists may differ.\n";

const std::vector<std::string> kMemcachedOptions = {"-m", "128", "-o",
                                                    "no_lru_maintainer,no_lru_crawler"};

constexpr int kEndedEarly = 3;  // by a signal; nothing differed
// Set by a signal, where those are handled.
std::atomic<bool> ended{false};

struct Arguments {
  double seconds = 10;
  uint64_t first = 1'000'000;
  size_t steps = 0;  // 0: as many as is usual
  std::string memcached;
  CompareConfig compare;  // where it names a program
  warpcache::engine::RigKind engine = warpcache::engine::RigKind::kCpu;
  std::string replay;
  CrowdConfig crowd{.players = 0};
  size_t jobs = 1;        // crowds at a time
  uint32_t messages = 0;  // of a player in a round; 0: as many as is usual
  std::optional<FrameLink> frames;
  uint32_t players = FramesConfig{}.players;
  uint64_t total = 0;     // messages; 0: as many as the seconds allow
  uint64_t requests = 0;  // of `frames`; 0: as many as there is time for
  std::string details;    // a folder; empty: none
  bool keep_going = false;
};

bool by_messages(const Arguments& arguments) {
  return arguments.crowd.start == start_message_server;
}

bool read_protocol(const std::string& word, Protocol& protocol) {
  const std::map<std::string, Protocol> protocols = {
      {"text", Protocol::kText}, {"meta", Protocol::kMeta}, {"binary", Protocol::kBinary}};
  const auto found = protocols.find(word);
  if (found != protocols.end()) protocol = found->second;
  return found != protocols.end();
}

bool read_link(const std::string& word, std::optional<FrameLink>& link) {
  if (word == "memif") link = FrameLink::kMemif;
  if (word == "pipes") link = FrameLink::kPipes;
  return link.has_value();
}

bool read_arguments(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--keep-going") {
      arguments.keep_going = true;
      continue;
    }
    if (word == "--ucx") {
      arguments.crowd.start = start_message_server;
      continue;
    }
    if (i + 1 == argc) return false;
    const std::string value = argv[++i];
    if (word == "--seconds") {
      arguments.seconds = std::atof(value.c_str());
    } else if (word == "--first") {
      arguments.first = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word == "--steps") {
      arguments.steps = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word == "--frames") {
      if (!read_link(value, arguments.frames)) return false;
    } else if (word == "--requests") {
      arguments.requests = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word == "--players") {
      arguments.players = static_cast<uint32_t>(std::atoi(value.c_str()));
    } else if (word == "--crowd") {
      arguments.crowd.players = static_cast<uint32_t>(std::atoi(value.c_str()));
    } else if (word == "--jobs") {
      arguments.jobs = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word == "--rounds") {
      arguments.crowd.rounds = static_cast<uint32_t>(std::atoi(value.c_str()));
    } else if (word == "--messages") {
      arguments.messages = static_cast<uint32_t>(std::atoi(value.c_str()));
    } else if (word == "--total") {
      arguments.total = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word == "--server") {
      arguments.crowd.program = value;
    } else if (word == "--memcached") {
      arguments.memcached = value;
    } else if (word == "--engine") {
      if (!warpcache::engine::read_rig_kind(value, &arguments.engine)) return false;
    } else if (word == "--compare") {
      arguments.compare.warpcached = value;
    } else if (word == "--commands") {
      arguments.compare.commands = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word == "--protocol") {
      if (!read_protocol(value, arguments.compare.protocol)) return false;
    } else if (word == "--details") {
      arguments.details = value;
    } else if (word == "--replay") {
      arguments.replay = value;
    } else {
      return false;
    }
  }
  const bool compares = !arguments.compare.warpcached.empty();
  const bool plays =
      arguments.crowd.players != 0 || !arguments.replay.empty() || arguments.frames.has_value();
  const bool frames_need = arguments.frames.has_value() && arguments.crowd.program.empty();
  const bool messages_can = !by_messages(arguments) ||
                            (!arguments.crowd.program.empty() && !arguments.frames.has_value());
  return arguments.jobs != 0 && !frames_need && messages_can && arguments.players != 0 &&
         (!compares || !arguments.memcached.empty()) && (arguments.crowd.program.empty() || plays);
}

Played play_on(const Arguments& arguments, const Script& script) {
  if (!arguments.crowd.program.empty()) {
    const ProcessConfig config = {
        .program = arguments.crowd.program,
        .options = {"-m", "256", "-I", std::to_string(script.item_size_max)},
        .runs_on = true,
        .ends_with_parent = true,
        .stop = &ended};
    if (by_messages(arguments)) return play(script, *arguments.crowd.start(config));
    ServerProcess server(config);
    if (!server.ok()) throw std::runtime_error(arguments.crowd.program + " does not start");
    return play(script, server);
  }
  if (arguments.memcached.empty()) return play(script, *start_pipeline(script, arguments.engine));
  // Its clock may have moved on in between: what differs must differ again.
  Played played;
  for (int i = 0; i < 3; ++i) {
    ServerProcess reference({arguments.memcached, kMemcachedOptions});
    if (!reference.ok()) {
      std::cerr << arguments.memcached << " does not start\n";
      std::exit(2);
    }
    played = play(script, reference);
    if (!played.difference.has_value()) break;
  }
  return played;
}

CompareConfig compare_config(const Arguments& arguments) {
  CompareConfig config = arguments.compare;
  config.memcached = arguments.memcached;
  config.seed = arguments.first;
  if (arguments.steps != 0) config.steps = arguments.steps;
  config.keep_going = arguments.keep_going;
  return config;
}

int replay(const Arguments& arguments) {
  std::ifstream file(arguments.replay);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Script script;
  std::string error;
  if (!read_script(text, script, error)) {
    std::cerr << arguments.replay << ": " << error << "\n";
    return 2;
  }
  if (!arguments.compare.warpcached.empty()) {
    return compare_script(compare_config(arguments), script);
  }
  const Played played = play_on(arguments, script);
  std::cout << write_script(played.transcript);
  if (!played.difference.has_value()) return 0;
  std::cout << describe(*played.difference);
  return 1;
}

void print_small(const Arguments& arguments, const Script& script, const Difference& difference) {
  const Script small = shrink(script, [&arguments](const Script& candidate) {
    // A script that was cut short by the end says nothing.
    return !ended && play_on(arguments, candidate).difference.has_value() && !ended;
  });
  if (ended) {
    std::cout << write_script(small) << describe(difference) << "not made smaller: ended\n";
    return;
  }
  const Played again = play_on(arguments, small);
  std::cout << write_script(again.transcript) << describe(again.difference.value_or(difference))
            << std::endl;
}

// The first few, each in a file of its own.
void write_details(const std::string& folder, uint64_t seed, const CrowdResult& result) {
  constexpr size_t kFilesMax = 4;
  for (size_t i = 0; i < std::min(result.failures.size(), kFilesMax); ++i) {
    const Difference& difference = result.failures[i].difference;
    std::ofstream file(folder + "/crowd-" + std::to_string(seed) + "-" + std::to_string(i));
    file << write_script(result.failures[i].script) << "\n"
         << describe(difference) << "\n--- expected\n"
         << difference.expected << "\n--- got\n"
         << difference.got << "\n";
  }
}

// Prints what went wrong in a crowd. Returns the number of differences.
size_t print_crowd(const Arguments& arguments, uint64_t seed, const CrowdResult& result) {
  const std::string name = "crowd " + std::to_string(seed);
  if (!result.broken.empty()) std::cout << name << ": " << result.broken << "\n";
  for (const CrowdResult::Failure& failure : result.failures) {
    std::cout << name << ", " << describe(failure.difference);
  }
  if (result.failures.empty()) return result.broken.empty() ? 0 : 1;
  if (!arguments.details.empty()) write_details(arguments.details, seed, result);
  const CrowdResult::Failure& first = result.failures.front();
  std::cout << std::flush;
  if (result.cut_short || ended) {
    std::cout << "not played again\n";
  } else if (play_on(arguments, first.script).difference.has_value()) {
    print_small(arguments, first.script, first.difference);
  } else {
    std::cout << "not in a single script\n";
  }
  return result.failures.size() + (result.broken.empty() ? 0 : 1);
}

void handle_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { ended.store(true, std::memory_order_relaxed); };
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) (void)sigaction(number, &action, nullptr);
}

int run_crowds(const Arguments& arguments) {
  handle_signals();
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(arguments.seconds);
  CrowdConfig config = arguments.crowd;
  if (arguments.messages != 0) config.messages_max = arguments.messages;
  config.engine = arguments.engine;
  config.seed = arguments.first;
  config.stop = &ended;
  uint64_t commands = 0;
  uint64_t crowds = 0;
  size_t differences = 0;
  std::map<std::string, size_t> losses;
  std::map<std::string, uint64_t> counts;
  const auto goes_on = [&] {
    if (ended) return false;
    return arguments.total != 0 ? commands < arguments.total
                                : std::chrono::steady_clock::now() < end;
  };
  while (goes_on() && (differences == 0 || arguments.keep_going)) {
    std::vector<CrowdConfig> configs;
    for (size_t job = 0; job < arguments.jobs; ++job, ++config.seed) configs.push_back(config);
    const std::vector<CrowdResult> results = play_crowds(configs);
    for (size_t job = 0; job < arguments.jobs; ++job) {
      if (results[job].cut_short) {
        std::cout << "crowd " << configs[job].seed << " was ended by a signal: not counted\n";
      } else {
        ++crowds;
        commands += results[job].commands;
        for (const auto& [name, count] : results[job].counts) counts[name] += count;
      }
      for (const auto& [loss, count] : results[job].losses) losses[loss] += count;
      differences += print_crowd(arguments, configs[job].seed, results[job]);
    }
  }
  std::cout << crowds << " crowds, " << commands << " messages, " << differences
            << " differences\n";
  for (const auto& [loss, count] : losses) {
    std::cout << "given up: " << count << " for " << loss << "\n";
  }
  for (const auto& [name, count] : counts) std::cout << "counted: " << name << " " << count << "\n";
  if (differences != 0) return 1;
  return ended ? kEndedEarly : 0;
}

// The options of a server with this engine.
std::vector<std::string> engine_options(warpcache::engine::RigKind engine) {
  using warpcache::engine::RigKind;
  std::vector<std::string> options = {"-m", "256"};
  if (engine == RigKind::kCpu) return options;
  options.insert(options.end(), {"--engine=cuda", "--on-gpu-error=exit"});
  if (engine == RigKind::kCudaPersistent) options.push_back("--gpu-mode=persistent");
  if (engine == RigKind::kCudaEdge) options.push_back("--gpu-mode=edge");
  if (engine == RigKind::kCudaHostValues) options.push_back("--values=host");
  return options;
}

int run_frames(const Arguments& arguments) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(arguments.seconds);
  FramesConfig config;
  config.program = arguments.crowd.program;
  config.options = engine_options(arguments.engine);
  config.link = *arguments.frames;
  config.players = arguments.players;
  config.rounds = arguments.crowd.rounds;
  if (arguments.messages != 0) config.messages_max = arguments.messages;
  FramesCrowd crowd(config);
  uint64_t seed = arguments.first;
  uint64_t requests = 0;
  size_t differences = 0;
  std::map<std::string, size_t> losses;
  const auto goes_on = [&] {
    if (differences != 0 && !arguments.keep_going) return false;
    if (arguments.requests != 0) return requests < arguments.requests;
    return std::chrono::steady_clock::now() < end;
  };
  for (bool whole = true; whole && goes_on(); ++seed) {
    const CrowdResult result = crowd.play(seed);
    requests += result.commands;
    for (const auto& [loss, count] : result.losses) losses[loss] += count;
    differences += print_crowd(arguments, seed, result);
    whole = result.broken.empty();
  }
  std::cout << seed - arguments.first << " crowds, " << requests << " requests in frames, "
            << differences << " differences\n";
  for (const auto& [loss, count] : losses) {
    std::cout << "given up: " << count << " for " << loss << "\n";
  }
  std::cout << std::flush;
  crowd.exit(differences == 0 ? 0 : 1);
}

int run(const Arguments& arguments) {
  GeneratorConfig config;
  if (arguments.steps != 0) config.steps = arguments.steps;
  if (!arguments.memcached.empty()) {
    config.clock = config.datagrams = false;
    config.common = true;
  }
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(arguments.seconds);
  size_t commands = 0;
  size_t differences = 0;
  std::map<std::string, size_t> losses;
  uint64_t seed = arguments.first;
  for (; std::chrono::steady_clock::now() < end; ++seed) {
    SeededDice dice(seed);
    const Script script = Generator(config, dice).generate();
    const Played played = play_on(arguments, script);
    commands += played.commands;
    if (!played.loss.empty()) ++losses[played.loss];
    if (!played.difference.has_value()) continue;
    ++differences;
    std::cout << "seed " << seed << "\n";
    print_small(arguments, script, *played.difference);
    if (!arguments.keep_going) break;
  }
  std::cout << seed - arguments.first << " scripts, " << commands << " messages, " << differences
            << " differences\n";
  for (const auto& [loss, count] : losses) {
    std::cout << "given up: " << count << " for " << loss << "\n";
  }
  return differences == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!read_arguments(argc, argv, arguments)) {
    std::cerr << kUsage;
    return 2;
  }
  try {
    if (!arguments.replay.empty()) return replay(arguments);
    if (!arguments.compare.warpcached.empty()) return run_comparison(compare_config(arguments));
    if (arguments.frames.has_value()) return run_frames(arguments);
    if (arguments.crowd.players != 0) return run_crowds(arguments);
    return run(arguments);
  } catch (const std::exception& failure) {
    std::cerr << failure.what() << "\n";
    return 2;
  }
}
