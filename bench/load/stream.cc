// SPDX-License-Identifier: Apache-2.0
#include "load/stream.h"

#include <charconv>
#include <string_view>

namespace warpcache::load {

bool Distribution::parse(const std::string& text, Distribution* out, std::string* why) {
  constexpr double kExponentMax = 5;
  const std::string_view all = text;
  const std::string_view name = all.substr(0, all.find(':'));
  const std::string_view rest =
      name.size() < all.size() ? all.substr(name.size() + 1) : std::string_view();
  *why = "a distribution is uniform, zipf:EXPONENT, latest:EXPONENT or trace:FILE, not " + text;
  if (all == "uniform") return true;
  if (name == "trace") {
    out->kind_ = Kind::kTrace;
    out->trace_path_ = rest;
    return !rest.empty();
  }
  if (name != "zipf" && name != "latest") return false;
  out->kind_ = name == "zipf" ? Kind::kZipf : Kind::kLatest;
  const auto [stop, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), out->exponent_);
  return error == std::errc() && stop == rest.data() + rest.size() && out->exponent_ >= 0 &&
         out->exponent_ <= kExponentMax;
}

void Distribution::prepare(uint32_t keys, const bench::Trace* trace) {
  keys_ = keys;
  trace_ = trace;
  if (kind_ == Kind::kZipf || kind_ == Kind::kLatest) {
    zipf_ = std::make_unique<bench::Zipf>(keys, exponent_);
  }
  newest_ = std::make_unique<std::atomic<uint32_t>>(keys);
}

Stream::Stream(const Options& options, Distribution* distribution, uint32_t index, uint32_t count)
    : distribution_(distribution),
      is_trace_(distribution->is_trace()),
      random_(bench::mix(options.seed, index, count)),
      multiget_(options.multiget),
      sets_(options.sets),
      changes_(options.sets + options.deletes) {
  if (!is_trace_) return;
  const uint64_t entries = distribution->trace()->entries().size();
  trace_begin_ = entries * index / count;
  trace_end_ = entries * (index + 1) / count;
  trace_at_ = trace_begin_;
}

void Stream::draw_ahead() {
  bench::Random random = random_;
  distribution_->draw(&random, ahead_.data(), kAhead);
  random_ = random;
  ahead_used_ = 0;
}

uint32_t Stream::next_of_trace(Operation* operation, uint32_t* ids) {
  const auto& entries = distribution_->trace()->entries();
  if (trace_at_ == trace_end_) trace_at_ = trace_begin_;
  *operation = entries[trace_at_].operation;
  const uint32_t most = *operation == Operation::kGet ? multiget_ : 1;
  uint32_t count = 0;
  do {
    ids[count++] = entries[trace_at_++].id;
  } while (count < most && trace_at_ < trace_end_ && entries[trace_at_].operation == *operation);
  return count;
}

}  // namespace warpcache::load
