// SPDX-License-Identifier: Apache-2.0
// The command line of edge-sim.
#pragma once

#include <string>
#include <vector>

#include "edge/cases.h"
#include "edge/gpu.h"
#include "edge/own_kernel.h"

namespace warpcache::edge_sim {

enum class Command : uint8_t { kRun, kLanes, kKernels };
enum class ParseResult : uint8_t { kRun, kShown, kRefused };

// A way out of the pipeline by name: none, barrier, priority, buffer, replay, all.
struct Flush {
  std::string name;
  bool barrier_skip, victim_priority, flush_buffer, replay_loads;
};

// Every combination of these is run.
struct Lists {
  std::vector<std::string> kernels{"matmul"};
  std::vector<std::string> victims{"oldest"};
  std::vector<std::string> flushes{"all"};
  std::vector<std::string> schedulers;  // empty: the machine's
  std::vector<std::string> memories{"full"};
  std::vector<std::string> l1s;  // BYTES[:WAYS]; empty: the machine's
  std::vector<uint64_t> periods{0};
  std::vector<uint32_t> delays{0};
  std::vector<uint32_t> warp_sizes{32};
  std::vector<uint32_t> code_lines_reserved{0};
  std::vector<std::string> priorities{"p1"};
  std::vector<uint32_t> sms_reserved{0};
  std::vector<uint32_t> blocks_reserved{0};
};

struct Options {
  Command command = Command::kRun;
  Lists lists;
  Machine machine;
  CaseOptions cases;
  OwnKernel own;      // with `own.path` instead of lists.kernels
  std::string event;  // a case that service routines launch
  double event_scale = 1;
  bool always = false;
  bool isr_first = true;
  uint32_t runs = 1;
  uint64_t passes = 20'000;             // of `lanes`
  std::string graph_path, traces_path;  // of `lanes`
  std::string json_path;
  bool quiet = false;
};

// Prints what is wrong.
ParseResult parse_options(int argc, char** argv, Options* out);

// One combination.
struct Setting {
  std::string kernel, victim, flush, scheduler, memory, l1, priority;
  uint32_t warp_size;
  RunOptions run;
};

// In the order of the lists, kernels and warp sizes outermost. False: `why` names what is not
// known.
bool combinations(const Options& options, std::vector<Setting>* out, std::string* why);

}  // namespace warpcache::edge_sim
