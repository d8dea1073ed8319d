// SPDX-License-Identifier: Apache-2.0
//
// A stream of requests with precomputed data for replays. Read-only: any number of replays and
// threads can share it.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "traces/trace.h"

namespace warpcache::nic {

struct Step {
  uint32_t key;
  sim::Operation operation;
};

class PackedTrace {
 public:
  static constexpr uint32_t kKeysMax = 1u << 30;  // the other two bits of 32 are the operation

  // Reads all of `load` (not measured; may be null), then all of `run`. Keys get new numbers in the
  // order of their first appearance. REQUIRES: at most kKeysMax different keys.
  PackedTrace(std::string name, sim::Trace* load, sim::Trace* run, uint64_t seed);

  const std::string& name() const { return name_; }
  uint32_t keys() const { return static_cast<uint32_t>(hashes_.size()); }
  uint64_t load_steps() const { return load_steps_; }
  uint64_t steps() const { return steps_.size(); }
  Step step(uint64_t at) const {
    return {steps_[at] & (kKeysMax - 1), static_cast<sim::Operation>(steps_[at] >> 30)};
  }

  // The key's hash of 32 bits, as in the NIC (section 5).
  uint32_t hash(uint32_t key) const { return hashes_[key]; }
  // Key and value together; at least 1.
  uint32_t bytes(uint32_t key) const { return bytes_[key]; }

  // Bytes of all items of the load phase: the capacity that memcached needs for all of them.
  uint64_t load_bytes() const { return load_bytes_; }

 private:
  void add(sim::Trace* trace);
  uint32_t number_of(const sim::Request& request);

  std::string name_;
  uint64_t seed_;
  uint64_t load_steps_ = 0;
  uint64_t load_bytes_ = 0;
  std::vector<uint32_t> steps_;
  std::vector<uint32_t> hashes_;
  std::vector<uint32_t> bytes_;
  std::vector<uint32_t> numbers_;  // of keys below kDirectKeys, plus 1; only while adding
  std::unordered_map<uint64_t, uint32_t> far_numbers_;  // of the others
};

}  // namespace warpcache::nic
