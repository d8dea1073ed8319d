// SPDX-License-Identifier: Apache-2.0
//
// rtl_nic MODE [--count N] [--seed N] [--hold PERCENT] [--delay CYCLES] [--skip FILE]
// [CASE-FILE...]: the NIC cache (nic_cache.sv) in simulation, before a host that is the CPU engine.
//
//   packets     cases of tests/packets: the client sees the same bytes, whoever answers
//   operations  random datagrams; the replies are those of an engine that gets them in the wire's
//   order damaged     likewise, of frames of tests/packets, changed at random measure     cycles; a
//   JSON object a line
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "nic_host.h"

int main(int argc, char** argv) {
  using namespace warpcache::rtl;
  NicOptions options;
  const std::string mode = argc > 1 ? argv[1] : "";
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.compare(0, 2, "--") != 0 || i + 1 == argc) {
      options.files.push_back(word);
      continue;
    }
    const char* const value = argv[++i];
    const auto number = static_cast<uint32_t>(std::atoi(value));
    if (word == "--count") options.count = static_cast<uint64_t>(std::atoll(value));
    if (word == "--seed") options.seed = number;
    if (word == "--hold") options.hold = number;
    if (word == "--delay") options.delay = number;
    if (word == "--skip") {
      std::ifstream list(value);
      for (std::string line; std::getline(list, line);)
        if (!line.empty() && line[0] != '#') options.skipped.push_back(line);
    }
  }
  if (mode == "packets") return play_packets(options);
  if (mode == "operations") return run_operations(options);
  if (mode == "damaged") return run_damaged(options);
  if (mode == "measure") return measure_cycles(options);
  std::fprintf(stderr, "usage: rtl_nic packets|operations|damaged|measure\n");
  return 2;
}
