// SPDX-License-Identifier: Apache-2.0
#include "hitrate/queues.h"

#include <bit>

namespace warpcache::sim {

Ghosts::Ghost* Ghosts::bucket(uint32_t fingerprint) {
  const uint64_t buckets = ghosts_.size() / kBucket;
  const uint32_t mixed = fingerprint * 0x9e3779b1u;
  return &ghosts_[(mixed * buckets >> 32) * kBucket];
}

void Ghosts::add(uint32_t fingerprint, uint32_t remembered) {
  // Twice the room that is needed, so that few are pushed out early. Growing forgets them all; it
  // happens while the cache fills.
  const uint64_t wanted = uint64_t{std::bit_ceil(std::max(remembered, kBucket))} * 2;
  if (ghosts_.size() < wanted) ghosts_.assign(wanted, {});
  Ghost* const first = bucket(fingerprint);
  Ghost* const oldest = std::min_element(
      first, first + kBucket, [](const Ghost& a, const Ghost& b) { return a.number < b.number; });
  *oldest = {fingerprint, ++added_};
}

bool Ghosts::take(uint32_t fingerprint, uint32_t remembered) {
  if (ghosts_.empty()) return false;
  Ghost* const first = bucket(fingerprint);
  for (Ghost* ghost = first; ghost != first + kBucket; ++ghost) {
    if (ghost->number == 0 || ghost->fingerprint != fingerprint) continue;
    const bool recent = added_ - ghost->number < remembered;
    *ghost = {};
    return recent;
  }
  return false;
}

void S3Fifo::inserted(uint32_t node) {
  Node& n = (*nodes_)[node];
  n.uses = 0;
  n.in_small = !ghosts_.take(n.hash, main_.length());
  (n.in_small ? small_ : main_).push(node);
}

uint32_t S3Fifo::victim() {
  while (uint64_t{small_.length()} * kSmallShare >= uint64_t{small_.length()} + main_.length()) {
    const uint32_t node = small_.oldest();
    Node& n = (*nodes_)[node];
    if (n.uses < kUsesToMain) {
      ghosts_.add(n.hash, main_.length());
      return node;
    }
    small_.remove(node);
    n.in_small = false;
    n.uses = 0;
    main_.push(node);
  }
  while ((*nodes_)[main_.oldest()].uses != 0) {
    --(*nodes_)[main_.oldest()].uses;
    main_.renew(main_.oldest());
  }
  return main_.oldest();
}

}  // namespace warpcache::sim
