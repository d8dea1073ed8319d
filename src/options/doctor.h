// SPDX-License-Identifier: Apache-2.0
//
// What this machine lacks for the server that the options describe, with the command that mends it
// (--doctor).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "options/options.h"

namespace warpcache {

struct Finding {
  enum class Kind : uint8_t {
    kOk,
    kMend,  // the server that the options describe would be slower, or would not start
    kNote,  // only for what the options do not ask for
  };
  Kind kind = Kind::kOk;
  std::string subject;
  std::string text;     // what was found
  std::string command;  // what mends it; empty: nothing is to be done
};

// Where facts come from; tests have others.
struct Machine {
  std::string root;  // before /proc and /sys; empty: this machine
  uint64_t open_files_max = 0;
  uint64_t locked_bytes_max = 0;
  uint32_t cpus = 1;
};
[[nodiscard]] Machine this_machine();

[[nodiscard]] std::vector<Finding> examine(const Options& options, const Machine& machine);

// Lines for a terminal.
[[nodiscard]] std::string findings_text(const std::vector<Finding>& findings);
// Whether one of them is kMend.
[[nodiscard]] bool needs_mending(const std::vector<Finding>& findings);

}  // namespace warpcache
