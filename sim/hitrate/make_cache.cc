// SPDX-License-Identifier: Apache-2.0
#include "hitrate/make_cache.h"

#include <bit>
#include <charconv>
#include <string_view>
#include <vector>

#include "hitrate/chained.h"
#include "hitrate/cuckoo.h"
#include "hitrate/probing.h"
#include "hitrate/real_store.h"
#include "hitrate/set_associative.h"
#include "hitrate/sized_policies.h"
#include "hitrate/two_generations.h"

namespace warpcache::sim {
namespace {

using Fields = std::vector<std::string_view>;

constexpr uint64_t kEntriesMax = uint64_t{1} << 28;
constexpr uint32_t kSegmentKibMin = 64;
constexpr uint32_t kSegmentKibMax = 1024;

Fields split(std::string_view text) {
  Fields fields;
  while (true) {
    const size_t colon = text.find(':');
    fields.push_back(text.substr(0, colon));
    if (colon == std::string_view::npos) return fields;
    text.remove_prefix(colon + 1);
  }
}

bool read_number(std::string_view text, uint32_t min, uint32_t max, uint32_t* out) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *out);
  return error == std::errc() && stop == end && *out >= min && *out <= max;
}

template <typename Policy>
std::unique_ptr<Cache> chained(const CacheSize& size) {
  return std::make_unique<Chained<Policy>>(size.capacity, size.costs);
}

std::unique_ptr<Cache> make_chained(const Fields& fields, const CacheSize& size) {
  const std::string_view policy = fields.size() > 1 ? fields[1] : "lru";
  if (fields.size() > 2) return nullptr;
  if (policy == "lru") return chained<Lru>(size);
  if (policy == "fifo") return chained<Fifo>(size);
  if (policy == "clock") return chained<Clock>(size);
  if (policy == "sieve") return chained<Sieve>(size);
  if (policy == "s3fifo") return chained<S3Fifo>(size);
  if (policy == "s3fifo-empty-main") return chained<S3FifoEmptyMain>(size);
  if (policy == "s3fifo-few-ghosts") return chained<S3FifoFewGhosts>(size);
  if (policy == "gdsf") return chained<Gdsf>(size);
  if (policy == "gdsf-25") return chained<GdsfOfPower<25>>(size);
  if (policy == "gdsf-50") return chained<GdsfOfPower<50>>(size);
  if (policy == "gdsf-75") return chained<GdsfOfPower<75>>(size);
  if (policy == "lirs") return chained<Lirs>(size);
  if (policy == "w-tinylfu") return chained<TinyLfu>(size);
  if (policy == "farthest") return chained<Farthest>(size);
  if (policy == "lhd") return chained<Lhd>(size);
  return nullptr;
}

template <typename Policy>
std::unique_ptr<Cache> sets(const CacheSize& size, uint32_t ways, uint64_t seed) {
  return std::make_unique<SetAssociative<Policy>>(size.capacity, ways, seed);
}

std::unique_ptr<Cache> make_sets(const Fields& fields, const CacheSize& size, uint64_t seed) {
  const std::string_view policy = fields.size() > 2 ? fields[2] : "lru";
  uint32_t ways = 0;
  if (fields.size() < 2 || fields.size() > 3 || !read_number(fields[1], 1, kWaysMax, &ways) ||
      size.capacity < ways) {
    return nullptr;
  }
  if (policy == "lru") return sets<SetLru>(size, ways, seed);
  if (policy == "fifo") return sets<SetFifo>(size, ways, seed);
  if (policy == "random") return sets<SetRandom>(size, ways, seed);
  if (policy == "clock") return sets<SetClock>(size, ways, seed);
  if (policy == "sieve") return sets<SetSieve>(size, ways, seed);
  if (policy == "s3fifo") return sets<SetS3Fifo>(size, ways, seed);
  if (policy == "two-generations") return sets<SetTwoGenerations>(size, ways, seed);
  if (policy == "duel") return sets<SetDuel>(size, ways, seed);
  return nullptr;
}

