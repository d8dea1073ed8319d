// SPDX-License-Identifier: Apache-2.0
#include "workload/sizes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <vector>

#include "workload/random.h"

namespace warpcache::bench {
namespace {

// Key sizes: generalized extreme value distribution.
constexpr double kKeyMu = 30.7984;
constexpr double kKeySigma = 8.20449;
constexpr double kKeyK = 0.078688;

// Values below 15 bytes: their probabilities, one by one.
constexpr double kSmallValues[] = {0.00536, 0.00047, 0.17820, 0.09239, 0.00018,
                                   0.02740, 0.00065, 0.00606, 0.00023, 0.00837,
                                   0.00837, 0.08989, 0.00092, 0.00326, 0.01980};
constexpr double kSmallValuesEnd = static_cast<double>(std::size(kSmallValues));

// Values from 15 bytes on: generalized Pareto distribution with theta 0, given that it is >= 15.
constexpr double kValueSigma = 214.476;
constexpr double kValueK = 0.348238;

constexpr uint32_t kWeightMax = 1'000'000;

bool read_number(std::string_view text, uint32_t* out) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *out);
  return error == std::errc() && stop == end;
}

}  // namespace

double etc_key_size(double u) {
  return kKeyMu + kKeySigma / kKeyK * (std::pow(-std::log(u), -kKeyK) - 1.0);
}

double etc_value_size(double u) {
  for (size_t size = 0; size < std::size(kSmallValues); ++size) {
    if (u < kSmallValues[size]) return static_cast<double>(size);
    u -= kSmallValues[size];
  }
  double small_share = 0;
  for (const double share : kSmallValues) small_share += share;
  const double above = 1.0 - u / (1.0 - small_share);  // P(a larger one), given that it is >= 15
  const double tail_at_15 = std::pow(1.0 + kValueK * kSmallValuesEnd / kValueSigma, -1.0 / kValueK);
  return kValueSigma / kValueK * (std::pow(std::max(above, 1e-15) * tail_at_15, -kValueK) - 1.0);
}

bool Sizes::parse(const std::string& text, Sizes* out, std::string* why) {
  std::vector<std::string_view> fields;
  for (std::string_view rest = text; fields.size() < 5;) {
    const size_t colon = rest.find(':');
    fields.push_back(rest.substr(0, colon));
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  Sizes sizes;
  if (fields.size() == 1 && fields[0] == "etc") {
    *out = sizes;
    return true;
  }
  if (fields.size() == 3 && fields[0] == "steps" && read_number(fields[1], &sizes.key_) &&
      sizes.key_ >= kKeySizeMin && sizes.key_ <= kKeySizeMax &&
      sizes.parse_steps(Kind::kSteps, fields[2], 0, kValueSizeMax)) {
    sizes.value_max_ = sizes.largest_step();
    *out = sizes;
    return true;
  }
  if (fields.size() == 3 && fields[0] == "keys" && read_number(fields[1], &sizes.value_max_) &&
      sizes.value_max_ <= kValueSizeMax &&
      sizes.parse_steps(Kind::kKeySteps, fields[2], kKeySizeMin, kKeySizeMax)) {
    *out = sizes;
    return true;
  }
  sizes.kind_ = Kind::kUniform;
  const bool fixed = fields.size() == 3 && fields[0] == "fixed";
  const bool uniform = fields.size() == 4 && fields[0] == "uniform";
  if ((!fixed && !uniform) || !read_number(fields[1], &sizes.key_) ||
      !read_number(fields[2], &sizes.value_min_) ||
      !read_number(fields.back(), &sizes.value_max_)) {
    *why =
        "sizes are etc, fixed:KEY:VALUE, uniform:KEY:MIN:MAX, steps:KEY:VALUE=WEIGHT,... or "
        "keys:VALUE:KEY=WEIGHT,..., not " +
        text;
    return false;
  }
  if (sizes.key_ < kKeySizeMin || sizes.key_ > kKeySizeMax || sizes.value_max_ > kValueSizeMax ||
      sizes.value_min_ > sizes.value_max_) {
    *why = "a size is out of bounds: " + text;
    return false;
  }
  *out = sizes;
  return true;
}

bool Sizes::parse_steps(Kind kind, std::string_view text, uint32_t size_min, uint32_t size_max) {
  kind_ = kind;
  uint32_t end = 0;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    const size_t equals = one.find('=');
    Step step{};
    uint32_t weight = 0;
    if (equals == std::string_view::npos || !read_number(one.substr(0, equals), &step.size) ||
        !read_number(one.substr(equals + 1), &weight) || step.size < size_min ||
        step.size > size_max || weight == 0 || weight > kWeightMax) {
      return false;
    }
    step.end = end += weight;
    steps_.push_back(step);
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

uint32_t Sizes::largest_step() const {
  return std::max_element(steps_.begin(), steps_.end(),
                          [](const Step& a, const Step& b) { return a.size < b.size; })
      ->size;
}

ItemSizes Sizes::varied(uint64_t seed, uint64_t id) const {
  const uint64_t bits = mix(seed, id, 1);
  if (kind_ == Kind::kUniform) {
    return {key_, value_min_ + static_cast<uint32_t>(bits % (value_max_ - value_min_ + 1))};
  }
  if (kind_ == Kind::kSteps || kind_ == Kind::kKeySteps) {
    const auto number = static_cast<uint32_t>(bits % steps_.back().end);
    const auto found = std::find_if(steps_.begin(), steps_.end(),
                                    [&](const Step& step) { return number < step.end; });
    if (kind_ == Kind::kKeySteps) return {found->size, value_max_};
    return {key_, found->size};
  }
  const double key = std::round(etc_key_size(unit(mix(seed, id, 2))));
  const double value = etc_value_size(unit(bits));
  return {static_cast<uint32_t>(std::clamp<double>(key, kKeySizeMin, kKeySizeMax)),
          static_cast<uint32_t>(std::min<double>(value, kValueSizeMax))};
}

}  // namespace warpcache::bench
