// SPDX-License-Identifier: Apache-2.0
#include "admin/open_metrics.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

namespace warpcache::admin {
namespace {

using View = std::string_view;

constexpr double kSecondsPerNs = 1e-9;

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// In a label's value.
std::string escaped(View text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c < ' ' ? ' ' : c;
  }
  return out;
}

class MetricsWriter {
 public:
  explicit MetricsWriter(MetricsFormat format)
      : is_open_metrics_(format == MetricsFormat::kOpenMetrics) {}

  // Begins a family; its samples follow. In the older format the name of a counter has its suffix
  // here too, and there is no type "unknown".
  void family(View name, View type, View help) {
    name_ = name;
    suffix_ = type == "counter" ? "_total" : "";
    const View shown = is_open_metrics_ ? View() : suffix_;
    if (!is_open_metrics_ && type == "unknown") type = "untyped";
    fmt::format_to(std::back_inserter(text_), "# HELP {}{} {}\n# TYPE {}{} {}\n", name_, shown,
                   help, name_, shown, type);
  }
  template <typename Value>
  void sample(Value value, View labels = "") {
    part(suffix_, labels, value);
  }
  template <typename Value>
  void part(View suffix, View labels, Value value) {
    fmt::format_to(std::back_inserter(text_), "{}{}{}{}{} {}\n", name_, suffix,
                   labels.empty() ? "" : "{", labels, labels.empty() ? "" : "}", value);
  }
  template <typename Value>
  void counter(View name, View help, Value value) {
    family(name, "counter", help);
    sample(value);
  }
  template <typename Value>
  void gauge(View name, View help, Value value) {
    family(name, "gauge", help);
    sample(value);
  }
  std::string end() {
    if (is_open_metrics_) text_ += "# EOF\n";
    return std::move(text_);
  }

