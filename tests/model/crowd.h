// SPDX-License-Identifier: Apache-2.0
//
// Plays many scripts at the same time against one pipeline or one server's process, each with its
// own keys and model: batches of thousands of requests of many connections, with every reply byte
// compared. In each round all players send, then the requests run, then all players compare.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/testing/rig.h"
#include "model/player.h"
#include "model/script.h"
#include "model/server_process.h"

namespace warpcache::model {

struct CrowdConfig {
  uint32_t players = 16;  // each with up to four streams
  uint32_t rounds = 200;
  uint32_t messages_max = 50;  // of a stream in a round
  uint64_t seed = 1;           // the same seed plays the same crowd
  engine::RigKind engine = engine::RigKind::kCpu;
  std::string program = {};  // a server that is started instead; it has `debugtime`
  StartProcess start = start_process;
  // Set, at any time and by a signal's handler, when the crowd is to end. Null: it plays to its
  // end.
  const std::atomic<bool>* stop = nullptr;

  bool stops() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
};

struct CrowdResult {
  struct Failure {
    Script script;  // of one player
    Difference difference;
  };
  uint64_t commands = 0;
  std::vector<Failure> failures;
  std::map<std::string, size_t> losses;    // why scripts were not played to their end
  std::map<std::string, uint64_t> counts;  // the server's own
  std::string broken;                      // a broken invariant at the end; empty: none
  bool cut_short = false;                  // it was ended by `stop`, in the middle of its rounds

  // Counts a script that has ended. True: it differs.
  bool add(Script script, Played played);
};

// Throws std::runtime_error if there is no such engine, or the program does not start.
CrowdResult play_crowd(const CrowdConfig& config);
// Plays several crowds at the same time, each in its own thread with its own engine and store.
// Returns their results in the same order.
std::vector<CrowdResult> play_crowds(const std::vector<CrowdConfig>& configs);

}  // namespace warpcache::model
