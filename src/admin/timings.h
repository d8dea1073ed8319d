// SPDX-License-Identifier: Apache-2.0
//
// How long requests take inside the server: a histogram for each command, and the slowest bursts. A
// request's time is that of its burst, from the receipt of the bytes to the moment at which the
// replies of the burst have been handed to the system. Switched off, this costs a relaxed load for
// each burst.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "admin/command_class.h"
#include "engine/timing.h"

namespace warpcache::admin {

// Counts by time, in steps of a quarter of a power of two, from 1 us on.
class TimeHistogram {
 public:
  static constexpr uint32_t kStepsPerOctave = 4;
  static constexpr uint32_t kOctaves = 24;  // up to 16 s; all above is in the last step
  static constexpr uint32_t kSteps = kStepsPerOctave * kOctaves + 1;

  // The step of a time, and the time in nanoseconds at which a step ends. Step 0 is below 1 us.
  [[nodiscard]] static uint32_t step_of(uint64_t duration_ns);
  [[nodiscard]] static uint64_t end_of(uint32_t step);

  void add(uint32_t step, uint64_t count, uint64_t sum_ns) {
    counts[step] += count;
    total += count;
    total_ns += sum_ns;
  }
  // The time that `share` of the requests stayed below, as exactly as the steps say. 0 without
  // requests.
  [[nodiscard]] uint64_t quantile_ns(double share) const;

  std::array<uint64_t, kSteps> counts{};
  uint64_t total = 0;
  uint64_t total_ns = 0;
};

// A burst that took longer than asked for.
struct SlowBurst {
  int64_t unix_time = 0;
  uint64_t duration_ns = 0;
  uint32_t requests = 0;
  uint32_t streams = 0;  // and datagrams
  int fd = -1;           // of the first one
  std::string command;   // its first line or key, without a value; escaped
};

class Timings final : public engine::Timing {
 public:
  static constexpr size_t kSlowBurstsMax = 128;
  static constexpr size_t kCommandBytesMax = 120;

  // Slow bursts are kept from `slow_us` on; 0: none.
  Timings(bool enabled, uint32_t slow_us);

  // Any thread may call all functions. Without memory it stays switched off.
  void set_enabled(bool enabled);
  [[nodiscard]] bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  void set_slow_us(uint32_t slow_us);
  [[nodiscard]] uint32_t slow_us() const { return slow_us_.load(std::memory_order_relaxed); }

  void burst_ended(const engine::Batch& batch, uint64_t duration_ns) override;

  [[nodiscard]] TimeHistogram histogram(CommandClass command) const;
  // Of the requests in a burst: steps are powers of two.
  static constexpr uint32_t kBatchSteps = 17;
  [[nodiscard]] std::array<uint64_t, kBatchSteps> batch_sizes() const;
  // The oldest first.
  [[nodiscard]] std::vector<SlowBurst> slow_bursts() const;
  // Forgets all.
  void reset();

 private:
  using Cell = std::atomic<uint64_t>;
  // Each thread adds to one of these.
  struct Shard {
    std::array<std::array<Cell, TimeHistogram::kSteps>, kCommandClasses> counts{};
    std::array<Cell, kCommandClasses> total_ns{};
    std::array<Cell, kBatchSteps> batches{};
  };
  static constexpr size_t kShards = 8;
  struct Table {
    std::array<Shard, kShards> shards;
  };

  Shard* shard() const;
  void update_wanted();
  void count(const engine::Batch& batch, uint64_t duration_ns) const;
  void keep(const engine::Batch& batch, uint64_t duration_ns);

  std::atomic<bool> enabled_{false};
  std::atomic<uint32_t> slow_us_{0};
  std::atomic<Table*> table_{nullptr};  // made when it is first enabled
  mutable std::mutex mutex_;            // guards the following, and the switches
  std::unique_ptr<Table> owned_;
  std::deque<SlowBurst> slow_;
};

}  // namespace warpcache::admin
