// SPDX-License-Identifier: Apache-2.0
#include "hitrate/queues.h"

namespace warpcache::sim {

void Ghosts::drop_oldest() {
  const Ghost& oldest = ghosts_.front();
  const auto found = by_id_.find(oldest.id);
  if (found != by_id_.end() && found->second.number == oldest.number) {
    cost_ -= oldest.cost;
    by_id_.erase(found);
  }
  ghosts_.pop_front();
}

void Ghosts::add(uint64_t id, uint64_t cost) {
  if (cost > capacity_ || by_id_.contains(id)) return;
  while (cost_ + cost > capacity_) drop_oldest();
  const Ghost ghost = {id, ++added_, cost};
  ghosts_.push_back(ghost);
  by_id_[id] = ghost;
  cost_ += cost;
}

bool Ghosts::take(uint64_t id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return false;
  cost_ -= found->second.cost;
  by_id_.erase(found);
  return true;
}

bool S3Fifo::arriving(const Key& key, uint64_t cost) {
  if (!options_.ghosts_full) ghosts_.set_capacity(main_.cost());
  ghost_arrives_ = ghosts_.take(key.id);
  // A key as large as the small queue would leave nothing else there.
  return ghost_arrives_ || cost < small_max_ || small_max_ == 1;
}

void S3Fifo::inserted(uint32_t node) {
  Node& n = (*nodes_)[node];
  const bool filled = options_.fill_main && filling_ && small_.cost() >= small_max_;
  n.uses = 0;
  n.queue = ghost_arrives_ || filled ? kMain : kSmall;
  queue_of(node).push(node);
}

uint32_t S3Fifo::victim() {
  filling_ = false;
  if (main_.cost() <= main_max_) {
    while (small_.length() > 0) {
      const uint32_t node = small_.oldest();
      Node& n = (*nodes_)[node];
      if (n.uses < kUsesToMain) return node;
      small_.remove(node);
      n.queue = kMain;
      n.uses = 0;
      main_.push(node);
    }
  }
  if (main_.length() == 0) return small_.oldest();
  while ((*nodes_)[main_.oldest()].uses != 0) {
    --(*nodes_)[main_.oldest()].uses;
    main_.renew(main_.oldest());
  }
  return main_.oldest();
}

void S3Fifo::evicted(uint32_t node) {
  const Node& n = (*nodes_)[node];
  if (n.queue == kSmall) {
    if (!options_.ghosts_full) ghosts_.set_capacity(main_.cost());
    ghosts_.add(n.id, n.cost);
  }
  removed(node);
}

}  // namespace warpcache::sim
