// SPDX-License-Identifier: Apache-2.0
#include "admin/timings.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <ctime>
#include <new>

namespace warpcache::admin {
namespace {

constexpr uint64_t kNsPerUs = 1000;

size_t number_of_thread() {
  static std::atomic<size_t> next{0};
  thread_local const size_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

// The start of a frame's line; of a binary one only what it asks for.
std::string text_of(const protocol::Frame& frame, const uint8_t* input) {
  const std::string_view name = kCommandNames[static_cast<size_t>(class_of(frame, input))];
  if (frame.kind == protocol::FrameKind::kBinary ||
      frame.kind == protocol::FrameKind::kRefusedBinary) {
    return "binary " + std::string(name);
  }
  std::string text;
  if (frame.kind == protocol::FrameKind::kTextKey) text = std::string(name) + ' ';
  for (uint32_t i = 0; i < frame.head_size && text.size() < Timings::kCommandBytesMax; ++i) {
    const uint8_t byte = input[frame.offset + i];
    if (byte < ' ') break;
    text += byte < 127 ? static_cast<char>(byte) : '.';
  }
  return text;
}

}  // namespace

uint32_t TimeHistogram::step_of(uint64_t duration_ns) {
  const uint64_t us4 = duration_ns * kStepsPerOctave / kNsPerUs;
  if (us4 < kStepsPerOctave) return 0;
  const auto octave = static_cast<uint32_t>(std::bit_width(us4) - std::bit_width(kStepsPerOctave));
  const auto quarter = static_cast<uint32_t>(us4 >> octave) - kStepsPerOctave;
  return std::min(1 + octave * kStepsPerOctave + quarter, kSteps - 1);
}

uint64_t TimeHistogram::end_of(uint32_t step) {
  const uint32_t octave = step / kStepsPerOctave;
  return (kNsPerUs * (kStepsPerOctave + step % kStepsPerOctave) << octave) / kStepsPerOctave;
}

uint64_t TimeHistogram::quantile_ns(double share) const {
  const auto wanted = static_cast<uint64_t>(std::ceil(share * static_cast<double>(total)));
  uint64_t seen = 0;
  for (uint32_t step = 0; step < kSteps && total > 0; ++step) {
    seen += counts[step];
    if (seen >= wanted) return end_of(step);
  }
  return 0;
}

Timings::Timings(bool enabled, uint32_t slow_us) {
  set_enabled(enabled);
  set_slow_us(slow_us);
}

void Timings::set_enabled(bool enabled) {
  const std::lock_guard lock(mutex_);
  if (enabled && owned_ == nullptr) {
    owned_.reset(new (std::nothrow) Table());
    table_.store(owned_.get(), std::memory_order_release);
  }
  enabled_.store(enabled && owned_ != nullptr, std::memory_order_relaxed);
  update_wanted();
}

void Timings::set_slow_us(uint32_t slow_us) {
  const std::lock_guard lock(mutex_);
  slow_us_.store(slow_us, std::memory_order_relaxed);
  update_wanted();
}

void Timings::update_wanted() { set_wanted(enabled() || slow_us() != 0); }

Timings::Shard* Timings::shard() const {
  Table* const table = table_.load(std::memory_order_acquire);
  return table == nullptr ? nullptr : &table->shards[number_of_thread() % kShards];
}

void Timings::burst_ended(const engine::Batch& batch, uint64_t duration_ns) {
  if (enabled()) count(batch, duration_ns);
  const uint64_t slow_ns = slow_us() * kNsPerUs;
  if (slow_ns != 0 && duration_ns >= slow_ns) keep(batch, duration_ns);
}

void Timings::count(const engine::Batch& batch, uint64_t duration_ns) const {
  std::array<uint32_t, kCommandClasses> commands{};
  uint32_t requests = 0;
  for (const engine::BatchEntry& entry : batch.entries) {
    for (uint32_t i = 0; i < entry.frames_done; ++i) {
      const auto command = class_of(batch.frames[entry.first_frame + i], batch.input);
      ++commands[static_cast<size_t>(command)];
    }
    requests += entry.frames_done;
  }
  Shard* const own = shard();
  if (own == nullptr || requests == 0) return;
  const uint32_t step = TimeHistogram::step_of(duration_ns);
  for (size_t i = 0; i < kCommandClasses; ++i) {
    if (commands[i] == 0) continue;
    own->counts[i][step].fetch_add(commands[i], std::memory_order_relaxed);
    own->total_ns[i].fetch_add(commands[i] * duration_ns, std::memory_order_relaxed);
  }
  const auto size_step =
      std::min<size_t>(static_cast<size_t>(std::bit_width(requests - 1)), kBatchSteps - 1);
  own->batches[size_step].fetch_add(1, std::memory_order_relaxed);
}

// A client that has not logged in may have sent its password where no command was expected.
void Timings::keep(const engine::Batch& batch, uint64_t duration_ns) {
  SlowBurst slow;
  slow.unix_time = std::time(nullptr);
  slow.duration_ns = duration_ns;
  slow.streams = static_cast<uint32_t>(batch.entries.size());
  for (const engine::BatchEntry& entry : batch.entries) slow.requests += entry.frames_done;
  try {
    if (!batch.entries.empty()) {
      const engine::BatchEntry& first = batch.entries.front();
      slow.fd = first.fd;
      slow.command = first.authenticated ? text_of(batch.frames[first.first_frame], batch.input)
                                         : "(before a login)";
    }
    const std::lock_guard lock(mutex_);
    if (slow_.size() == kSlowBurstsMax) slow_.pop_front();
    slow_.push_back(std::move(slow));
  } catch (const std::bad_alloc&) {
    return;  // it is not kept
  }
}

TimeHistogram Timings::histogram(CommandClass command) const {
  TimeHistogram sum;
  const Table* const table = table_.load(std::memory_order_acquire);
  if (table == nullptr) return sum;
  const auto number = static_cast<size_t>(command);
  for (const Shard& shard : table->shards) {
    for (uint32_t step = 0; step < TimeHistogram::kSteps; ++step) {
      sum.add(step, shard.counts[number][step].load(std::memory_order_relaxed), 0);
    }
    sum.total_ns += shard.total_ns[number].load(std::memory_order_relaxed);
  }
  return sum;
}

std::array<uint64_t, Timings::kBatchSteps> Timings::batch_sizes() const {
  std::array<uint64_t, kBatchSteps> sums{};
  const Table* const table = table_.load(std::memory_order_acquire);
  if (table == nullptr) return sums;
  for (const Shard& shard : table->shards) {
    for (uint32_t i = 0; i < kBatchSteps; ++i) {
      sums[i] += shard.batches[i].load(std::memory_order_relaxed);
    }
  }
  return sums;
}

std::vector<SlowBurst> Timings::slow_bursts() const {
  const std::lock_guard lock(mutex_);
  return {slow_.begin(), slow_.end()};
}

void Timings::reset() {
  const std::lock_guard lock(mutex_);
  slow_.clear();
  if (owned_ == nullptr) return;
  for (Shard& shard : owned_->shards) {
    for (auto& steps : shard.counts) {
      for (Cell& cell : steps) cell.store(0, std::memory_order_relaxed);
    }
    for (Cell& cell : shard.total_ns) cell.store(0, std::memory_order_relaxed);
    for (Cell& cell : shard.batches) cell.store(0, std::memory_order_relaxed);
  }
}

}  // namespace warpcache::admin
