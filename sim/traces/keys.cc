// SPDX-License-Identifier: Apache-2.0
#include "traces/keys.h"

#include <charconv>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/ycsb.h"
#include "workload/zipf.h"

namespace warpcache::sim {
namespace {

constexpr double kExponentMax = 5.0;

class Uniform final : public KeyChooser {
 public:
  explicit Uniform(uint64_t keys) : keys_(keys) {}
  uint64_t next(bench::Random* random) override {
    return static_cast<uint64_t>(random->next_unit() * static_cast<double>(keys_));
  }

 private:
  uint64_t keys_;
};

class ExactZipf final : public KeyChooser {
 public:
  ExactZipf(uint64_t keys, double theta, bool scattered)
      : zipf_(static_cast<uint32_t>(keys), theta), scatter_(keys), scattered_(scattered) {}
  uint64_t next(bench::Random* random) override {
    const uint64_t rank = zipf_.rank_at(random->next_unit());
    return scattered_ ? scatter_(rank) : rank;
  }

 private:
  bench::Zipf zipf_;
  Scatter scatter_;
  bool scattered_;
};

class YcsbRanks final : public KeyChooser {
 public:
  YcsbRanks(uint64_t keys, double theta) : zipfian_(keys, theta) {}
  uint64_t next(bench::Random* random) override { return zipfian_.rank_at(random->next_unit()); }

 private:
  YcsbZipfian zipfian_;
};

class YcsbScrambled final : public KeyChooser {
 public:
  explicit YcsbScrambled(uint64_t keys) : zipfian_(keys) {}
  uint64_t next(bench::Random* random) override { return zipfian_.key_at(random->next_unit()); }

 private:
  YcsbScrambledZipfian zipfian_;
};

class Latest final : public KeyChooser {
 public:
  Latest(uint64_t keys, double theta) : zipfian_(keys, theta) {}
  uint64_t next(bench::Random* random) override {
    return zipfian_.items() - 1 - zipfian_.rank_at(random->next_unit());
  }
  void inserted(uint64_t count) override { zipfian_.grow(count); }

 private:
  YcsbZipfian zipfian_;
};

class Drift final : public KeyChooser {
 public:
  Drift(uint64_t keys, double theta, uint64_t every)
      : zipf_(static_cast<uint32_t>(keys), theta), keys_(keys), every_(every) {}
  uint64_t next(bench::Random* random) override {
    const uint64_t moved = draws_++ / every_ % keys_;
    return (zipf_.rank_at(random->next_unit()) + moved) % keys_;
  }

 private:
  bench::Zipf zipf_;
  uint64_t keys_;
  uint64_t every_;
  uint64_t draws_ = 0;
};

class OneHits final : public KeyChooser {
 public:
  OneHits(std::unique_ptr<KeyChooser> inner, double share)
      : inner_(std::move(inner)), share_(share) {}
  uint64_t next(bench::Random* random) override {
    if (random->next_unit() < share_) return kOneHitBase + used_++;
    return inner_->next(random);
  }
  void inserted(uint64_t count) override { inner_->inserted(count); }

 private:
  std::unique_ptr<KeyChooser> inner_;
  double share_;
  uint64_t used_ = 0;
};

// Runs of `length` consecutive keys from one of `places` places, `step` keys apart.
class Scans final : public KeyChooser {
 public:
  Scans(std::unique_ptr<KeyChooser> inner, double share, uint64_t length, uint64_t places,
        uint64_t step)
      : inner_(std::move(inner)),
        begin_chance_(share / (share + (1.0 - share) * static_cast<double>(length))),
        length_(length),
        places_(places),
        step_(step) {}
  uint64_t next(bench::Random* random) override {
    if (left_ == 0 && random->next_unit() < begin_chance_) {
      left_ = length_;
      at_ = static_cast<uint64_t>(random->next_unit() * static_cast<double>(places_)) * step_;
    }
    if (left_ == 0) return inner_->next(random);
    --left_;
    return at_++;
  }
  void inserted(uint64_t count) override { inner_->inserted(count); }

 private:
  std::unique_ptr<KeyChooser> inner_;
  double begin_chance_;  // that a draw outside a scan begins one
  uint64_t length_;
  uint64_t places_;  // where a scan may begin
  uint64_t step_;
  uint64_t left_ = 0;
  uint64_t at_ = 0;
};

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t colon = text.find(':');
    fields.push_back(text.substr(0, colon));
    if (colon == std::string_view::npos) return fields;
    text.remove_prefix(colon + 1);
  }
}

template <typename T>
bool read_number(std::string_view text, T* out) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *out);
  return error == std::errc() && stop == end;
}

std::unique_ptr<KeyChooser> make(const std::vector<std::string_view>& fields, uint64_t keys) {
  const std::string_view name = fields[0];
  if (fields.size() == 1 && name == "uniform") return std::make_unique<Uniform>(keys);
  if (fields.size() == 1 && name == "ycsb-scrambled") return std::make_unique<YcsbScrambled>(keys);
  double s = 0;
  if (fields.size() < 2 || !read_number(fields[1], &s) || !(s >= 0 && s <= kExponentMax)) return {};
  uint64_t every = 0;
  if (fields.size() == 3 && name == "drift" && read_number(fields[2], &every) && every > 0) {
    return std::make_unique<Drift>(keys, s, every);
  }
  if (fields.size() != 2) return {};
  if (name == "zipf") return std::make_unique<ExactZipf>(keys, s, true);
  if (name == "zipf-ranks") return std::make_unique<ExactZipf>(keys, s, false);
  if (s <= 0 || s >= 1) return {};  // where YCSB's approximation is none
  if (name == "ycsb-zipf") return std::make_unique<YcsbRanks>(keys, s);
  if (name == "latest") return std::make_unique<Latest>(keys, s);
  return {};
}

}  // namespace

std::unique_ptr<KeyChooser> make_keys(const std::string& text, uint64_t keys, std::string* why) {
  std::unique_ptr<KeyChooser> chooser = make(split(text), keys);
  if (chooser == nullptr) {
    *why =
        "keys are uniform, zipf:S, zipf-ranks:S, ycsb-zipf:S, ycsb-scrambled, latest:S or "
        "drift:S:N, not " +
        text;
  }
  return chooser;
}

std::unique_ptr<KeyChooser> add_one_hits(std::unique_ptr<KeyChooser> inner, double share) {
  return std::make_unique<OneHits>(std::move(inner), share);
}

std::unique_ptr<KeyChooser> add_scans(std::unique_ptr<KeyChooser> inner, double share,
                                      uint64_t length, uint64_t keys) {
  return std::make_unique<Scans>(std::move(inner), share, length, keys - length + 1, 1);
}

std::unique_ptr<KeyChooser> add_loops(std::unique_ptr<KeyChooser> inner, double share,
                                      uint64_t length, uint64_t count, uint64_t keys) {
  return std::make_unique<Scans>(std::move(inner), share, length, count, keys / count);
}

Scatter::Scatter(uint64_t count) : count_(count), factor_(1) {
  // Near the golden ratio of the range, so that neighbours are far apart.
  factor_ = static_cast<uint64_t>(static_cast<double>(count) * 0.6180339887498949) | 1;
  while (std::gcd(factor_, count_) != 1) factor_ += 2;
}

uint64_t Scatter::operator()(uint64_t number) const {
  // Below 2^31 each, so the product fits.
  return (number % count_) * (factor_ % count_) % count_;
}

}  // namespace warpcache::sim
