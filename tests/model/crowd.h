// SPDX-License-Identifier: Apache-2.0
//
// Many scripts at a time against one pipeline, each with keys of its own and a model of its own:
// batches of thousands of requests of many connections, every reply byte compared. In each round
// all send, then the pipeline works off what they have sent, then all compare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/testing/rig.h"
#include "model/player.h"
#include "model/script.h"

namespace warpcache::model {

struct CrowdConfig {
  uint32_t players = 16;  // each with up to four streams
  uint32_t rounds = 200;
  uint32_t messages_max = 50;  // of a stream in a round
  uint64_t seed = 1;           // the same seed plays the same crowd
  engine::RigKind engine = engine::RigKind::kCpu;
};

struct CrowdResult {
  struct Failure {
    Script script;  // of one player
    Difference difference;
  };
  uint64_t commands = 0;
  std::vector<Failure> failures;
  std::map<std::string, size_t> losses;  // why scripts were not played to their end
  std::string broken;                    // an invariant, once all is over; empty: none
};

// Throws std::runtime_error where there is no such engine.
CrowdResult play_crowd(const CrowdConfig& config);
// Several at a time, a thread each, each with an engine and a store of its own. Returns their
// results in the same order.
std::vector<CrowdResult> play_crowds(const std::vector<CrowdConfig>& configs);

}  // namespace warpcache::model