std::unique_ptr<Cache> make_two_generations(const Fields& fields, const CacheSize& size) {
  Thresholds thresholds;
  uint32_t* const numbers[] = {&thresholds.young_percent, &thresholds.waste_percent,
                               &thresholds.counter_max,   &thresholds.counter_min,
                               &thresholds.ghost_percent, &thresholds.by_size};
  constexpr uint32_t kMost[] = {100, 100, 255, 255, 1000, 100};
  if (fields.size() > 1 + std::size(numbers)) return nullptr;
  for (size_t i = 1; i < fields.size(); ++i) {
    if (!read_number(fields[i], 0, kMost[i - 1], numbers[i - 1])) return nullptr;
  }
  if (size.capacity < uint64_t{TwoGenerations::kSegments} * 4) return nullptr;
  return std::make_unique<TwoGenerations>(size.capacity, size.costs, thresholds);
}

// The server's own store; the second field is the size of its segments in KiB.
std::unique_ptr<Cache> make_store(const Fields& fields, const CacheSize& size, uint64_t seed) {
  uint32_t kib = 0;
  if (!size.costs.bytes || fields.size() > 2) return nullptr;
  if (fields.size() == 2 && (!read_number(fields[1], kSegmentKibMin, kSegmentKibMax, &kib) ||
                             !std::has_single_bit(kib))) {
    return nullptr;
  }
  return RealStore::create(size.capacity, seed, uint64_t{kib} * 1024);
}

std::unique_ptr<Cache> make_table(std::string_view name, const CacheSize& size, uint64_t seed) {
  const auto capacity = static_cast<uint32_t>(size.capacity);
  if (capacity < Hopscotch::kReach) return nullptr;
  if (name == "hopscotch") return std::make_unique<Hopscotch>(capacity);
  if (name == "strided") return std::make_unique<StridedProbing>(capacity);
  if (name == "cuckoo") return std::make_unique<Cuckoo>(capacity, 1, seed);
  if (name == "cuckoo:4") return std::make_unique<Cuckoo>(capacity, 4, seed);
  return nullptr;
}

std::unique_ptr<Cache> make(const std::string& name, const CacheSize& size, uint64_t seed) {
  const Fields fields = split(name);
  const bool bytes = size.costs.bytes;
  if (size.capacity == 0 || (!bytes && size.capacity > kEntriesMax)) return nullptr;
  if (fields[0] == "chained") return make_chained(fields, size);
  if (fields[0] == "two-generations") return make_two_generations(fields, size);
  if (fields[0] == "store") return make_store(fields, size, seed);
  if (bytes) return nullptr;
  if (fields[0] == "set") return make_sets(fields, size, seed);
  return make_table(name, size, seed);
}

// What is wrong with the size of a cache of that name; empty where nothing is known to be.
std::string fault_of(const std::string& name, const CacheSize& size) {
  const Fields fields = split(name);
  const bool bytes = size.costs.bytes;
  const bool by_bytes =
      fields[0] == "chained" || fields[0] == "two-generations" || fields[0] == "store";
  uint32_t ways = 0;
  if (size.capacity == 0) return "nothing fits into a capacity of 0";
  if (!bytes && fields[0] == "store") return "store counts bytes: use --memory";
  if (!bytes && size.capacity > kEntriesMax) {
    return "at most " + std::to_string(kEntriesMax) + " entries";
  }
  if (bytes && !by_bytes && make(name, {kEntriesMax / 1024, {}}, 1) != nullptr) {
    return name + " counts entries: use --capacity";
  }
  if (fields[0] == "set" && fields.size() > 1 && read_number(fields[1], 1, kWaysMax, &ways) &&
      size.capacity < ways) {
    return name + " needs " + std::to_string(ways) + " entries, one set";
  }
  if (name == "store") {
    return "the store needs more memory than " + std::to_string(size.capacity) + " bytes";
  }
  return {};
}

}  // namespace

std::unique_ptr<Cache> make_cache(const std::string& name, const CacheSize& size, uint64_t seed,
                                  std::string* why) {
  std::unique_ptr<Cache> cache = make(name, size, seed);
  if (cache == nullptr) *why = fault_of(name, size);
  if (cache == nullptr && why->empty()) {
    *why = "no cache " + name +
           " of this size: chained[:POLICY], set:WAYS[:POLICY], hopscotch, "
           "strided, cuckoo, cuckoo:4, "
           "two-generations[:YOUNG[:WASTE[:MAX[:MIN[:GHOSTS[:BY_SIZE]]]]]], and "
           "store[:SEGMENT_KIB], which is limited by bytes";
  }
  return cache;
}

}  // namespace warpcache::sim
