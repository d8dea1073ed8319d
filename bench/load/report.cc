// SPDX-License-Identifier: Apache-2.0
#include "load/report.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

namespace warpcache::load {
namespace {

constexpr struct {
  const char* name;  // in the table
  const char* key;   // in JSON
  double share;
} kQuantiles[] = {{"p50", "p50_us", 0.5},      {"p90", "p90_us", 0.9},
                  {"p95", "p95_us", 0.95},     {"p99", "p99_us", 0.99},
                  {"p99.9", "p999_us", 0.999}, {"p99.99", "p9999_us", 0.9999},
                  {"max", "max_us", 1}};

double us(double ns) { return ns / 1000; }

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

double hit_ratio(uint64_t hits, uint64_t misses) {
  return ratio(static_cast<double>(hits), static_cast<double>(hits + misses));
}

void add_row(const char* name, uint64_t requests, double seconds, const Histogram& latency_ns,
             std::string* out) {
  auto to = std::back_inserter(*out);
  fmt::format_to(to, "{:8}{:>12}{:>12.0f}{:>10.1f}", name, requests,
                 ratio(static_cast<double>(requests), seconds), us(latency_ns.mean()));
  for (const auto& quantile : kQuantiles) {
    fmt::format_to(to, "{:>10.1f}", us(static_cast<double>(latency_ns.quantile(quantile.share))));
  }
  out->push_back('\n');
}

nlohmann::ordered_json latency_json(const Histogram& latency_ns) {
  const auto rounded = [](double value) { return std::round(value * 10) / 10; };
  nlohmann::ordered_json out;
  out["mean_us"] = rounded(us(latency_ns.mean()));
  for (const auto& quantile : kQuantiles) {
    out[quantile.key] = rounded(us(static_cast<double>(latency_ns.quantile(quantile.share))));
  }
  return out;
}

// Adds a line for each thread of an open loop: which one is late, and what its requests took.
void add_threads(const Summary& summary, std::string* out) {
  auto to = std::back_inserter(*out);
  const auto at = [](const Histogram& times_ns, double share) {
    return us(static_cast<double>(times_ns.quantile(share)));
  };
  for (size_t i = 0; i < summary.threads.size(); ++i) {
    const ThreadSummary& thread = summary.threads[i];
    fmt::format_to(to,
                   "- thread {:<4} p50 {:.1f} us, p99 {:.1f} us, max {:.1f} us late; {} answered, "
                   "p50 {:.1f} us, p99 {:.1f} us\n",
                   i, at(thread.delay_ns, 0.5), at(thread.delay_ns, 0.99), at(thread.delay_ns, 1),
                   thread.requests, at(thread.latency_ns, 0.5), at(thread.latency_ns, 0.99));
  }
}

nlohmann::ordered_json threads_json(const Summary& summary) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const ThreadSummary& thread : summary.threads) {
    out.push_back({{"requests", thread.requests},
                   {"sent_late", latency_json(thread.delay_ns)},
                   {"latency", latency_json(thread.latency_ns)}});
  }
  return out;
}

nlohmann::ordered_json intervals_json(const Summary& summary) {
  const auto rounded = [](double ns) { return std::round(ns / 100) / 10; };
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Moment& moment : summary.moments) {
    out.push_back({{"at_s", std::round(moment.at_s * 1000) / 1000},
                   {"requests_per_s", std::round(moment.requests_per_s)},
                   {"mean_us", rounded(moment.mean_ns)},
                   {"p50_us", rounded(static_cast<double>(moment.p50_ns))},
                   {"p99_us", rounded(static_cast<double>(moment.p99_ns))},
                   {"max_us", rounded(static_cast<double>(moment.max_ns))}});
  }
  return out;
}

// Adds lines about errors.
void add_complaints(const Options& options, const Summary& summary, std::string* out) {
  auto to = std::back_inserter(*out);
  if (summary.wrong > 0) {
    fmt::format_to(to, "WRONG VALUES  {} (the first: {})\n", summary.wrong, summary.first_wrong);
  }
  if (summary.refused > 0) {
    fmt::format_to(to, "refused       {} requests (the first: {})\n", summary.refused,
                   summary.first_refusal);
  }
  if (summary.out_of_memory > 0) {
    fmt::format_to(to, "no memory     {} sets\n", summary.out_of_memory);
  }
  if (summary.lost > 0) {
    fmt::format_to(to, "lost          {} requests without a reply in {} s\n", summary.lost,
                   options.timeout_s);
  }
  if (summary.unsent > 0) {
    fmt::format_to(to, "not reached   the rate: {} requests were due and not sent in time\n",
                   summary.unsent);
  }
}

}  // namespace

std::string progress_line(const Interval& interval) {
  const Histogram& latency = interval.latency_ns;
  if (interval.at_s < 0) return fmt::format("{:>5}s  warming up\n", "");
  return fmt::format(
      "{:>5.3g}s {:>12.0f} requests/s   hits {:6.2f}%   p50 {:.0f} us   p99 {:.0f} us\n",
      interval.at_s, ratio(static_cast<double>(interval.requests), interval.seconds),
      100 * hit_ratio(interval.hits, interval.misses),
      us(static_cast<double>(latency.quantile(0.5))),
      us(static_cast<double>(latency.quantile(0.99))));
}

