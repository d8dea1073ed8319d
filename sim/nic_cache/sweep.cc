// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/sweep.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <charconv>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "traces/file_trace.h"
#include "traces/workload.h"

namespace warpcache::nic {
namespace {

constexpr uint64_t kStoreBytesMin = 2u << 20;
constexpr uint32_t kFileValueBytes = 448;  // of keys for which a file states none

// YCSB's record selection (Fukuda et al., table 2).
std::string distribution_of(const Source& source, const sim::Mix& mix) {
  if (!source.distribution.empty()) return source.distribution;
  return mix.inserts > 0 ? "latest:0.99" : "ycsb-scrambled";
}

std::unique_ptr<PackedTrace> read_file(const Source& source, std::string* why) {
  const auto file = sim::load_file(source.file, kFileValueBytes, why);
  if (file == nullptr) return nullptr;
  sim::FileTrace run(file.get());
  return std::make_unique<PackedTrace>(source.file, nullptr, &run, source.seed);
}

bool parse_number(std::string_view text, double* out) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *out);
  return error == std::errc() && stop == end && *out > 0;
}

// The rows of a cache of that size: a power of two, rounded down. 0 if there is not one.
uint32_t rows_of(const Size& size, const Geometry& geometry, uint64_t capacity_bytes) {
  if (size.kind == Size::Kind::kBlockMemory) {
    return rows_within(geometry, static_cast<uint64_t>(size.amount));
  }
  const double bytes = size.kind == Size::Kind::kDram
                           ? size.amount
                           : size.amount * static_cast<double>(capacity_bytes);
  const double rows = bytes / geometry.ways / geometry.slot_bytes;
  return std::bit_floor(static_cast<uint32_t>(std::min<double>(rows, kRowsMax)));
}

// A setting whose rows are still to be found.
struct Draft {
  Setting setting;
  Size size;
};

// Replaces each draft by one for each of the values.
template <typename T, typename Apply>
void expand(const std::vector<T>& values, std::vector<Draft>* drafts, Apply apply) {
  std::vector<Draft> expanded;
  for (const Draft& draft : *drafts) {
    for (const T& value : values) {
      expanded.push_back(draft);
      apply(&expanded.back(), value);
    }
  }
  *drafts = std::move(expanded);
}

std::vector<Draft> drafts_of(const Lists& lists, uint64_t host_bytes, bool refill) {
  Draft first;
  first.setting.geometry.block_bytes = lists.block_bytes;
  first.setting.policies.inflight_max = lists.inflight_max;
  first.setting.host_bytes = host_bytes;
  first.setting.refill = refill;
  std::vector<Draft> drafts{first};
  expand(lists.sizes, &drafts, [](Draft* d, const Size& size) { d->size = size; });
  expand(lists.replacements, &drafts,
         [](Draft* d, Replacement r) { d->setting.geometry.replacement = r; });
  expand(lists.storages, &drafts, [](Draft* d, Storage s) { d->setting.geometry.storage = s; });
  expand(lists.slot_bytes, &drafts,
         [](Draft* d, uint32_t bytes) { d->setting.geometry.slot_bytes = bytes; });
  expand(lists.ways, &drafts, [](Draft* d, uint32_t ways) { d->setting.geometry.ways = ways; });
  expand(lists.tag_bits, &drafts,
         [](Draft* d, uint32_t bits) { d->setting.geometry.tag_bits = bits; });
  expand(lists.writes, &drafts, [](Draft* d, WritePolicy w) { d->setting.policies.write = w; });
  expand(lists.admissions, &drafts,
         [](Draft* d, Admission a) { d->setting.policies.admission = a; });
  expand(lists.allocates, &drafts,
         [](Draft* d, ReadAllocate a) { d->setting.policies.allocate = a; });
  expand(lists.reply_requests, &drafts,
         [](Draft* d, uint32_t requests) { d->setting.reply_requests = requests; });
  expand(lists.hosts, &drafts, [](Draft* d, HostKind host) { d->setting.host = host; });
  return drafts;
}

