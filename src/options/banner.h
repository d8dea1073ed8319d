// SPDX-License-Identifier: Apache-2.0
//
// The banner: what the server prints when it is ready.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "options/options.h"
#include "options/process.h"

namespace warpcache {

// The parts of the banner that do not come from the options.
struct BannerFacts {
  std::string engine;               // such as "cpu"
  uint64_t memory_bytes = 0;        // for items and index
  std::vector<BoundPort> ports;     // the ports that were bound, not those asked for
  std::string unix_path;            // empty: none
  std::vector<std::string> frames;  // ports of Ethernet frames, described
  std::string nic_cache = {};       // described; empty: none
  std::string ucx = {};             // where active messages are served; empty: nowhere
};

// A few lines, the last with its line end: version, engine, threads, memory, addresses.
[[nodiscard]] std::string banner_text(const Options& options, const BannerFacts& facts);

// 64 MB, 1.5 GB, 512 KB, 100 bytes: at most one decimal, in powers of 1024.
[[nodiscard]] std::string size_text(uint64_t bytes);

}  // namespace warpcache
