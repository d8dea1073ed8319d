// SPDX-License-Identifier: Apache-2.0
#include "edge/memory.h"

#include <algorithm>
#include <bit>

#include "edge/trace.h"

namespace warpcache::edge_sim {

TagArray::TagArray(const CacheShape& shape) {
  const uint32_t count = std::max(1u, shape.bytes / shape.line_bytes);
  ways_ = shape.ways == 0 ? count : std::min(shape.ways, count);
  sets_ = count / ways_;
  lines_.resize(size_t{sets_} * ways_);
}

TagArray::Line* TagArray::find(uint64_t line) {
  Line* const set = set_of(line);
  for (uint32_t i = 0; i < ways_; ++i) {
    if (set[i].tag != line) continue;
    set[i].used = ++clock_;
    return &set[i];
  }
  return nullptr;
}

TagArray::Line* TagArray::insert(uint64_t line) {
  Line* const set = set_of(line);
  Line* const victim = std::min_element(
      set, set + ways_, [](const Line& a, const Line& b) { return a.used < b.used; });
  *victim = Line{};
  victim->tag = line;
  victim->used = ++clock_;
  return victim;
}

SharedMemory::SharedMemory(const Machine& machine) : machine_(machine), tags_(machine.l2) {}

Cycle SharedMemory::request(uint64_t line, uint32_t sectors, bool write, Cycle now) {
  const double bytes = std::popcount(sectors) * static_cast<double>(kSectorBytes);
  l2_free_ = std::max(l2_free_, static_cast<double>(now)) + bytes / machine_.l2_bytes;
  const auto at_l2 = static_cast<Cycle>(l2_free_);
  TagArray::Line* found = tags_.find(line);
  if (found == nullptr) found = tags_.insert(line);
  Cycle last = at_l2 + machine_.l2_latency;
  for (uint32_t s = 0; s < kSectorsPerLineMax; ++s) {
    if ((sectors >> s & 1) == 0) continue;
    if (!write) ++accesses;
    if (found->ready[s] == kNever) {
      if (!write) ++misses;
      dram_free_ = std::max(dram_free_, l2_free_) + kSectorBytes / machine_.dram_bytes;
      // A write is complete in the L2; its way to DRAM takes bandwidth only.
      found->ready[s] = write ? at_l2 : static_cast<Cycle>(dram_free_) + machine_.dram_latency;
    }
    last = std::max(last, found->ready[s] + machine_.l2_latency);
  }
  return last;
}

L1::L1(const Machine& machine, SharedMemory* below)
    : machine_(machine), below_(below), tags_(machine.l1), miss_slots_(machine.misses, 0) {}

Cycle L1::take_port(Cycle now) {
  if (machine_.memory == MemoryModel::kNoStalls) return now;
  const Cycle at = std::max(now, free_);
  free_ = at + machine_.l1_interval;
  return at;
}

// A request that misses while all are under way holds the unit until one comes back.
Cycle L1::fetch(uint64_t line, uint32_t sectors, Cycle now) {
  const auto slot = std::min_element(miss_slots_.begin(), miss_slots_.end());
  const Cycle at = std::max(now, *slot);
  free_ = std::max(free_, at);
  const double bytes = std::popcount(sectors) * static_cast<double>(kSectorBytes);
  port_free_ = std::max(port_free_, static_cast<double>(at)) + bytes / machine_.sm_bytes;
  *slot = below_->request(line, sectors, false, static_cast<Cycle>(port_free_));
  return *slot;
}

Cycle L1::load(const Sectors& all, bool skip, Cycle now) {
  const uint32_t* const sectors = all.first;
  const uint32_t count = all.count;
  const uint32_t per_line = machine_.l1.line_bytes / kSectorBytes;
  const bool cached = machine_.l1.bytes > 0 && !skip;
  Cycle last = now;
  for (uint32_t i = 0; i < count;) {
    const uint32_t in_trace = sectors[i] / per_line;
    const uint64_t line = all.base + in_trace;
    uint32_t wanted = 0;
    for (; i < count && sectors[i] / per_line == in_trace; ++i)
      wanted |= 1u << sectors[i] % per_line;
    const Cycle at = take_port(now);
    ++counts.requests;
    counts.sectors += static_cast<uint64_t>(std::popcount(wanted));
    if (machine_.memory != MemoryModel::kFull) {
      last = std::max(last, at + 1);
      counts.hits += static_cast<uint64_t>(std::popcount(wanted));
      continue;
    }
    TagArray::Line* found = cached ? tags_.find(line) : nullptr;
    uint32_t missing = 0;
    for (uint32_t s = 0; s < per_line; ++s) {
      if ((wanted >> s & 1) == 0) continue;
      if (found == nullptr || found->ready[s] == kNever) {
        missing |= 1u << s;
      } else {
        ++counts.hits;
        last = std::max(last, found->ready[s]);
      }
    }
    last = std::max(last, at + machine_.l1_latency);
    if (missing == 0) continue;
    ++counts.misses;
    if (machine_.sector_bytes > kSectorBytes) missing = (1u << per_line) - 1;
    const Cycle back = fetch(line, missing, at);
    if (cached && found == nullptr) found = tags_.insert(line);
    for (uint32_t s = 0; cached && s < per_line; ++s) {
      if ((missing >> s & 1) != 0) found->ready[s] = back;
    }
    last = std::max(last, back);
  }
  return last;
}

// Written through; a line that is there stays valid.
void L1::store(const Sectors& all, Cycle now) {
  const uint32_t* const sectors = all.first;
  const uint32_t count = all.count;
  const uint32_t per_line = machine_.l1.line_bytes / kSectorBytes;
  for (uint32_t i = 0; i < count;) {
    const uint32_t in_trace = sectors[i] / per_line;
    const uint64_t line = all.base + in_trace;
    uint32_t wanted = 0;
    for (; i < count && sectors[i] / per_line == in_trace; ++i)
      wanted |= 1u << sectors[i] % per_line;
    const Cycle at = take_port(now);
    if (machine_.memory == MemoryModel::kFull) below_->request(line, wanted, true, at);
  }
}

Cycle L1::shared(uint32_t degree, Cycle now) {
  Cycle at = now;
  for (uint32_t i = 0; i < degree; ++i) at = take_port(now);
  return at + machine_.shared_latency;
}

}  // namespace warpcache::edge_sim
