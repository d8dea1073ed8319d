// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_list.h"

#include <sched.h>

#include <charconv>

namespace warpcache {

namespace {

// Takes a number from the front of `text`. False: there is none, or it is too large.
bool take_cpu(std::string_view* text, uint32_t* cpu) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *cpu);
  if (error != std::errc() || *cpu >= CPU_SETSIZE) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

}  // namespace

std::vector<uint32_t> read_cpu_list(std::string_view text) {
  std::vector<uint32_t> cpus;
  while (true) {
    uint32_t first = 0;
    if (!take_cpu(&text, &first)) return {};
    uint32_t last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      if (!take_cpu(&text, &last) || last < first) return {};
    }
    for (uint32_t cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (text.empty()) return cpus;
    if (!text.starts_with(',')) return {};
    text.remove_prefix(1);
  }
}

std::vector<uint32_t> cpus_not_allowed(const std::vector<uint32_t>& cpus) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
  std::vector<uint32_t> others;
  for (const uint32_t cpu : cpus) {
    if (!CPU_ISSET(cpu, &allowed)) others.push_back(cpu);
  }
  return others;
}

bool pin_thread(uint32_t cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

}  // namespace warpcache
