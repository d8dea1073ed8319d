// SPDX-License-Identifier: Apache-2.0
// The stream of requests: operations and keys, random or from a trace.
#ifndef WARPCACHE_BENCH_LOAD_STREAM_H_
#define WARPCACHE_BENCH_LOAD_STREAM_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "load/types.h"
#include "workload/random.h"
#include "workload/trace.h"
#include "workload/zipf.h"

namespace warpcache::load {

// The distribution of keys. Shared by the streams of all threads.
class Distribution {
 public:
  // Reads "uniform", "zipf:S", "latest:S" or "trace:FILE" (whose file it does not open).
  static bool parse(const std::string& text, Distribution* out, std::string* why);

  // Call before the first draw. REQUIRES: keys > 0; with trace:FILE, `trace` outlives this object.
  void prepare(uint32_t keys, const bench::Trace* trace);

  bool is_trace() const { return kind_ == Kind::kTrace; }
  const std::string& trace_path() const { return trace_path_; }
  const bench::Trace* trace() const { return trace_; }

  // The number of a key to read, by a random point in [0, 1).
  uint32_t draw(double point) const {
    if (kind_ == Kind::kUniform) return static_cast<uint32_t>(point * keys_);
    const uint32_t rank = zipf_->rank_at(point);
    return kind_ == Kind::kZipf ? rank : newest_->load(std::memory_order_relaxed) - 1 - rank;
  }
  // Several of them, by points that `random` makes.
  void draw(bench::Random* random, uint32_t* keys, uint32_t count) const {
    if (kind_ == Kind::kUniform) {
      const double all = keys_;
      for (uint32_t i = 0; i < count; ++i) {
        keys[i] = static_cast<uint32_t>(random->next_unit() * all);
      }
      return;
    }
    for (uint32_t i = 0; i < count; ++i) keys[i] = draw(random->next_unit());
  }

  // The number of a key to write.
  uint32_t draw_for_set(double point) {
    if (kind_ != Kind::kLatest) return draw(point);
    return newest_->fetch_add(1, std::memory_order_relaxed);
  }

 private:
  enum class Kind { kUniform, kZipf, kLatest, kTrace };
  Kind kind_ = Kind::kUniform;
  double exponent_ = 0;
  uint32_t keys_ = 0;
  std::unique_ptr<bench::Zipf> zipf_;
  std::unique_ptr<std::atomic<uint32_t>> newest_;  // kLatest: one past the newest key's number
  std::string trace_path_;
  const bench::Trace* trace_ = nullptr;
};

// The requests of one thread. Not thread-safe.
class Stream {
 public:
  // The stream of thread `index` of `count`: its own random numbers, or its part of the trace.
  Stream(const Options& options, Distribution* distribution, uint32_t index, uint32_t count);

  // Makes the next request: writes the numbers of its keys (one, except for a multiget) and returns
  // their count. REQUIRES: `ids` has space for Options::multiget numbers.
  uint32_t next(Operation* operation, uint32_t* ids) {
    if (is_trace_) return next_of_trace(operation, ids);
    *operation = changes_ > 0 ? next_operation() : Operation::kGet;
    if (*operation == Operation::kSet) {
      ids[0] = distribution_->draw_for_set(random_.next_unit());
      return 1;
    }
    const uint32_t count = *operation == Operation::kGet ? multiget_ : 1;
    for (uint32_t i = 0; i < count; ++i) ids[i] = next_key();
    return count;
  }

 private:
  static constexpr uint32_t kAhead = 64;  // keys drawn at once, so that their cache misses overlap

  Operation next_operation() {
    const double kind = random_.next_unit();
    if (kind < sets_) return Operation::kSet;
    return kind < changes_ ? Operation::kDelete : Operation::kGet;
  }
  uint32_t next_of_trace(Operation* operation, uint32_t* ids);
  uint32_t next_key() {
    if (ahead_used_ == kAhead) draw_ahead();
    return ahead_[ahead_used_++];
  }
  void draw_ahead();

  Distribution* distribution_;
  bool is_trace_;
  bench::Random random_;
  uint32_t multiget_;
  double sets_;
  double changes_;  // share of sets and deletes
  uint64_t trace_at_ = 0;
  uint64_t trace_end_ = 0;
  uint64_t trace_begin_ = 0;
  uint32_t ahead_used_ = kAhead;
  std::array<uint32_t, kAhead> ahead_;
};

}  // namespace warpcache::load

#endif  // WARPCACHE_BENCH_LOAD_STREAM_H_
