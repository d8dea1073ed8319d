// SPDX-License-Identifier: Apache-2.0
#include "hitrate/sized_policies.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace warpcache::sim {

void Gdsf::enter(uint32_t node, double uses, uint64_t cost) {
  constexpr double kScale = 1e6;  // keeps uses / cost apart from 0 beside a large inflation
  if (entries_.size() <= node) entries_.resize(node + 1);
  const double weight = std::pow(static_cast<double>(cost), power_);
  const Place place = {inflation_ + uses * kScale / weight, ++now_, node};
  entries_[node] = {place, uses};
  order_.insert(place);
}

void Gdsf::hit(uint32_t node) {
  const double uses = entries_[node].second + 1;
  order_.erase(entries_[node].first);
  enter(node, uses, (*nodes_)[node].cost);
}

void Gdsf::inserted(uint32_t node) { enter(node, 1, (*nodes_)[node].cost); }

void Gdsf::resized(uint32_t node, uint64_t cost) {
  order_.erase(entries_[node].first);
  enter(node, entries_[node].second, cost);
}

void Gdsf::evicted(uint32_t node) {
  inflation_ = std::get<0>(entries_[node].first);
  removed(node);
}

void Gdsf::removed(uint32_t node) { order_.erase(entries_[node].first); }

void Farthest::hit(uint32_t node) {
  removed(node);
  inserted(node);
}

void Farthest::inserted(uint32_t node) {
  if (uses_.size() <= node) uses_.resize(node + 1);
  uses_[node] = next_;
  order_.insert({next_, node});
}

Lirs::Lirs(std::vector<Node>* nodes, uint64_t capacity)
    : nodes_(nodes),
      hot_max_(capacity - std::max<uint64_t>(capacity / kColdDivisor, 1)),
      remembered_max_(capacity * kRememberedFactor),
      cold_(nodes) {}

bool Lirs::arriving(const Key& key, uint64_t) {
  const auto found = in_stack_.find(key.id);
  remembered_arrives_ = found != in_stack_.end();
  if (remembered_arrives_) forget(found->second);
  return true;
}

// Removes what is in the stack below the coldest hot key: it says nothing about what is hot.
void Lirs::prune() {
  while (!stack_.empty() && !stack_.back().hot) forget(std::prev(stack_.end()));
}

void Lirs::forget(Stack::iterator place) {
  if (place->node == kNoNode) remembered_ -= place->cost;
  in_stack_.erase(place->id);
  stack_.erase(place);
}

void Lirs::push_top(uint32_t node, bool hot) {
  const Node& n = (*nodes_)[node];
  stack_.push_front({n.id, node, n.cost, hot});
  in_stack_[n.id] = stack_.begin();
}

// The hot keys used longest ago become cold until the others fit.
void Lirs::cool_down(uint32_t spared) {
  prune();
  while (hot_ > hot_max_ && !stack_.empty()) {
    const uint32_t node = stack_.back().node;
    if (node == spared) return;
    Node& n = (*nodes_)[node];
    n.queue = kCold;
    hot_ -= n.cost;
    forget(std::prev(stack_.end()));
    cold_.push(node);
    prune();
  }
}

void Lirs::make_hot(uint32_t node) {
  Node& n = (*nodes_)[node];
  n.queue = kHot;
  hot_ += n.cost;
  cool_down(node);
}

void Lirs::hit(uint32_t node) {
  Node& n = (*nodes_)[node];
  const auto found = in_stack_.find(n.id);
  if (n.queue == kHot) {
    to_top(found->second);
    prune();
  } else if (found != in_stack_.end()) {
    cold_.remove(node);
    found->second->hot = true;
    to_top(found->second);
    make_hot(node);
  } else {
    cold_.renew(node);
    push_top(node, false);
  }
}

void Lirs::inserted(uint32_t node) {
  Node& n = (*nodes_)[node];
  const bool hot = remembered_arrives_ || hot_ + n.cost <= hot_max_;
  push_top(node, hot);
  if (hot) return make_hot(node);
  n.queue = kCold;
  cold_.push(node);
}

