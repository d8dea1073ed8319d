// SPDX-License-Identifier: Apache-2.0
//
// `stats latency`, `hotkeys`, `bigkeys` and `slowlog`, which memcached does not have.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "admin/encoded_key.h"
#include "admin/next_word.h"
#include "admin/stats_command.h"
#include "options/option_values.h"

namespace warpcache::admin {
namespace {

std::string microseconds(uint64_t ns) {
  return fmt::format("{:.1f}", static_cast<double>(ns) / 1000.0);
}

void emit_latency(const Timings& timings, const StatsEmit& emit) {
  emit("latency", timings.enabled() ? "on" : "off");
  for (size_t i = 0; i < kCommandClasses; ++i) {
    const TimeHistogram times = timings.histogram(static_cast<CommandClass>(i));
    if (times.total == 0) continue;
    const std::string_view name = kCommandNames[i];
    const auto show = [&](std::string_view what, const std::string& value) {
      emit(fmt::format("{}:{}", name, what), value);
    };
    show("count", std::to_string(times.total));
    show("mean_us", microseconds(times.total_ns / times.total));
    show("p50_us", microseconds(times.quantile_ns(0.5)));
    show("p90_us", microseconds(times.quantile_ns(0.9)));
    show("p99_us", microseconds(times.quantile_ns(0.99)));
    show("p999_us", microseconds(times.quantile_ns(0.999)));
    show("max_us", microseconds(times.quantile_ns(1.0)));
  }
}

void emit_hot_keys(const HotKeys& hot_keys, const StatsEmit& emit) {
  emit("hotkeys", hot_keys.enabled() ? "on" : "off");
  size_t rank = 0;
  for (const HotKey& key : hot_keys.top()) {
    std::string text = "key=";
    append_encoded_key(key.key, text);
    text += fmt::format(" requests={} at_least={} hits={}", key.requests, key.at_least, key.hits);
    emit(std::to_string(++rank), text);
  }
}

void emit_slow(const Timings& timings, const StatsEmit& emit) {
  emit("slowlog_us", std::to_string(timings.slow_us()));
  size_t number = 0;
  for (const SlowBurst& slow : timings.slow_bursts()) {
    emit(std::to_string(++number),
         fmt::format("time={} us={} requests={} streams={} fd={} command={}", slow.unix_time,
                     microseconds(slow.duration_ns), slow.requests, slow.streams, slow.fd,
                     slow.command));
  }
}

// The largest items of all.
class BigKeysWalk final : public StatsWalk {
 public:
  explicit BigKeysWalk(StatsSource& source) : source_(source) {}
  LongReply::Step step(const StatsEmit& emit, std::string&) override {
    const Status status = source_.walk(cursor_, [this](const DumpItem& item) { look_at(item); });
    if (status != Status::kOk) return LongReply::Step::kBroken;
    if (cursor_ != kWalkEnd) return LongReply::Step::kMore;
    std::sort(largest_.begin(), largest_.end(), larger);
    size_t rank = 0;
    for (const auto& [bytes, key] : largest_) {
      std::string text = "key=";
      append_encoded_key(key, text);
      emit(std::to_string(++rank), text + " size=" + std::to_string(bytes));
    }
    return LongReply::Step::kLast;
  }

 private:
  static constexpr size_t kShownMax = 20;
  using Sized = std::pair<uint64_t, std::string>;
  static bool larger(const Sized& a, const Sized& b) { return a.first > b.first; }

  // A heap, with the smallest of the largest at its top.
  void look_at(const DumpItem& item) {
    if (largest_.size() == kShownMax) {
      if (item.item_bytes <= largest_.front().first) return;
      std::pop_heap(largest_.begin(), largest_.end(), larger);
      largest_.pop_back();
    }
    largest_.emplace_back(item.item_bytes, item.key);
    std::push_heap(largest_.begin(), largest_.end(), larger);
  }

  StatsSource& source_;
  uint64_t cursor_ = 0;
  std::vector<Sized> largest_;
};

}  // namespace

bool StatsCommand::is_inspection(std::string_view command) {
  return command == "latency" || command == "hotkeys" || command == "bigkeys" ||
         command == "slowlog";
}

StatsVerdict StatsCommand::inspect(std::string_view command, std::string_view word,
                                   const StatsEmit& emit, std::unique_ptr<StatsWalk>& walk) {
  const bool shows_keys = command != "latency";
  if (shows_keys && !options_.server.dump_enabled) return StatsVerdict::kInspectionDisabled;
  if (command == "bigkeys") {
    if (!word.empty()) return StatsVerdict::kInspectionUsage;
    walk = std::make_unique<BigKeysWalk>(source_);
    return StatsVerdict::kWalk;
  }
  if (command == "slowlog" && !word.empty()) {
    const auto slow_us = read_number(word, 0, std::numeric_limits<uint32_t>::max());
    if (!slow_us) return StatsVerdict::kInspectionUsage;
    inspection_.timings.set_slow_us(static_cast<uint32_t>(*slow_us));
    return StatsVerdict::kOk;
  }
  if (word == "on" || word == "off") {
    if (command == "latency") inspection_.timings.set_enabled(word == "on");
    if (command == "hotkeys") inspection_.hot_keys.set_enabled(word == "on");
    return StatsVerdict::kOk;
  }
  if (!word.empty()) return StatsVerdict::kInspectionUsage;
  if (command == "latency") emit_latency(inspection_.timings, emit);
  if (command == "hotkeys") emit_hot_keys(inspection_.hot_keys, emit);
  if (command == "slowlog") emit_slow(inspection_.timings, emit);
  return StatsVerdict::kEnd;
}

}  // namespace warpcache::admin
