// SPDX-License-Identifier: Apache-2.0
#include "ablation/report.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

namespace warpcache::ablation {

namespace {

double rounded(double value) { return std::round(value * 1000) / 1000; }

}  // namespace

std::string text_report(const StudyConfig& config, const StudyResult& result) {
  std::string out = fmt::format(
      "{}\nframes in the GPU's memory, keys of {} B, values of {} B, {} keys, uniform, all hits\n"
      "slots of {} B in, {} B out; {} requests in batches of {}\n",
      result.device, config.workload.key_size, config.workload.value_size, config.workload.keys,
      result.request_slot_bytes, result.reply_slot_bytes, result.requests, config.batch);
  auto to = std::back_inserter(out);
  fmt::format_to(to, "{:<11}{:<12}{:>9}{:>10}{:>11}{:>9}{:>10}{:>10}{:>8}{:>9}{:>8}\n",
                 "experiment", "variant", "M/s", "us/batch", "registers", "B local", "B shared",
                 "warps/SM", "load", "sectors", "wrong");
  for (const Row& row : result.rows) {
    const Footprint& footprint = row.footprint;
    fmt::format_to(to, "{:<11}{:<12}{:>9.1f}{:>10.2f}{:>11}{:>9}{:>10}{:>10}{:>8}{:>9}{:>8}\n",
                   row.experiment, row.variant, row.requests_per_s / 1e6, row.batch_us,
                   footprint.registers, footprint.local_bytes, footprint.shared_bytes,
                   footprint.warps, row.load > 0 ? fmt::format("{:.3f}", row.load) : "",
                   row.sectors > 0 ? fmt::format("{:.3f}", row.sectors) : "", row.wrong);
  }
  return out;
}

std::string json_report(const StudyConfig& config, const StudyResult& result) {
  nlohmann::ordered_json out;
  out["device"] = result.device;
  out["keys"] = config.workload.keys;
  out["key_size"] = config.workload.key_size;
  out["value_size"] = config.workload.value_size;
  out["batch"] = config.batch;
  out["requests"] = result.requests;
  out["passes"] = config.passes;
  out["request_slot_bytes"] = result.request_slot_bytes;
  out["reply_slot_bytes"] = result.reply_slot_bytes;
  for (const Row& row : result.rows) {
    nlohmann::ordered_json line;
    line["experiment"] = row.experiment;
    line["variant"] = row.variant;
    line["requests_per_s"] = std::round(row.requests_per_s);
    line["batch_us"] = rounded(row.batch_us);
    line["registers"] = row.footprint.registers;
    line["local_bytes"] = row.footprint.local_bytes;
    line["shared_bytes_of_block"] = row.footprint.shared_bytes;
    line["threads_of_block"] = row.footprint.threads;
    line["warps_per_multiprocessor_max"] = row.footprint.warps;
    if (row.load > 0) {
      line["load"] = rounded(row.load);
      line["sectors"] = rounded(row.sectors);
    }
    line["verified"] = row.verified;
    line["wrong"] = row.wrong;
    out["rows"].push_back(line);
  }
  return out.dump() + "\n";
}

}  // namespace warpcache::ablation
