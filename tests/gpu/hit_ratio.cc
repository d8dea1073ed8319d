// SPDX-License-Identifier: Apache-2.0
#include "gpu/hit_ratio.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/talker.h"
#include "store/layout/item.h"
#include "workload/item_maker.h"
#include "workload/random.h"
#include "workload/sizes.h"
#include "workload/zipf.h"

namespace warpcache::gpu_tests {

namespace {

// Longer values are rare, and take another path in a server.
constexpr uint32_t kValueSizeMax = 32 * 1024;

class Measurement {
 public:
  Measurement(engine::Engine& engine, const HitRatioConfig& config)
      : config_(config),
        maker_(config.seed),
        sizes_(make_sizes(config)),
        zipf_(static_cast<uint32_t>(sizes_.size()), config.zipf),
        random_(config.seed),
        talker_(engine),
        says_(config.connections),
        asked_(config.connections) {}

  HitRatio run() {
    for (uint64_t done = 0; done < config_.gets; done += config_.batch) {
      get(done >= config_.warm_up);
      set_missed();
    }
    return ratio_;
  }

 private:
  // Sizes for all items of the working set.
  static std::vector<bench::ItemSizes> make_sizes(const HitRatioConfig& config) {
    std::vector<bench::ItemSizes> sizes;
    const uint64_t wanted = config.working_set * config.memory_bytes;
    for (uint64_t bytes = 0; bytes < wanted;) {
      bench::ItemSizes one = bench::Sizes().of(config.seed, sizes.size());
      one.value = std::min(one.value, kValueSizeMax);
      bytes += store::item_footprint(one.key, one.value);
      sizes.push_back(one);
    }
    return sizes;
  }

  std::string key_of(uint32_t id) const {
    std::string key(sizes_[id].key, '\0');
    maker_.write_key(id, sizes_[id].key, key.data());
    return key;
  }
  // "key flags size\r\nvalue\r\n", with `between` before the size.
  std::string item_of(uint32_t id, const char* between) const {
    const uint32_t size = sizes_[id].value;
    std::string text = key_of(id) + " " + std::to_string(maker_.flags(id, 0)) + between +
                       std::to_string(size) + "\r\n";
    const size_t at = text.size();
    text.resize(at + size);
    maker_.write_value(id, 0, size, text.data() + at);
    return text + "\r\n";
  }

  void clear() {
    for (std::string& say : says_) say.clear();
    for (std::vector<uint32_t>& ids : asked_) ids.clear();
  }

  void get(bool counts) {
    clear();
    for (uint32_t i = 0; i < config_.batch; ++i) {
      const uint32_t id = zipf_.rank_at(random_.next_unit());
      asked_[i % says_.size()].push_back(id);
      says_[i % says_.size()] += "get " + key_of(id) + "\r\n";
    }
    missed_.clear();
    const uint64_t missed_before = missed_count_;
    const std::vector<Answer> answers = talker_.say_all(says_);
    for (size_t i = 0; i < answers.size(); ++i) check(asked_[i], answers[i].bytes);
    if (!counts) return;
    ratio_.gets += config_.batch;
    ratio_.hits += config_.batch - (missed_count_ - missed_before);
  }

  // Checks the answer to a connection's gets of `ids`.
  void check(const std::vector<uint32_t>& ids, std::string_view answer) {
    constexpr std::string_view kMiss = "END\r\n";
    for (const uint32_t id : ids) {
      const bool missed = answer.starts_with(kMiss);
      const std::string expected = missed ? "" : "VALUE " + item_of(id, " ");
      if (!answer.starts_with(expected) || !answer.substr(expected.size()).starts_with(kMiss)) {
        ++ratio_.wrong;
        return;  // cannot be parsed
      }
      answer.remove_prefix(expected.size() + kMiss.size());
      if (!missed) continue;
      ++missed_count_;
      missed_.push_back(id);
    }
    if (!answer.empty()) ++ratio_.wrong;
  }

  void set_missed() {
    std::sort(missed_.begin(), missed_.end());
    missed_.erase(std::unique(missed_.begin(), missed_.end()), missed_.end());
    if (missed_.empty()) return;
    clear();
    for (size_t i = 0; i < missed_.size(); ++i) {
      asked_[i % says_.size()].push_back(missed_[i]);
      says_[i % says_.size()] += "set " + item_of(missed_[i], " 0 ");
    }
    const std::vector<Answer> answers = talker_.say_all(says_);
    for (size_t i = 0; i < answers.size(); ++i) check_sets(asked_[i].size(), answers[i].bytes);
  }

  void check_sets(size_t count, std::string_view answer) {
    constexpr std::string_view kStored = "STORED\r\n";
    constexpr std::string_view kRefused = "SERVER_ERROR out of memory storing object\r\n";
    ratio_.sets += count;
    for (; count > 0; --count) {
      const bool refused = answer.starts_with(kRefused);
      if (!refused && !answer.starts_with(kStored)) break;
      if (refused) ++ratio_.refused;
      answer.remove_prefix(refused ? kRefused.size() : kStored.size());
    }
    if (count != 0 || !answer.empty()) ++ratio_.wrong;
  }

  const HitRatioConfig config_;
  const bench::ItemMaker maker_;
  const std::vector<bench::ItemSizes> sizes_;
  const bench::Zipf zipf_;
  bench::Random random_;
  Talker talker_;
  std::vector<std::string> says_;             // by connection
  std::vector<std::vector<uint32_t>> asked_;  // likewise: ids
  std::vector<uint32_t> missed_;              // of a batch
  uint64_t missed_count_ = 0;
  HitRatio ratio_;
};

}  // namespace

HitRatio measure_hit_ratio(engine::Engine& engine, const HitRatioConfig& config) {
  return Measurement(engine, config).run();
}

}  // namespace warpcache::gpu_tests