std::string table(const Options& options, const Summary& summary) {
  std::string out = fmt::format("{:8}{:>12}{:>12}{:>10}", "", "requests", "per second", "mean us");
  auto to = std::back_inserter(out);
  for (const auto& quantile : kQuantiles) fmt::format_to(to, "{:>10}", quantile.name);
  out.push_back('\n');
  const double seconds = summary.seconds;
  uint32_t kinds = 0;
  for (size_t i = 0; i < kOperations; ++i) {
    if (summary.requests[i] == 0) continue;
    ++kinds;
    add_row(kOperationNames[i], summary.requests[i], seconds, summary.latency_ns[i], &out);
  }
  const uint64_t all = summary.all_requests();
  if (kinds != 1) add_row("all", all, seconds, summary.all_latency_ns, &out);
  out.push_back('\n');

  const uint64_t keys = summary.hits + summary.misses;
  if (keys > 0) {
    fmt::format_to(to, "keys read     {:.0f}/s, hits {:.2f}%\n",
                   ratio(static_cast<double>(keys), seconds),
                   100 * hit_ratio(summary.hits, summary.misses));
  }
  fmt::format_to(to, "network       {:.1f} MB/s out, {:.1f} MB/s in\n",
                 ratio(static_cast<double>(summary.bytes_sent), seconds) / 1e6,
                 ratio(static_cast<double>(summary.bytes_received), seconds) / 1e6);
  if (options.rate > 0) {
    fmt::format_to(to, "sent late     p50 {:.1f} us, p99 {:.1f} us (part of the latencies above)\n",
                   us(static_cast<double>(summary.delay_ns.quantile(0.5))),
                   us(static_cast<double>(summary.delay_ns.quantile(0.99))));
    if (summary.threads.size() > 1) add_threads(summary, &out);
  }
  fmt::format_to(to, "generator     {:.0f}% of {} CPU\n",
                 100 * ratio(summary.generator_cpu_s, seconds * options.threads), options.threads);
  if (summary.server_measured) {
    fmt::format_to(to,
                   "server        {:.0f}% of a CPU, {:.3f} us per request, {:.1f} MiB resident\n",
                   100 * ratio(summary.server_cpu_s, seconds),
                   ratio(summary.server_cpu_s * 1e6, static_cast<double>(all)),
                   static_cast<double>(summary.server_resident_kib) / 1024);
  }
  add_complaints(options, summary, &out);
  return out;
}

std::string json(const Options& options, const Summary& summary) {
  nlohmann::ordered_json out;
  out["server"] = options.server;
  out["udp"] = options.udp;
  out["protocol"] = options.meta ? "meta" : "text";
  out["threads"] = options.threads;
  out["connections"] = options.connections;
  out["pipeline"] = options.pipeline;
  out["multiget"] = options.multiget;
  out["rate"] = options.rate;
  out["sets"] = options.sets;
  out["deletes"] = options.deletes;
  out["look_aside"] = options.look_aside;
  out["keys"] = options.keys;
  out["distribution"] = options.distribution;
  out["sizes"] = options.sizes;
  out["seed"] = options.seed;
  out["seconds"] = summary.seconds;
  out["requests"] = summary.all_requests();
  out["requests_per_s"] = ratio(static_cast<double>(summary.all_requests()), summary.seconds);
  out["keys_read"] = summary.hits + summary.misses;
  out["keys_read_per_s"] =
      ratio(static_cast<double>(summary.hits + summary.misses), summary.seconds);
  out["hits"] = summary.hits;
  out["misses"] = summary.misses;
  out["hit_ratio"] = hit_ratio(summary.hits, summary.misses);
  out["wrong"] = summary.wrong;
  out["refused"] = summary.refused;
  out["out_of_memory"] = summary.out_of_memory;
  out["lost"] = summary.lost;
  out["unsent"] = summary.unsent;
  out["bytes_sent"] = summary.bytes_sent;
  out["bytes_received"] = summary.bytes_received;
  out["generator_cpu_s"] = summary.generator_cpu_s;
  if (summary.server_measured) {
    out["server_cpu_s"] = summary.server_cpu_s;
    out["server_cpu_us_per_request"] =
        ratio(summary.server_cpu_s * 1e6, static_cast<double>(summary.all_requests()));
    out["server_resident_kib"] = summary.server_resident_kib;
  }
  out["latency"] = latency_json(summary.all_latency_ns);
  for (size_t i = 0; i < kOperations; ++i) {
    if (summary.requests[i] == 0) continue;
    out[kOperationNames[i]] = latency_json(summary.latency_ns[i]);
    out[kOperationNames[i]]["requests"] = summary.requests[i];
  }
  if (options.rate > 0) {
    out["sent_late"] = latency_json(summary.delay_ns);
    out["by_thread"] = threads_json(summary);
  }
  if (!summary.moments.empty()) out["intervals"] = intervals_json(summary);
  return out.dump(2) + "\n";
}

}  // namespace warpcache::load
