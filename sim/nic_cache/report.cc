// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/report.h"

#include <nlohmann/json.hpp>

#include "nic_cache/access_pattern.h"

namespace warpcache::nic {
namespace {

using nlohmann::ordered_json;

ordered_json range(const Range& range) { return {range.low, range.high}; }

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
  (*out)["oversize_sets"] = result.front.oversize_sets;
  (*out)["writebacks"] = result.front.writebacks;
  (*out)["false_hits"] = result.cache.false_hits;
  (*out)["tag_overwrites"] = result.cache.tag_overwrites;
  (*out)["evictions"] = result.cache.evictions;
  (*out)["room_evictions"] = result.cache.room_evictions;
  (*out)["host_gets"] = result.host.gets;
  (*out)["host_get_misses"] = result.host.get_misses;
  (*out)["host_sets"] = result.host.sets;
  (*out)["stale"] = result.stale;
  (*out)["items_end"] = result.items_end;
}

}  // namespace

std::string run_line(const Options& options, const PackedTrace& trace, const Setting& setting,
                     const Result& result) {
  ordered_json out;
  out["measure"] = "run";
  add_source(options.source, trace, &out);
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

}  // namespace warpcache::nic
