// SPDX-License-Identifier: Apache-2.0
#include "traces/generated.h"

#include <algorithm>
#include <utility>

namespace warpcache::sim {
namespace {

Request make_request(Operation operation, uint64_t key, bench::ItemSizes sizes) {
  return {key, sizes.value, static_cast<uint8_t>(sizes.key), operation};
}

}  // namespace

SizeTable::SizeTable(const bench::Sizes& sizes, uint64_t seed, uint64_t keys)
    : sizes_(sizes), seed_(seed) {
  if (!sizes.costly()) return;
  kept_.reserve(keys);
  for (uint64_t key = 0; key < keys; ++key) kept_.push_back(sizes.of(seed, key));
}

GeneratedTrace::GeneratedTrace(const Workload& workload, const bench::Sizes& sizes,
                               std::unique_ptr<KeyChooser> keys)
    : keys_(std::move(keys)),
      sizes_(sizes, workload.seed, workload.key_count),
      mix_(workload.mix),
      random_(workload.seed),
      key_count_(workload.key_count),
      length_(workload.requests) {}

Request GeneratedTrace::next() {
  double place = random_.next_unit();
  if (place < mix_.inserts) {
    const uint64_t key = key_count_++;
    keys_->inserted(key_count_);
    return make_request(Operation::kSet, key, sizes_.of(key));
  }
  place -= mix_.inserts;
  Operation operation = Operation::kGet;
  if (place < mix_.sets) {
    operation = Operation::kSet;
  } else if (place - mix_.sets < mix_.deletes) {
    operation = Operation::kDelete;
  }
  const uint64_t key = keys_->next(&random_);
  return make_request(operation, key, sizes_.of(key));
}

size_t GeneratedTrace::read(Request* out, size_t count) {
  const auto now = static_cast<size_t>(std::min<uint64_t>(count, length_ - done_));
  for (size_t i = 0; i < now; ++i) out[i] = next();
  done_ += now;
  return now;
}

LoadTrace::LoadTrace(const Workload& workload, const bench::Sizes& sizes)
    : sizes_(sizes, workload.seed, workload.key_count), key_count_(workload.key_count) {}

size_t LoadTrace::read(Request* out, size_t count) {
  const auto now = static_cast<size_t>(std::min<uint64_t>(count, key_count_ - done_));
  for (size_t i = 0; i < now; ++i, ++done_) {
    out[i] = make_request(Operation::kSet, done_, sizes_.of(done_));
  }
  return now;
}

}  // namespace warpcache::sim
