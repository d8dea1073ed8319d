// SPDX-License-Identifier: Apache-2.0
//
// Sends random commands to warpcached and to memcached until `commands` were sent: the long form of
// Comparison, with a report. If memcached has `debugtime`, its clock is moved too. memcached 1.6.18
// gets only commands that it answers like 1.6.45.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/generator.h"

namespace warpcache::model {

struct CompareConfig {
  std::string warpcached;  // programs
  std::string memcached;
  size_t commands = 100'000;  // the least number in all scripts together
  size_t steps = 300;         // of a script
  uint64_t seed = 1;
  Protocol protocol = Protocol::kAll;
  bool keep_going = false;  // prints one script of each kind of difference
};

// The exit status: 0, or 1 if something differs that is not listed, or 2 if a program does not
// start.
int run_comparison(const CompareConfig& config);
// Plays one script and prints it with the answers of warpcached.
int compare_script(const CompareConfig& config, const Script& script);

}  // namespace warpcache::model
