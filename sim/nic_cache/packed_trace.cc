// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/packed_trace.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/assert.h"
#include "base/hash.h"

namespace warpcache::nic {
namespace {

constexpr uint64_t kDirectKeys = 1u << 28;  // of which numbers are kept in an array
constexpr size_t kBatch = 4096;

uint32_t hash_of(uint64_t seed, uint64_t key) {
  const Bytes bytes{reinterpret_cast<const uint8_t*>(&key), sizeof(key)};
  return static_cast<uint32_t>(hash_key(seed, bytes) >> 32);
}

}  // namespace

PackedTrace::PackedTrace(std::string name, sim::Trace* load, sim::Trace* run, uint64_t seed)
    : name_(std::move(name)), seed_(seed) {
  steps_.reserve((load != nullptr ? load->length() : 0) + run->length());
  if (load != nullptr) add(load);
  load_steps_ = steps_.size();
  load_bytes_ = std::accumulate(bytes_.begin(), bytes_.end(), uint64_t{0});
  add(run);
  numbers_ = {};
  far_numbers_ = {};
}

void PackedTrace::add(sim::Trace* trace) {
  std::array<sim::Request, kBatch> batch;
  while (const size_t count = trace->read(batch.data(), batch.size())) {
    for (size_t i = 0; i < count; ++i) {
      const auto operation = static_cast<uint32_t>(batch[i].operation);
      steps_.push_back(number_of(batch[i]) | operation << 30);
    }
  }
}

uint32_t PackedTrace::number_of(const sim::Request& request) {
  if (request.key < kDirectKeys && request.key >= numbers_.size()) {
    numbers_.resize(std::max(2 * numbers_.size(), static_cast<size_t>(request.key) + 1));
  }
  uint32_t& number = request.key < kDirectKeys ? numbers_[request.key] : far_numbers_[request.key];
  if (number == 0) {
    WC_ASSERT(hashes_.size() < kKeysMax);
    hashes_.push_back(hash_of(seed_, request.key));
    bytes_.push_back(std::max(1u, request.key_size + request.value_size));
    number = keys();
  }
  return number - 1;
}

}  // namespace warpcache::nic
