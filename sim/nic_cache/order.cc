// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/order.h"

#include <bit>
#include <type_traits>

#include "base/assert.h"

namespace warpcache::nic {
namespace {

bool stamps(Replacement replacement) {
  return replacement == Replacement::kFifo || replacement == Replacement::kLru ||
         replacement == Replacement::kLfu;
}

// Spread over the bits of which fingerprints are made.
uint64_t mixed(uint32_t hash) { return uint64_t{hash} * 0x9e3779b97f4a7c15; }

bool is_in(uint32_t ways, uint32_t way) { return (ways >> way & 1) != 0; }

}  // namespace

UseOrder::UseOrder(const Geometry& geometry)
    : replacement_(geometry.replacement), ways_(geometry.ways), queues_(queues_of(geometry)) {
  if (is_queued(replacement_)) return;
  if (stamps(replacement_)) {
    stamps_.resize(geometry.entries());
  } else {
    bits_.resize(geometry.rows);
  }
  if (replacement_ == Replacement::kLfu) counts_.resize(geometry.entries());
}

UseOrder::Queues UseOrder::queues_of(const Geometry& geometry) {
  constexpr uint64_t kSeed = 1;  // none of them draws
  switch (geometry.replacement) {
    case Replacement::kSieve:
      return sim::SetSieve(geometry.rows, geometry.ways, kSeed);
    case Replacement::kS3Fifo:
      return sim::SetS3Fifo(geometry.rows, geometry.ways, kSeed);
    case Replacement::kTwoGenerations:
      return sim::SetTwoGenerations(geometry.rows, geometry.ways, kSeed);
    default:
      return {};
  }
}

// Calls `function` with the queues in use. False: there are none.
template <typename Queues, typename Function>
bool with_queues(Queues* queues, const Function& function) {
  return std::visit(
      [&](auto& policy) {
        if constexpr (std::is_same_v<std::decay_t<decltype(policy)>, std::monostate>) {
          return false;
        } else {
          function(policy);
          return true;
        }
      },
      *queues);
}

void UseOrder::removed(uint64_t row, uint32_t way) {
  with_queues(&queues_, [&](auto& policy) { policy.removed(static_cast<uint32_t>(row), way); });
}

void UseOrder::stored(uint64_t row, uint32_t way, uint32_t hash) {
  const bool queued = with_queues(&queues_, [&](auto& policy) {
    policy.inserted(static_cast<uint32_t>(row), way, mixed(hash));
  });
  if (queued) return;
  if (replacement_ == Replacement::kFifo) {
    WC_ASSERT(clock_ != ~uint32_t{0});
    stamps_[first(row) + way] = ++clock_;
    return;
  }
  if (replacement_ == Replacement::kLfu) counts_[first(row) + way] = 0;
  used(row, way);
}

void UseOrder::used(uint64_t row, uint32_t way) {
  const auto set = static_cast<uint32_t>(row);
  if (with_queues(&queues_, [&](auto& policy) { policy.hit(set, way); })) return;
  switch (replacement_) {
    case Replacement::kFifo:
      return;
    case Replacement::kLfu:
      ++counts_[first(row) + way];
      [[fallthrough]];
    case Replacement::kLru:
      WC_ASSERT(clock_ != ~uint32_t{0});
      stamps_[first(row) + way] = ++clock_;
      return;
    case Replacement::kTreePlru:
      return point_away(row, way);
    case Replacement::kBitPlru:
      return mark(row, way);
    default:
      return;
  }
}

uint32_t UseOrder::victim(uint64_t row, uint32_t filled) {
  WC_DASSERT(filled != 0);
  uint32_t way = 0;
  const auto set = static_cast<uint32_t>(row);
  if (with_queues(&queues_, [&](auto& policy) { way = policy.victim(set); })) return way;
  switch (replacement_) {
    case Replacement::kFifo:
    case Replacement::kLru:
      return oldest(row, filled);
    case Replacement::kLfu:
      return least_used(row, filled);
    case Replacement::kTreePlru:
      return tree_victim(row, filled);
    case Replacement::kBitPlru:
      return unmarked(row, filled);
    default:
      break;
  }
  return 0;
}

// Nodes are numbered from 1 as in a heap, node n's bit is bit n. A set bit: the victim is in the
// upper half.
void UseOrder::point_away(uint64_t row, uint32_t way) {
  uint32_t tree = bits_[row];
  for (uint32_t node = ways_ + way; node > 1; node /= 2) {
    const uint32_t parent = 1u << (node / 2);
    tree = (node & 1) != 0 ? tree & ~parent : tree | parent;
  }
  bits_[row] = tree;
}

uint32_t UseOrder::tree_victim(uint64_t row, uint32_t filled) const {
  const uint32_t tree = bits_[row];
  uint32_t low = 0;
  uint32_t node = 1;
  for (uint32_t half = ways_ / 2; half > 0; half /= 2) {
    const uint32_t lower = ((1u << half) - 1) << low;
    const bool none_below = (filled & lower) == 0;
    const bool none_above = (filled & (lower << half)) == 0;
    const bool up = none_below || (!none_above && is_in(tree, node));
    low += up ? half : 0;
    node = 2 * node + (up ? 1 : 0);
  }
  return low;
}

// The last bit to be set clears the others, so that a row always has a candidate.
void UseOrder::mark(uint64_t row, uint32_t way) {
  const uint32_t all = ways_ == 32 ? ~uint32_t{0} : (1u << ways_) - 1;
  const uint32_t marked = bits_[row] | 1u << way;
  bits_[row] = marked == all ? 1u << way : marked;
}

uint32_t UseOrder::unmarked(uint64_t row, uint32_t filled) const {
  const uint32_t candidates = filled & ~bits_[row];
  return static_cast<uint32_t>(std::countr_zero(candidates != 0 ? candidates : filled));
}

uint32_t UseOrder::oldest(uint64_t row, uint32_t filled) const {
  const uint32_t* stamps = stamps_.data() + first(row);
  auto best = static_cast<uint32_t>(std::countr_zero(filled));
  for (uint32_t way = best + 1; way < ways_; ++way) {
    if (is_in(filled, way) && stamps[way] < stamps[best]) best = way;
  }
  return best;
}

uint32_t UseOrder::least_used(uint64_t row, uint32_t filled) const {
  const uint32_t* stamps = stamps_.data() + first(row);
  const uint32_t* counts = counts_.data() + first(row);
  auto best = static_cast<uint32_t>(std::countr_zero(filled));
  for (uint32_t way = best + 1; way < ways_; ++way) {
    if (!is_in(filled, way)) continue;
    const bool less = counts[way] < counts[best];
    const bool as_often_but_longer_ago = counts[way] == counts[best] && stamps[way] < stamps[best];
    if (less || as_often_but_longer_ago) best = way;
  }
  return best;
}

}  // namespace warpcache::nic
