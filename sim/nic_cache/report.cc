// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "nic_cache/access_pattern.h"

namespace warpcache::nic {
namespace {

using nlohmann::ordered_json;

ordered_json range(const Range& range) { return {range.low, range.high}; }

// The columns of a table that name a setting.
std::vector<std::pair<std::string, std::string>> labels_of(const PackedTrace& trace,
                                                           const Setting& setting) {
  const Geometry& geometry = setting.geometry;
  const uint64_t capacity = setting.host_bytes != 0 ? setting.host_bytes : trace.load_bytes();
  const double part = static_cast<double>(geometry.dram_bytes()) /
                      static_cast<double>(std::max<uint64_t>(capacity, 1));
  return {{"part", capacity != 0 ? fmt::format("{:.4f}", part) : "-"},
          {"DRAM", fmt::format("{}", geometry.dram_bytes())},
          {"rows", fmt::format("{}", geometry.rows)},
          {"ways", fmt::format("{}", geometry.ways)},
          {"tag", fmt::format("{}", geometry.tag_bits)},
          {"replacement", std::string(name(geometry.replacement))},
          {"storage", geometry.storage == Storage::kSlots ? "slots" : "blocks"},
          {"slot", fmt::format("{}", geometry.slot_bytes)},
          {"allocate", std::string(name(setting.policies.allocate))},
          {"write", std::string(name(setting.policies.write))},
          {"admit", std::string(name(setting.policies.admission))},
          {"reply-after", fmt::format("{}", setting.reply_requests)},
          {"host", setting.host == HostKind::kLru ? "lru" : "store"}};
}

using Lines = std::vector<std::vector<std::string>>;  // the first one is the head

// Columns of equal width, to the right.
std::string aligned(const Lines& lines) {
  std::vector<size_t> widths(lines.front().size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out;
  for (const auto& line : lines) {
    std::string text;
    for (size_t i = 0; i < line.size(); ++i) {
      text += fmt::format("{}{:>{}}", i > 0 ? "  " : "", line[i], widths[i]);
    }
    out += text + "\n";
  }
  return out;
}

std::string per_cent(double share) { return fmt::format("{:.2f}%", 100 * share); }

void add_source(const Source& source, const PackedTrace& trace, ordered_json* out) {
  (*out)["workload"] = trace.name();
  (*out)["records"] = trace.load_steps();
  (*out)["requests"] = trace.steps() - trace.load_steps();
  (*out)["sizes"] = source.sizes;
  (*out)["seed"] = source.seed;
}

void add_setting(const PackedTrace& trace, const Setting& setting, ordered_json* out) {
  const Geometry& geometry = setting.geometry;
  const auto capacity =
      static_cast<double>(setting.host_bytes != 0 ? setting.host_bytes : trace.load_bytes());
  (*out)["host"] = setting.host == HostKind::kLru ? "lru" : "store";
  (*out)["host_bytes"] = setting.host_bytes;
  (*out)["ratio"] = static_cast<double>(geometry.dram_bytes()) / capacity;
  (*out)["dram_bytes"] = geometry.dram_bytes();
  (*out)["rows"] = geometry.rows;
  (*out)["ways"] = geometry.ways;
  (*out)["tag_bits"] = geometry.tag_bits;
  (*out)["replacement"] = name(geometry.replacement);
  (*out)["storage"] = geometry.storage == Storage::kSlots ? "slots" : "blocks";
  (*out)["slot_bytes"] = geometry.slot_bytes;
  (*out)["block_memory_bits"] = block_memory_bits(geometry);
  (*out)["allocate"] = name(setting.policies.allocate);
  (*out)["write"] = name(setting.policies.write);
  (*out)["admit"] = name(setting.policies.admission);
  (*out)["reply_after"] = setting.reply_requests;
}

void add_counts(const Result& result, ordered_json* out) {
  (*out)["miss_rate"] = result.miss_rate();
  (*out)["gets"] = result.front.gets;
  (*out)["hits"] = result.front.hits;
  (*out)["sets"] = result.front.sets;
  (*out)["deletes"] = result.front.deletes;
  (*out)["fills"] = result.front.fills;
  (*out)["killed_fills"] = result.front.killed;
  (*out)["untracked_fills"] = result.front.untracked;
  (*out)["oversize_fills"] = result.front.oversize_fills;
  (*out)["rare_fills"] = result.front.rare;
  (*out)["oversize_sets"] = result.front.oversize_sets;
  (*out)["writebacks"] = result.front.writebacks;
  (*out)["false_hits"] = result.cache.false_hits;
  (*out)["tag_overwrites"] = result.cache.tag_overwrites;
  (*out)["evictions"] = result.cache.evictions;
  (*out)["room_evictions"] = result.cache.room_evictions;
  (*out)["host_gets"] = result.host.gets;
  (*out)["host_get_misses"] = result.host.get_misses;
  (*out)["host_sets"] = result.host.sets;
  (*out)["refills"] = result.refills;
  (*out)["stale"] = result.stale;
  (*out)["items_end"] = result.items_end;
}

}  // namespace

std::string run_line(const Options& options, const Source& source, const PackedTrace& trace,
                     const Setting& setting, const Result& result) {
  ordered_json out;
  out["measure"] = "run";
  add_source(source, trace, &out);
  add_setting(trace, setting, &out);
  add_counts(result, &out);
  const double hit_rate = 1 - result.miss_rate();
  const FrontCounters& front = result.front;
  const auto requests = static_cast<double>(front.gets + front.sets + front.deletes);
  const double get_share = static_cast<double>(front.gets) / requests;
  out["improvement_as_printed"] = improvement_as_printed(options.latencies, hit_rate);
  out["improvement_seen"] = improvement_seen(options.latencies, hit_rate);
  out["get_us"] = mean_latency_us(options.latencies, hit_rate);
  out["throughput_as_printed"] =
      range(throughput_as_printed(options.throughputs, get_share, result.miss_rate()));
  out["throughput_in_turn"] =
      range(throughput_sequential(options.throughputs, get_share, result.miss_rate()));
  out["seconds"] = result.seconds;
  return out.dump() + "\n";
}

std::string trace_line(const Options& options, const PackedTrace& trace) {
  ordered_json out;
  out["measure"] = "trace";
  add_source(options.source, trace, &out);
  out["first_keys"] = first_accesses(trace, options.first_requests);
  out["intervals_log2"] = interval_counts(trace);
  out["cdf"] = ordered_json::array();
  for (const CdfPoint& point : key_cdf(trace, options.cdf_points)) {
    out["cdf"].push_back({point.keys, point.requests});
  }
  return out.dump() + "\n";
}

std::string model_line(const Options& options, double miss_rate, double get_share) {
  ordered_json out;
  out["measure"] = "model";
  out["miss_rate"] = miss_rate;
  out["get_share"] = get_share;
  out["improvement_as_printed"] = improvement_as_printed(options.latencies, 1 - miss_rate);
  out["improvement_seen"] = improvement_seen(options.latencies, 1 - miss_rate);
  out["get_us"] = mean_latency_us(options.latencies, 1 - miss_rate);
  out["throughput_as_printed"] =
      range(throughput_as_printed(options.throughputs, get_share, miss_rate));
  out["throughput_in_turn"] =
      range(throughput_sequential(options.throughputs, get_share, miss_rate));
  return out.dump() + "\n";
}

std::string run_table(const Options& options, const PackedTrace& trace,
                      const std::vector<SettingResults>& all) {
  const auto first = labels_of(trace, all.front().setting);
  std::vector<bool> differs(first.size());
  for (const SettingResults& one : all) {
    const auto labels = labels_of(trace, one.setting);
    for (size_t i = 0; i < labels.size(); ++i) differs[i] = differs[i] || labels[i] != first[i];
  }
  std::string out =
      fmt::format("workload {}: {} requests; {} seed{}", trace.name(),
                  trace.steps() - trace.load_steps(), options.seeds, options.seeds > 1 ? "s" : "");
  Lines lines(1);
  for (size_t i = 0; i < first.size(); ++i) {
    if (differs[i]) lines[0].push_back(first[i].first);
    if (!differs[i]) out += fmt::format("; {} {}", first[i].first, first[i].second);
  }
  lines[0].insert(lines[0].end(), {"GETs", "misses"});
  if (options.seeds > 1) lines[0].push_back("over the seeds");
  lines[0].insert(lines[0].end(), {"GET us", "gain", "stale"});
  uint64_t stores = 0;
  uint64_t too_large = 0;
  for (const SettingResults& one : all) {
    std::vector<std::string> line;
    const auto labels = labels_of(trace, one.setting);
    for (size_t i = 0; i < labels.size(); ++i) {
      if (differs[i]) line.push_back(labels[i].second);
    }
    double sum = 0;
    double least = 1;
    double most = 0;
    uint64_t gets = 0;
    uint64_t stale = 0;
    for (const Result& result : one.results) {
      sum += result.miss_rate();
      least = std::min(least, result.miss_rate());
      most = std::max(most, result.miss_rate());
      gets += result.front.gets;
      stale += result.stale;
      stores += result.front.sets;
      too_large += result.front.oversize_sets;
    }
    const double mean = sum / static_cast<double>(one.results.size());
    line.push_back(fmt::format("{}", gets));
    line.push_back(gets != 0 ? per_cent(mean) : "-");
    if (options.seeds > 1) line.push_back(per_cent(least) + " to " + per_cent(most));
    line.push_back(fmt::format("{:.1f}", mean_latency_us(options.latencies, 1 - mean)));
    line.push_back(fmt::format("{:.2f}", improvement_as_printed(options.latencies, 1 - mean)));
    line.push_back(fmt::format("{}", stale));
    lines.push_back(line);
  }
  out += "\n" + aligned(lines);
  if (too_large > 0) {
    out += fmt::format("{} of the SETs had items that fit into no slot (--slot-bytes, --storage)\n",
                       per_cent(static_cast<double>(too_large) / static_cast<double>(stores)));
  }
  return out;
}

std::string trace_table(const PackedTrace& trace) {
  constexpr uint32_t kPoints = 2000;
  const std::vector<CdfPoint> points = key_cdf(trace, kPoints);
  Lines lines{{"hottest keys", "requests"}};
  for (const double share : {0.001, 0.01, 0.1, 0.5}) {
    const auto at = std::find_if(points.begin(), points.end(),
                                 [&](const CdfPoint& point) { return point.keys >= 1 - share; });
    if (at != points.end()) lines.push_back({per_cent(share), per_cent(1 - at->requests)});
  }
  Lines intervals{{"requests until a key's next", "times"}};
  const std::vector<uint64_t> counts = interval_counts(trace);
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    intervals.push_back({fmt::format("from {}", uint64_t{1} << i), fmt::format("{}", counts[i])});
  }
  return fmt::format("workload {}: {} requests for {} keys\n", trace.name(),
                     trace.steps() - trace.load_steps(), trace.keys()) +
         aligned(lines) + aligned(intervals);
}

std::string model_table(const Options& options) {
  Lines lines{
      {"misses", "GETs", "GET us", "gain", "requests/s, as printed", "one after the other"}};
  const auto range_text = [](const Range& range) {
    return fmt::format("{:.0f} to {:.0f}", range.low, range.high);
  };
  for (const double miss_rate : options.miss_rates) {
    for (const double get_share : options.get_shares) {
      lines.push_back(
          {per_cent(miss_rate), per_cent(get_share),
           fmt::format("{:.1f}", mean_latency_us(options.latencies, 1 - miss_rate)),
           fmt::format("{:.2f}", improvement_as_printed(options.latencies, 1 - miss_rate)),
           range_text(throughput_as_printed(options.throughputs, get_share, miss_rate)),
           range_text(throughput_sequential(options.throughputs, get_share, miss_rate))});
    }
  }
  return aligned(lines);
}

}  // namespace warpcache::nic