void Lirs::resized(uint32_t node, uint64_t cost) {
  const Node& n = (*nodes_)[node];
  if (n.queue == kHot) {
    hot_ += cost - n.cost;
  } else {
    cold_.resize(node, cost);
  }
  const auto found = in_stack_.find(n.id);
  if (found != in_stack_.end()) found->second->cost = cost;
}

uint32_t Lirs::victim() {
  if (cold_.length() > 0) return cold_.oldest();
  prune();
  return stack_.back().node;
}

void Lirs::evicted(uint32_t node) {
  const Node& n = (*nodes_)[node];
  const auto found = in_stack_.find(n.id);
  if (n.queue == kHot || found == in_stack_.end()) return removed(node);
  cold_.remove(node);
  found->second->node = kNoNode;
  remembered_ += n.cost;
  evicted_.push_back(n.id);
  while (remembered_ > remembered_max_) {
    const auto oldest = in_stack_.find(evicted_.front());
    evicted_.pop_front();
    if (oldest != in_stack_.end() && oldest->second->node == kNoNode) forget(oldest->second);
  }
}

void Lirs::removed(uint32_t node) {
  const Node& n = (*nodes_)[node];
  const auto found = in_stack_.find(n.id);
  if (found != in_stack_.end()) forget(found->second);
  if (n.queue == kHot) {
    hot_ -= n.cost;
    prune();
  } else {
    cold_.remove(node);
  }
}

TinyLfu::TinyLfu(std::vector<Node>* nodes, uint64_t capacity)
    : nodes_(nodes),
      window_max_(std::max<uint64_t>(capacity / kWindowDivisor, 1)),
      main_max_(capacity - window_max_),
      protected_max_(main_max_ * 4 / 5),
      queues_{Queue(nodes), Queue(nodes), Queue(nodes)} {}

void TinyLfu::count(uint64_t id) {
  uint8_t& uses = counts_[id];
  uses = std::min<uint8_t>(static_cast<uint8_t>(uses + 1), kCountMax);
  if (++counted_ < kSampleFactor * std::max<uint64_t>(items_, 1)) return;
  for (auto entry = counts_.begin(); entry != counts_.end();) {
    entry->second /= 2;
    entry = entry->second == 0 ? counts_.erase(entry) : std::next(entry);
  }
  counted_ /= 2;
}

uint8_t TinyLfu::frequency(uint32_t node) const {
  const auto found = counts_.find((*nodes_)[node].id);
  return found != counts_.end() ? found->second : 0;
}

bool TinyLfu::arriving(const Key& key, uint64_t cost) {
  arriving_cost_ = cost;
  count(key.id);
  return true;
}

void TinyLfu::move(uint32_t node, uint8_t queue) {
  queue_of(node).remove(node);
  (*nodes_)[node].queue = queue;
  queue_of(node).push(node);
}

void TinyLfu::hit(uint32_t node) {
  count((*nodes_)[node].id);
  if ((*nodes_)[node].queue != kProbation) return queue_of(node).renew(node);
  move(node, kProtected);
  while (queues_[kProtected].cost() > protected_max_) {
    move(queues_[kProtected].oldest(), kProbation);
  }
}

void TinyLfu::inserted(uint32_t node) {
  ++items_;
  (*nodes_)[node].queue = kWindow;
  queues_[kWindow].push(node);
}

// What leaves the window, so that the arriving key fits there, goes to main while that has space.
uint32_t TinyLfu::victim() {
  Queue& window = queues_[kWindow];
  while (window.length() > 0 && window.cost() + arriving_cost_ > window_max_) {
    const uint32_t candidate = window.oldest();
    const uint64_t main_cost = queues_[kProbation].cost() + queues_[kProtected].cost();
    if (main_cost + (*nodes_)[candidate].cost > main_max_ && main_cost > 0) {
      const uint32_t victim = main_oldest();
      if (frequency(candidate) <= frequency(victim)) return candidate;
      move(candidate, kProbation);
      return victim;
    }
    move(candidate, kProbation);
  }
  return queues_[kProbation].length() + queues_[kProtected].length() > 0 ? main_oldest()
                                                                         : window.oldest();
}

