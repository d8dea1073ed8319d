// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/access_pattern.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace warpcache::nic {
namespace {

// Requests for each key that was asked for, fewest first.
std::vector<uint64_t> sorted_counts(const PackedTrace& trace) {
  std::vector<uint64_t> counts(trace.keys());
  for (uint64_t at = trace.load_steps(); at < trace.steps(); ++at) ++counts[trace.step(at).key];
  std::erase(counts, 0);
  std::sort(counts.begin(), counts.end());
  return counts;
}

// Where the points lie, as numbers of keys, ascending and different.
std::vector<size_t> places(size_t keys, uint32_t points) {
  std::vector<size_t> found{keys};
  const uint32_t half = points / 2;
  const auto all = static_cast<double>(keys);
  for (uint32_t i = 0; i < half; ++i) {
    found.push_back(static_cast<size_t>(all * i / half));
    const double from_end = std::pow(all, 1.0 - static_cast<double>(i) / half);
    found.push_back(keys - static_cast<size_t>(from_end));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace

std::vector<uint32_t> first_accesses(const PackedTrace& trace, uint64_t count) {
  std::vector<uint32_t> numbers(trace.keys());  // plus 1; 0: not seen
  std::vector<uint32_t> found;
  uint32_t seen = 0;
  const uint64_t end = std::min(trace.steps(), trace.load_steps() + count);
  for (uint64_t at = trace.load_steps(); at < end; ++at) {
    uint32_t& number = numbers[trace.step(at).key];
    if (number == 0) number = ++seen;
    found.push_back(number - 1);
  }
  return found;
}

std::vector<uint64_t> interval_counts(const PackedTrace& trace) {
  std::vector<uint64_t> last(trace.keys());  // plus 1; 0: not seen
  std::vector<uint64_t> counts;
  for (uint64_t at = trace.load_steps(); at < trace.steps(); ++at) {
    uint64_t& before = last[trace.step(at).key];
    if (before != 0) {
      const auto bucket = static_cast<size_t>(std::bit_width(at + 1 - before) - 1);
      if (bucket >= counts.size()) counts.resize(bucket + 1);
      ++counts[bucket];
    }
    before = at + 1;
  }
  return counts;
}

std::vector<CdfPoint> key_cdf(const PackedTrace& trace, uint32_t points) {
  const std::vector<uint64_t> counts = sorted_counts(trace);
  std::vector<CdfPoint> found;
  const auto requests = static_cast<double>(trace.steps() - trace.load_steps());
  uint64_t sum = 0;
  size_t at = 0;
  for (const size_t place : places(counts.size(), points)) {
    for (; at < place; ++at) sum += counts[at];
    found.push_back({static_cast<double>(place) / static_cast<double>(counts.size()),
                     static_cast<double>(sum) / requests});
  }
  return found;
}

}  // namespace warpcache::nic
