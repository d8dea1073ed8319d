// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/replay.h"

#include <chrono>
#include <deque>
#include <memory>

#include "base/assert.h"
#include "nic_cache/store_host.h"

namespace warpcache::nic {
namespace {

std::unique_ptr<Host> make_host(const PackedTrace& trace, const Setting& setting) {
  if (setting.host == HostKind::kLru) {
    return std::make_unique<LruHost>(trace.keys(), setting.host_bytes);
  }
  std::unique_ptr<Host> host = StoreHost::create(trace.keys(), setting.host_bytes);
  WC_ASSERT(host != nullptr);
  return host;
}

class Replay {
 public:
  Replay(const PackedTrace& trace, const Setting& setting)
      : trace_(trace),
        delay_(setting.reply_requests),
        refill_(setting.refill),
        host_(make_host(trace, setting)),
        front_(setting.geometry, setting.policies, host_.get()),
        last_(trace.keys(), 0) {}

  void run(uint64_t from, uint64_t to);
  void finish_all();
  Result result() const;

 private:
  struct Pending {
    Miss miss;
    uint64_t due;  // the request before which the reply passes
  };

  void get(uint32_t key, uint64_t at);
  void set(uint32_t key);
  void finish(const Miss& miss);
  void check(uint32_t key, uint32_t value) {
    if (value != last_[key]) ++stale_;
  }

  const PackedTrace& trace_;
  uint32_t delay_;
  bool refill_;
  std::unique_ptr<Host> host_;
  Front front_;
  std::deque<Pending> pending_;
  std::vector<uint32_t> last_;  // the value of each key's last SET; 0: none, or deleted since
  uint32_t sets_ = 0;           // so far; also the value of the last one
  uint64_t refills_ = 0;
  uint64_t stale_ = 0;
};

void Replay::run(uint64_t from, uint64_t to) {
  for (uint64_t at = from; at < to; ++at) {
    while (!pending_.empty() && pending_.front().due <= at) {
      finish(pending_.front().miss);
      pending_.pop_front();
    }
    const auto [key, operation] = trace_.step(at);
    switch (operation) {
      case sim::Operation::kGet:
        get(key, at);
        break;
      case sim::Operation::kSet:
        set(key);
        break;
      case sim::Operation::kDelete:
        last_[key] = 0;
        front_.erase(key, trace_.hash(key));
        break;
    }
  }
}

void Replay::set(uint32_t key) {
  WC_ASSERT(sets_ != ~uint32_t{0});
  last_[key] = ++sets_;
  front_.set(key, trace_.hash(key), last_[key], trace_.bytes(key));
}

// The reply to a miss passes; a client that got nothing stores the item.
void Replay::finish(const Miss& miss) {
  front_.finish(miss);
  if (miss.reply || !refill_) return;
  ++refills_;
  set(miss.key);
}

void Replay::get(uint32_t key, uint64_t at) {
  Miss miss;
  const std::optional<uint32_t> value = front_.get(key, trace_.hash(key), &miss);
  if (value) return check(key, *value);
  if (miss.reply) check(key, miss.reply->value);
  if (delay_ == 0) {
    finish(miss);
  } else {
    pending_.push_back({miss, at + delay_});
  }
}

void Replay::finish_all() {
  for (const Pending& pending : pending_) finish(pending.miss);
  pending_.clear();
}

Result Replay::result() const {
  return {front_.counters(),
          front_.cache().counters(),
          host_->counters(),
          stale_,
          refills_,
          front_.cache().items(),
          0};
}

// What was counted after `earlier`.
Result since(const Result& earlier, Result result) {
  const auto subtract = [](auto* counters, const auto& before) {
    static_assert(sizeof(*counters) % sizeof(uint64_t) == 0);
    auto* counts = reinterpret_cast<uint64_t*>(counters);
    const auto* counts_before = reinterpret_cast<const uint64_t*>(&before);
    for (size_t i = 0; i < sizeof(*counters) / sizeof(uint64_t); ++i) counts[i] -= counts_before[i];
  };
  subtract(&result.front, earlier.front);
  subtract(&result.cache, earlier.cache);
  subtract(&result.host, earlier.host);
  result.stale -= earlier.stale;
  result.refills -= earlier.refills;
  return result;
}

}  // namespace

Result replay(const PackedTrace& trace, const Setting& setting) {
  WC_ASSERT(trace.steps() < ~uint32_t{0});
  const auto begun = std::chrono::steady_clock::now();
  Replay replay(trace, setting);
  replay.run(0, trace.load_steps());
  replay.finish_all();
  const Result loaded = replay.result();
  replay.run(trace.load_steps(), trace.steps());
  replay.finish_all();
  Result result = since(loaded, replay.result());
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return result;
}

}  // namespace warpcache::nic