uint32_t TinyLfu::main_oldest() const {
  return queues_[queues_[kProbation].length() > 0 ? kProbation : kProtected].oldest();
}

void TinyLfu::removed(uint32_t node) {
  queue_of(node).remove(node);
  --items_;
}

Lhd::Lhd(std::vector<Node>* nodes, uint64_t) : nodes_(nodes), random_(1) {
  for (Class& one : classes_) {
    one.hits.assign(kAges, 0);
    one.evictions.assign(kAges, 0);
    one.density.resize(kAges);
    // Before anything is learned the oldest goes first.
    for (uint32_t age = 0; age < kAges; ++age) one.density[age] = 1.0 / (age + 1);
  }
}

uint32_t Lhd::age_of(const Info& info) const {
  return static_cast<uint32_t>(std::min<uint64_t>((now_ - info.last) >> age_shift_, kAges - 1));
}

Lhd::Class& Lhd::class_of(const Info& info) {
  const uint64_t reuse = (info.distance + info.distance2) >> age_shift_;
  if (info.distance == 0) return classes_[kClasses - 1];  // never used
  return classes_[std::min<uint32_t>(static_cast<uint32_t>(std::bit_width(reuse)), kClasses - 2)];
}

void Lhd::request() {
  ++now_;
  if (now_ >= next_learning_) learn();
}

void Lhd::widen_ages() {
  ++age_shift_;
  for (Class& one : classes_) {
    for (auto* events : {&one.hits, &one.evictions}) {
      for (uint32_t age = 0; age < kAges / 2; ++age) {
        (*events)[age] = (*events)[2 * age] + (*events)[2 * age + 1];
      }
      std::fill(events->begin() + kAges / 2, events->end(), 0.0);
    }
  }
}

// The expected hits of an item of this age and class, by the expected time until it is hit or goes:
// sums over what happened to such items at this age or later.
void Lhd::learn() {
  next_learning_ = now_ + std::max<uint64_t>(kLearnEvery, live_.size());
  double beyond = 0;
  double all = 0;
  for (Class& one : classes_) {
    beyond += one.hits[kAges - 1] + one.evictions[kAges - 1];
    for (uint32_t age = 0; age < kAges; ++age) all += one.hits[age] + one.evictions[age];
  }
  if (beyond > kOverflowShare * all) widen_ages();
  for (Class& one : classes_) {
    double hits = 0;
    double events = 0;
    double lifetime = 0;
    for (uint32_t age = kAges; age-- > 0;) {
      hits += one.hits[age];
      events += one.hits[age] + one.evictions[age];
      lifetime += events;
      one.density[age] = lifetime > 1e-9 ? hits / lifetime : 0;
      one.hits[age] *= kDecay;
      one.evictions[age] *= kDecay;
    }
  }
}

void Lhd::hit(uint32_t node) {
  request();
  Info& info = infos_[node];
  ++class_of(info).hits[age_of(info)];
  info.distance2 = info.distance;
  info.distance = std::max<uint64_t>(now_ - info.last, 1);
  info.last = now_;
}

void Lhd::inserted(uint32_t node) {
  request();
  if (infos_.size() <= node) infos_.resize(node + 1);
  infos_[node] = {now_, 0, 0, static_cast<uint32_t>(live_.size())};
  live_.push_back(node);
}

uint32_t Lhd::victim() {
  uint32_t found = kNoNode;
  double least = 0;
  for (uint32_t i = 0; i < kSamples; ++i) {
    const uint32_t node = live_[random_.next() % live_.size()];
    const Info& info = infos_[node];
    const double density = class_of(info).density[age_of(info)] / (*nodes_)[node].cost;
    if (found != kNoNode && density >= least) continue;
    found = node;
    least = density;
  }
  return found;
}

void Lhd::evicted(uint32_t node) {
  ++class_of(infos_[node]).evictions[age_of(infos_[node])];
  removed(node);
}

void Lhd::removed(uint32_t node) {
  const uint32_t place = infos_[node].place;
  live_[place] = live_.back();
  infos_[live_[place]].place = place;
  live_.pop_back();
}

}  // namespace warpcache::sim
