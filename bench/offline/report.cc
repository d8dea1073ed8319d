// SPDX-License-Identifier: Apache-2.0
#include "offline/report.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

namespace warpcache::offline {

namespace {

std::string keys_of(const WorkloadConfig& workload) {
  if (workload.key_mixture.empty()) return std::to_string(workload.key_size);
  std::string text;
  for (const KeySize& size : workload.key_mixture) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", size.bytes, size.weight);
  }
  return text;
}

const char* name_of(Order order) {
  switch (order) {
    case Order::kDrawn:
      return "drawn";
    case Order::kCommand:
      return "command";
    case Order::kKeySize:
      break;
  }
  return "key-size";
}

std::string describe(const WorkloadConfig& workload) {
  if (workload.ping) return "ping: headers alone";
  if (workload.etc) {
    return fmt::format("{:.0f}% get, keys and values of ETC's sizes, {} keys",
                       100 * (1 - workload.set_share), workload.keys);
  }
  const std::string multiget =
      workload.multiget > 1 ? fmt::format(" of {} keys", workload.multiget) : std::string();
  const std::string keys = workload.theta > 0 ? fmt::format("Zipf {}", workload.theta) : "uniform";
  return fmt::format("{:.0f}% get{}, keys of {} B, values of {} B, {} of {} keys, {:.0f}% hits",
                     100 * (1 - workload.set_share), multiget, keys_of(workload),
                     workload.value_size, keys, workload.keys, 100 * workload.hit_ratio);
}

// The rate that the bus allows: the larger of frames and replies, each in its direction.
double bus_requests(const Workload& workload, const BusLimits& bus) {
  return bus.best() * 1e9 / std::max(workload.request_slot(), workload.reply_slot());
}

const char* cut_of(const BackgroundConfig& background) {
  return background.cut == BackgroundConfig::Cut::kTime ? "time" : "blocks";
}

double rounded(double value) { return std::round(value * 1000) / 1000; }

}  // namespace

std::string text_report(const StudyConfig& config, const std::string& backend,
                        const StudyResult& result) {
  const Workload workload(config.workload);
  std::string out = fmt::format("{}\n{}\nslots of {} B in, {} B out; {} requests\n", backend,
                                describe(config.workload), workload.request_slot(),
                                workload.reply_slot(), config.requests);
  auto to = std::back_inserter(out);
  if (result.bus.best() > 0) {
    fmt::format_to(
        to,
        "bus both ways: {:.1f} GB/s by copy engines, {:.1f} GB/s in place: at most {:.0f} "
        "requests/s\n",
        result.bus.copy_engines, result.bus.kernel, bus_requests(workload, result.bus));
  }
  fmt::format_to(to, "{:>8}{:>13}{:>10}{:>10}{:>10}{:>9}{:>9}{:>13}{:>6}{:>10}\n", "batch",
                 "requests/s", "p50 us", "p95 us", "p99 us", "GB/s in", "GB/s out", "requests/J",
                 "W", "wrong");
  for (const Row& row : result.rows) {
    const auto known = [](double value) {
      return value > 0 ? fmt::format("{:.0f}", value) : std::string();
    };
    fmt::format_to(to,
                   "{:>8}{:>13.0f}{:>10.1f}{:>10.1f}{:>10.1f}{:>9.2f}{:>9.2f}{:>13}{:>6}{:>10}\n",
                   row.batch, row.requests_per_s, row.p50_us, row.p95_us, row.p99_us,
                   row.in_gb_per_s, row.out_gb_per_s, known(row.requests_per_j), known(row.watts),
                   config.verify ? std::to_string(row.wrong) : "not seen");
    if (row.background.launches != 0) {
      fmt::format_to(
          to,
          "{:>8}background work in {} launches, cut by {}: {:.1f} ms a run, {:.1f} ms alone; "
          "batches {:.1f} us on average, {:.1f} us at most\n",
          "", row.background.launches, cut_of(row.background), row.background_ms,
          row.background_alone_ms, row.mean_us, row.max_us);
    }
    if (row.wrong > 0) fmt::format_to(to, "WRONG: {}\n", row.first_wrong);
  }
  return out;
}

std::string json_report(const StudyConfig& config, const std::string& backend,
                        const StudyResult& result) {
  const WorkloadConfig& in = config.workload;
  const Workload workload(in);
  nlohmann::ordered_json out;
  out["fabric"] = backend;
  out["ping"] = in.ping;
  out["keys"] = in.keys;
  out["key_size"] = in.key_mixture.empty() ? nlohmann::ordered_json(in.key_size)
                                           : nlohmann::ordered_json(keys_of(in));
  out["value_size"] = in.value_size;
  if (in.etc) out["sizes"] = "etc";
  out["zipf"] = in.theta;
  out["hit_ratio"] = in.hit_ratio;
  if (in.multiget > 1) out["multiget"] = in.multiget;
  out["set_share"] = in.set_share;
  out["udp_checksum"] = in.udp_checksum;
  out["requests"] = config.requests;
  out["order"] = name_of(config.order);
  if (config.requests_per_s > 0) out["offered_per_s"] = config.requests_per_s;
  out["request_slot_bytes"] = workload.request_slot();
  out["reply_slot_bytes"] = workload.reply_slot();
  if (result.bus.best() > 0) {
    out["bus_copy_engines_gb_per_s"] = rounded(result.bus.copy_engines);
    out["bus_kernel_gb_per_s"] = rounded(result.bus.kernel);
    out["bus_requests_per_s"] = std::round(bus_requests(workload, result.bus));
  }
  for (const Row& row : result.rows) {
    nlohmann::ordered_json line;
    line["batch"] = row.batch;
    line["requests_per_s"] = std::round(row.requests_per_s);
    if (in.multiget > 1 && in.set_share == 0) {
      line["keys_per_s"] = std::round(in.multiget * row.requests_per_s);
    }
    line["batch_mean_us"] = rounded(row.mean_us);
    line["batch_p50_us"] = rounded(row.p50_us);
    line["batch_p95_us"] = rounded(row.p95_us);
    line["batch_p99_us"] = rounded(row.p99_us);
    line["batch_max_us"] = rounded(row.max_us);
    line["in_gb_per_s"] = rounded(row.in_gb_per_s);
    line["out_gb_per_s"] = rounded(row.out_gb_per_s);
    if (row.requests_per_j > 0) line["requests_per_j"] = std::round(row.requests_per_j);
    if (row.watts > 0) line["watts"] = std::round(row.watts);
    if (row.background.launches != 0) {
      line["background_launches"] = row.background.launches;
      line["background_cut"] = cut_of(row.background);
      line["background_ms"] = rounded(row.background_ms);
      line["background_alone_ms"] = rounded(row.background_alone_ms);
    }
    line["verified"] = row.verified;
    line["wrong"] = row.wrong;
    out["rows"].push_back(line);
  }
  return out.dump() + "\n";
}

}  // namespace warpcache::offline
