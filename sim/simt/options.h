// SPDX-License-Identifier: Apache-2.0
#ifndef WARPCACHE_SIM_SIMT_OPTIONS_H_
#define WARPCACHE_SIM_SIMT_OPTIONS_H_

#include <string>
#include <vector>

#include "simt/estimate.h"

namespace warpcache::simt {

enum class Command { kRun, kReplay, kProfile, kCounters, kMerge, kShow };

struct Options {
  Command command = Command::kRun;
  std::string graph_path;
  std::string instructions_path;
  std::string function;    // by name or part of it; empty: the first
  std::string model_path;  // empty: equal probabilities
  std::string weights;     // of classes, over the model's
  std::string assume = "model";
  std::string traces_path;
  std::string counters_path;
  std::vector<std::string> profiles;  // CLASS=FILE
  std::vector<std::string> mixtures;  // FILE:CLASS=SHARE,...
  std::vector<std::string> likes;     // CLASS=CLASS
  std::string rounds;                 // CAPACITY:CLASS=SIZE,...
  std::string json_path;              // "-": standard output
  std::string output_path;
  std::string reconvergence = "ipdom";
  bool exact = false;
  bool per_block = false;
  bool mix_classes = false;
  bool plain = false;
  uint64_t warps = 0;  // drawn from the traces; 0: the threads as they were recorded
  double class_rho = 0;
  bool quiet = false;
  RunOptions run;
};

enum class ParseResult { kGo, kShown, kRefused };

// Shows help or what is wrong by itself.
ParseResult parse_options(int argc, char** argv, Options* out);

}  // namespace warpcache::simt

#endif  // WARPCACHE_SIM_SIMT_OPTIONS_H_