 private:
  const bool is_open_metrics_;
  std::string name_;
  View suffix_;
  std::string text_;
};

void write_process(const MetricsFacts& facts, MetricsWriter& write) {
  const StatsSnapshot& now = facts.snapshot;
  rusage used{};
  (void)getrusage(RUSAGE_SELF, &used);
  write.gauge("memcached_up", "Whether the server answers.", 1);
  write.gauge("memcached_uptime_seconds", "Seconds since the server's start.", now.uptime_s);
  write.gauge("memcached_time_seconds", "The server's clock, as Unix time.", now.unix_time);
  write.family("memcached_version", "gauge", "The version that the server tells clients.");
  write.sample(1, fmt::format("version=\"{}\"", escaped(now.version)));
  write.family("warpcache_engine", "gauge", "What runs the requests.");
  write.sample(1, fmt::format("engine=\"{}\"", escaped(facts.engine)));
  write.counter("memcached_process_user_cpu_seconds", "CPU time in user mode.",
                seconds(used.ru_utime));
  write.counter("memcached_process_system_cpu_seconds", "CPU time in the kernel.",
                seconds(used.ru_stime));
}

void write_ports(const StatsSnapshot& now, MetricsWriter& write) {
  if (now.ports.empty()) return;
  write.family("warpcache_port_read_bytes", "counter", "Bytes received, by kind of port.");
  for (const PortTraffic& port : now.ports) {
    write.sample(port.bytes_read, fmt::format("port=\"{}\"", port.name));
  }
  write.family("warpcache_port_written_bytes", "counter", "Bytes sent, by kind of port.");
  for (const PortTraffic& port : now.ports) {
    write.sample(port.bytes_written, fmt::format("port=\"{}\"", port.name));
  }
}

void write_connections(const MetricsFacts& facts, MetricsWriter& write) {
  const StatsSnapshot& now = facts.snapshot;
  const StatCounters& counters = now.counters;
  write.gauge("memcached_current_connections", "Open connections.", now.connections);
  write.gauge("memcached_max_connections", "The most connections at a time.",
              facts.options.server.connections_max);
  write.gauge("memcached_accepting_connections", "Whether connections are accepted.",
              static_cast<int>(now.accepting));
  write.counter("memcached_connections", "Connections opened.",
                counters[StatCounter::kTotalConnections]);
  write.counter("memcached_connections_rejected", "Connections above the most.",
                counters[StatCounter::kRejectedConnections]);
  write.counter("memcached_connections_yielded",
                "Times that a connection waited for others, having had its share.",
                counters[StatCounter::kConnYields]);
  write.counter("memcached_connections_listener_disabled", "Times that accepting paused.",
                counters[StatCounter::kListenDisabled]);
  write.counter("memcached_read_bytes", "Bytes received.", counters[StatCounter::kBytesRead]);
  write.counter("memcached_written_bytes", "Bytes sent.", counters[StatCounter::kBytesWritten]);
  write_ports(now, write);
}

void write_items(const MetricsFacts& facts, MetricsWriter& write) {
  const StatsSnapshot& now = facts.snapshot;
  const StatCounters& counters = now.counters;
  write.gauge("memcached_current_items", "Items in the store.", now.items);
  write.gauge("memcached_current_bytes", "Bytes of items.", now.item_bytes);
  write.gauge("memcached_limit_bytes", "Memory for index and items.", now.memory_limit_bytes);
  write.counter("memcached_items", "Items stored.", counters[StatCounter::kTotalItems]);
  write.counter("memcached_items_evicted", "Live items that left for want of memory.",
                counters[StatCounter::kEvictions]);
  write.counter("memcached_items_reclaimed", "Items whose place was used again after they expired.",
                counters[StatCounter::kReclaimed]);
  write.counter("memcached_item_too_large", "Stores above the largest item.",
                counters[StatCounter::kStoreTooLarge]);
  write.counter("memcached_item_no_memory", "Stores that found no memory.",
                counters[StatCounter::kStoreNoMemory]);
  write.gauge("memcached_malloced_bytes", "Memory of segments with items.",
              now.segments_used * now.segment_bytes);
  write.gauge("warpcache_index_bytes", "Memory of the index.", now.hash_bytes);
  write.gauge("warpcache_oldest_item_age_seconds",
              "Seconds since the last access to the oldest item of a sample.", facts.ages.oldest_s);
  write.family("warpcache_item_bytes_by_age", "gauge",
               "Bytes of items by seconds since their last access, from a sample.");
  for (size_t i = 0; i < ItemAges::kSteps; ++i) {
    const bool ends = i < ItemAges::kUpToS.size();
    write.sample(facts.ages.bytes[i],
                 ends ? fmt::format("up_to=\"{}\"", ItemAges::kUpToS[i]) : "up_to=\"+Inf\"");
  }
  write.gauge("warpcache_segment_bytes", "Size of a segment of memory.", now.segment_bytes);
  write.family("warpcache_segments", "gauge", "Segments of memory by state.");
  write.sample(now.segments_used, "state=\"used\"");
  write.sample(now.segments_free, "state=\"free\"");
}

void write_commands(const StatCounters& counters, MetricsWriter& write) {
  struct Command {
    View command;
    View status;
    StatCounter counter;
  };
  static constexpr Command kCommands[] = {
      {"get", "hit", StatCounter::kGetHits},        {"get", "miss", StatCounter::kGetMisses},
      {"delete", "hit", StatCounter::kDeleteHits},  {"delete", "miss", StatCounter::kDeleteMisses},
      {"incr", "hit", StatCounter::kIncrHits},      {"incr", "miss", StatCounter::kIncrMisses},
      {"decr", "hit", StatCounter::kDecrHits},      {"decr", "miss", StatCounter::kDecrMisses},
      {"cas", "hit", StatCounter::kCasHits},        {"cas", "miss", StatCounter::kCasMisses},
      {"cas", "badval", StatCounter::kCasBadval},   {"touch", "hit", StatCounter::kTouchHits},
      {"touch", "miss", StatCounter::kTouchMisses}, {"flush", "hit", StatCounter::kCmdFlush}};
  write.family("memcached_commands", "counter", "Commands by name and outcome.");
  // Swaps count as sets in memcached's statistics, but not in the exporter's.
  const uint64_t swaps = counters[StatCounter::kCasHits] + counters[StatCounter::kCasMisses] +
                         counters[StatCounter::kCasBadval];
  const uint64_t sets = counters[StatCounter::kCmdSet];
  write.sample(sets - std::min(sets, swaps), "command=\"set\",status=\"hit\"");
  for (const Command& one : kCommands) {
    write.sample(counters[one.counter],
                 fmt::format("command=\"{}\",status=\"{}\"", one.command, one.status));
  }
}

// Buckets at powers of two, of which the histogram has four steps each.
void write_times(const Timings& timings, MetricsWriter& write) {
  if (!timings.enabled()) return;
  write.family("warpcache_command_duration_seconds", "histogram",
               "Time from the receipt of a burst until its replies were handed to the system.");
  uint64_t requests = 0;
  for (size_t i = 0; i < kCommandClasses; ++i) {
    const TimeHistogram times = timings.histogram(static_cast<CommandClass>(i));
    requests += times.total;
    if (times.total == 0) continue;
    const std::string command = fmt::format("command=\"{}\"", kCommandNames[i]);
    uint64_t below = 0;
    for (uint32_t step = 0; step < TimeHistogram::kSteps; ++step) {
      below += times.counts[step];
      if (step % TimeHistogram::kStepsPerOctave != 0 || step + 1 == TimeHistogram::kSteps) continue;
      const double end = static_cast<double>(TimeHistogram::end_of(step)) * kSecondsPerNs;
      write.part("_bucket", fmt::format("{},le=\"{:g}\"", command, end), below);
    }
    write.part("_bucket", command + ",le=\"+Inf\"", times.total);
    write.part("_count", command, times.total);
    write.part("_sum", command, static_cast<double>(times.total_ns) * kSecondsPerNs);
  }
  write.family("warpcache_burst_requests", "histogram", "Requests in a burst.");
  uint64_t below = 0;
  const auto sizes = timings.batch_sizes();
  for (uint32_t i = 0; i < Timings::kBatchSteps; ++i) {
    below += sizes[i];
    if (i + 1 == Timings::kBatchSteps) break;
    write.part("_bucket", fmt::format("le=\"{}.0\"", uint64_t{1} << i), below);
  }
  write.part("_bucket", "le=\"+Inf\"", below);
  write.part("_count", "", below);
  write.part("_sum", "", requests);
}

// What only this server counts. Some of these can fall, so they have no type.
void write_own(const StatsSnapshot& now, MetricsWriter& write) {
  for (const auto& [name, value] : now.own) {
    write.family(fmt::format("warpcache_{}", name), "unknown", "As in stats.");
    write.sample(value);
  }
}

}  // namespace

MetricsFormat metrics_format(std::string_view accept) {
  return accept.find("application/openmetrics-text") != std::string_view::npos
             ? MetricsFormat::kOpenMetrics
             : MetricsFormat::kPrometheus;
}

std::string_view metrics_content_type(MetricsFormat format) {
  return format == MetricsFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string metrics_text(const MetricsFacts& facts, MetricsFormat format) {
  MetricsWriter write(format);
  write_process(facts, write);
  write_connections(facts, write);
  write_items(facts, write);
  write_commands(facts.snapshot.counters, write);
  write_times(facts.timings, write);
  write_own(facts.snapshot, write);
  return write.end();
}

}  // namespace warpcache::admin
