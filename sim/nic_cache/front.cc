// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/front.h"

namespace warpcache::nic {

Front::Front(const Geometry& geometry, const Policies& policies, Host* host)
    : cache_(geometry),
      policies_(policies),
      host_(host),
      inflight_(policies.inflight_max),
      asked_(policies.admission == Admission::kFrequent ? geometry.entries() : 1) {}

std::optional<uint32_t> Front::get(uint32_t key, uint32_t hash, Miss* miss) {
  ++counters_.gets;
  if (const Item* item = cache_.find(key, hash)) {
    ++counters_.hits;
    return item->value;
  }
  *miss = {key, hash, InflightMisses::kNone, std::nullopt, true};
  if (policies_.admission == Admission::kFrequent) miss->admitted = asked_.add(hash) > 1;
  if (policies_.allocate == ReadAllocate::kSafe) miss->place = inflight_.start(key);
  miss->reply = host_->get(key);
  return std::nullopt;
}

void Front::finish(const Miss& miss) {
  if (policies_.allocate == ReadAllocate::kNone) return;
  if (policies_.allocate == ReadAllocate::kSafe) {
    if (miss.place == InflightMisses::kNone) {
      ++counters_.untracked;
      return;
    }
    if (!inflight_.finish(miss.place)) {
      ++counters_.killed;
      return;
    }
  }
  if (!miss.reply) return;
  if (!cache_.accepts(miss.reply->bytes)) {
    ++counters_.oversize_fills;
    return;
  }
  if (!miss.admitted && !cache_.has_space(miss.hash)) {
    ++counters_.rare;
    return;
  }
  ++counters_.fills;
  store(*miss.reply, miss.hash);
}

void Front::set(uint32_t key, uint32_t hash, uint32_t value, uint32_t bytes) {
  ++counters_.sets;
  inflight_.kill(key);
  const WritePolicy write = policies_.write;
  const bool back = write == WritePolicy::kBack;
  const Item item{key, value, bytes, back};
  const bool stored = write != WritePolicy::kInvalidate &&
                      (write != WritePolicy::kUpdate || cache_.holds(key, hash));
  if (!stored || !cache_.accepts(bytes)) {
    if (!cache_.accepts(bytes)) ++counters_.oversize_sets;
    drop(key, hash);
    host_->set(item);
    return;
  }
  store(item, hash);
  if (!back) host_->set(item);
}

void Front::erase(uint32_t key, uint32_t hash) {
  ++counters_.deletes;
  inflight_.kill(key);
  drop(key, hash);
  host_->erase(key);
}

void Front::store(const Item& item, uint32_t hash) {
  gone_.clear();
  cache_.put(item, hash, &gone_);
  for (const Item& old : gone_) {
    if (!old.dirty) continue;
    ++counters_.writebacks;
    host_->set(old);
  }
}

// The paper's hardware drops whatever has the row and tag, without a look at the key. That only
// costs a later miss as long as the host has everything; written back, another key's last value
// would be lost.
void Front::drop(uint32_t key, uint32_t hash) {
  if (policies_.write == WritePolicy::kForward) {
    cache_.erase_tag(hash);
  } else {
    cache_.erase(key, hash);
  }
}

std::string_view name(ReadAllocate allocate) {
  switch (allocate) {
    case ReadAllocate::kNone:
      return "none";
    case ReadAllocate::kUnsafe:
      return "unsafe";
    case ReadAllocate::kSafe:
      return "safe";
  }
  return "";
}

std::string_view name(WritePolicy write) {
  switch (write) {
    case WritePolicy::kBack:
      return "back";
    case WritePolicy::kForward:
      return "forward";
    case WritePolicy::kInvalidate:
      return "invalidate";
    case WritePolicy::kUpdate:
      return "update";
  }
  return "";
}

std::string_view name(Admission admission) {
  return admission == Admission::kAll ? "all" : "frequent";
}

std::optional<ReadAllocate> read_allocate_of(std::string_view name_) {
  for (const auto allocate : {ReadAllocate::kNone, ReadAllocate::kUnsafe, ReadAllocate::kSafe}) {
    if (name(allocate) == name_) return allocate;
  }
  return std::nullopt;
}

std::optional<WritePolicy> write_policy_of(std::string_view name_) {
  for (const auto write : {WritePolicy::kBack, WritePolicy::kForward, WritePolicy::kInvalidate,
                           WritePolicy::kUpdate}) {
    if (name(write) == name_) return write;
  }
  return std::nullopt;
}

std::optional<Admission> admission_of(std::string_view name_) {
  for (const auto admission : {Admission::kAll, Admission::kFrequent}) {
    if (name(admission) == name_) return admission;
  }
  return std::nullopt;
}

}  // namespace warpcache::nic