// What is wrong with the draft, or null and its rows found.
const char* find_rows(uint64_t capacity_bytes, Draft* draft) {
  Geometry& geometry = draft->setting.geometry;
  geometry.rows = 1;
  if (const char* fault = geometry.fault()) return fault;
  if (draft->setting.host == HostKind::kStore && draft->setting.host_bytes < kStoreBytesMin) {
    return "our own store needs a host capacity of 2 MiB or more";
  }
  if (draft->size.kind == Size::Kind::kRatio && capacity_bytes == 0) {
    return "without a load phase memcached has no capacity of which the NIC's cache could be a "
           "part: --size dram:BYTES or bits:BITS";
  }
  geometry.rows = rows_of(draft->size, geometry, capacity_bytes);
  return geometry.rows == 0 ? "a cache of this size has not one row" : nullptr;
}

}  // namespace

std::unique_ptr<PackedTrace> make_packed_trace(const Source& source, const std::string& workload,
                                               std::string* why) {
  if (!source.file.empty()) return read_file(source, why);
  sim::Workload wanted;
  if (!sim::Mix::parse(workload, &wanted.mix, why)) return nullptr;
  wanted.keys = distribution_of(source, wanted.mix);
  wanted.key_count = source.records;
  wanted.requests = source.requests;
  wanted.sizes = source.sizes;
  wanted.seed = source.seed;
  const auto run = sim::make_trace(wanted, why);
  if (run == nullptr) return nullptr;
  const auto load = sim::make_load_trace(wanted, why);
  return std::make_unique<PackedTrace>(workload, source.load ? load.get() : nullptr, run.get(),
                                       source.seed);
}

bool parse_size(const std::string& text, Size* out) {
  const std::string_view all = text;
  if (all.starts_with("dram:")) {
    out->kind = Size::Kind::kDram;
    return parse_number(all.substr(5), &out->amount);
  }
  if (all.starts_with("bits:")) {
    out->kind = Size::Kind::kBlockMemory;
    return parse_number(all.substr(5), &out->amount);
  }
  out->kind = Size::Kind::kRatio;
  const size_t slash = all.find('/');
  if (slash == std::string_view::npos) return parse_number(all, &out->amount);
  double divisor = 1;
  if (!parse_number(all.substr(0, slash), &out->amount)) return false;
  if (!parse_number(all.substr(slash + 1), &divisor)) return false;
  out->amount /= divisor;
  return true;
}

std::vector<Setting> combinations(const Lists& lists, const PackedTrace& trace, std::string* why) {
  const auto load_bytes = static_cast<double>(trace.load_bytes());
  const auto host_bytes = static_cast<uint64_t>(lists.host_capacity * load_bytes);
  std::vector<Setting> settings;
  for (Draft& draft : drafts_of(lists, host_bytes, trace.load_steps() == 0)) {
    if (const char* fault = find_rows(host_bytes != 0 ? host_bytes : trace.load_bytes(), &draft)) {
      *why = fault;
      return {};
    }
    settings.push_back(draft.setting);
  }
  return settings;
}

std::vector<Result> run_all(const PackedTrace& trace, const std::vector<Setting>& settings,
                            uint32_t threads, const std::function<void(size_t)>& done) {
  std::vector<Result> results(settings.size());
  std::atomic<size_t> next = 0;
  std::mutex lock;
  size_t finished = 0;
  const auto work = [&] {
    for (size_t i = next++; i < settings.size(); i = next++) {
      results[i] = replay(trace, settings[i]);
      const std::lock_guard<std::mutex> guard(lock);
      done(++finished);
    }
  };
  std::vector<std::thread> workers;
  for (uint32_t i = 1; i < threads; ++i) workers.emplace_back(work);
  work();
  for (std::thread& worker : workers) worker.join();
  return results;
}

}  // namespace warpcache::nic
