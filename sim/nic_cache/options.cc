// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string_view>
#include <thread>

namespace warpcache::nic {
namespace {

constexpr const char* kAbout =
    "Simulates a cache at the network interface in front of a memcached, as in \"Enhancing\n"
    "Memcached by Caching Its Data and Functionalities at Network Interface\" (JIP 23(2), 2015).\n"
    "docs/simulators/nic-cache-sim.md explains it.";

constexpr const char* kEpilogue =
    "Lists are separated by commas; every combination is run, with --seeds N seeds.\n"
    "\n"
    "Examples:\n"
    "  nic-cache-sim run -w a,b,c,d --size 1/32,1/16,1/8,1/4,1/2 --ways 1,2,4,8 --replacement lru\n"
    "  nic-cache-sim run -w c --allocate none,safe --size 1/4\n"
    "  nic-cache-sim run -w a --size bits:4980736 --tag-bits 17,7,2\n"
    "  nic-cache-sim run -w a --allocate unsafe,safe --reply-after 31\n"
    "  nic-cache-sim trace -w a,b,c,d\n"
    "  nic-cache-sim model --miss-rate 0.6\n"
    "\n"
    "Exit status: 0 done, 1 a safe setting answered with an old value (a bug), 2 bad command\n"
    "line or input file.";

// With the load phase, and two uses of an entry for each request, below what 32 bits count.
constexpr uint64_t kRequestsMax = 1'000'000'000;

// The text of each list, before its elements are read.
struct Texts {
  std::vector<std::string> sizes{"1/4"};
  std::vector<std::string> replacements{"bit-plru"};
  std::vector<std::string> storages{"slots"};
  std::vector<std::string> allocates{"safe"};
  std::vector<std::string> writes{"forward"};
  std::vector<std::string> admissions{"all"};
  std::vector<std::string> hosts{"lru"};
};

void add_seed(CLI::App* app, Options* options) {
  app->add_option("--seed", options->source.seed, "of the requests and of the hash");
}

void add_output(CLI::App* app, Options* options) {
  app->add_option("--json", options->json_path,
                  "append a JSON line a run there (-: standard output, without tables)");
}

void add_stream(CLI::App* app, Options* options) {
  Source* source = &options->source;
  app->add_option("-w,--workload", options->workloads,
                  "YCSB's a, b, c, d, or mixes GETS:SETS[:INSERTS:DELETES]")
      ->delimiter(',');
  app->add_option("--keys", source->distribution,
                  "ycsb-scrambled, latest:S, uniform, zipf:S, ...; default: YCSB's");
  app->add_option("--sizes", source->sizes, "fixed:KEY:VALUE, uniform:KEY:MIN:MAX, or etc");
  app->add_option("-n,--records", source->records, "keys that the load phase stores")
      ->check(CLI::Range(uint64_t{2}, uint64_t{PackedTrace::kKeysMax}));
  app->add_option("--requests", source->requests, "measured requests")
      ->check(CLI::Range(uint64_t{1}, kRequestsMax));
  app->add_flag("!--no-load", source->load, "begin with empty caches");
}

// Options of a generated stream are refused with a file, which has its own requests.
void add_source(CLI::App* app, Options* options) {
  CLI::Option* const file =
      app->add_option("--file", options->source.file,
                      "a trace instead (see hash-sim for its forms); no load phase");
  const size_t before = app->get_options().size();
  add_stream(app, options);
  const std::vector<CLI::Option*> all = app->get_options();
  for (size_t i = before; i < all.size(); ++i) all[i]->excludes(file);
  add_seed(app, options);
  add_output(app, options);
}

void add_cache(CLI::App* app, Lists* lists, Texts* texts) {
  app->add_option("-s,--size", texts->sizes,
                  "of the NIC's cache: part of memcached's capacity (1/4, 0.25), DRAM "
                  "(dram:BYTES) or block memory (bits:BITS)")
      ->delimiter(',');
  app->add_option("-r,--replacement", texts->replacements,
                  "fifo, lru, lfu, tree-plru, bit-plru, sieve, s3fifo, two-generations")
      ->delimiter(',');
  app->add_option("--ways", lists->ways, "entries a row, a power of two to 32")->delimiter(',');
  app->add_option("--tag-bits", lists->tag_bits, "width of the tags, 0 to 31")->delimiter(',');
  app->add_option("--storage", texts->storages,
                  "slots: one of fixed size an entry; blocks: chains from a pool")
      ->delimiter(',');
  app->add_option("--slot-bytes", lists->slot_bytes, "DRAM an entry")->delimiter(',');
  app->add_option("--block-bytes", lists->block_bytes, "of a block")
      ->check(CLI::Range(1u, 1u << 20));
}

void add_policies(CLI::App* app, Lists* lists, Texts* texts) {
  app->add_option("--allocate", texts->allocates,
                  "cache what a missed GET brings: none, unsafe, safe")
      ->delimiter(',');
  app->add_option("--write", texts->writes,
                  "back: the host gets a SET when it is evicted; forward: at once; invalidate, "
                  "update: at once, and the cache keeps none or only what it had")
      ->delimiter(',');
  app->add_option("--admit", texts->admissions,
                  "all: every reply is cached; frequent: where it evicts another item, of a key "
                  "that missed before")
      ->delimiter(',');
  app->add_option("--reply-after", lists->reply_requests,
                  "requests that pass before the reply to a miss")
      ->delimiter(',');
  app->add_option("--inflight", lists->inflight_max, "misses that --allocate safe follows at once")
      ->check(CLI::Range(1u, 65536u));
  app->add_option("--host", texts->hosts,
                  "lru: exact LRU over items' bytes; store: warpcached's own store")
      ->delimiter(',');
  app->add_option("--host-capacity", lists->host_capacity,
                  "memcached's, in units of what the load phase stores; 0: no limit")
      ->check(CLI::Range(0.0, 1e6));
}

void add_latencies(CLI::App* app, Latencies* latencies) {
  const CLI::Range bounds(0.0, 1e9);
  app->add_option("--network-us", latencies->network_us, "a reply that the NIC gives at once")
      ->check(bounds);
  app->add_option("--nic-us", latencies->nic_us, "a hit in the NIC, as a client sees it")
      ->check(bounds);
  app->add_option("--host-us", latencies->host_us, "a reply of the host, as a client sees it")
      ->check(bounds);
}

void add_throughputs(CLI::App* app, Throughputs* rates) {
  const CLI::Range bounds(1.0, 1e12);
  app->add_option("--set-rate", rates->set, "SETs/s alone")->check(bounds);
  app->add_option("--hit-rate-low", rates->hit_low, "GETs/s that all hit, at worst")->check(bounds);
  app->add_option("--hit-rate-high", rates->hit_high, "at best")->check(bounds);
  app->add_option("--miss-rate-low", rates->miss_low, "GETs/s that all miss, at worst")
      ->check(bounds);
  app->add_option("--miss-rate-high", rates->miss_high, "at best")->check(bounds);
}

std::optional<Storage> storage_of(std::string_view name) {
  if (name == "slots") return Storage::kSlots;
  if (name == "blocks") return Storage::kBlocks;
  return std::nullopt;
}

std::optional<HostKind> host_of(std::string_view name) {
  if (name == "lru") return HostKind::kLru;
  if (name == "store") return HostKind::kStore;
  return std::nullopt;
}

std::optional<Size> size_of(const std::string& text) {
  Size size;
  return parse_size(text, &size) ? std::optional(size) : std::nullopt;
}

// Reads each text; throws what CLI11 reports if one is not known.
template <typename T, typename Read>
std::vector<T> read_all(const char* option, const std::vector<std::string>& texts, Read read) {
  std::vector<T> found;
  for (const std::string& text : texts) {
    const auto value = read(text);
    if (!value) throw CLI::ValidationError(option, text + " is not known");
    found.push_back(*value);
  }
  return found;
}

void read_lists(const Texts& texts, Lists* lists) {
  lists->sizes = read_all<Size>("--size", texts.sizes, size_of);
  lists->replacements = read_all<Replacement>("--replacement", texts.replacements, replacement_of);
  lists->storages = read_all<Storage>("--storage", texts.storages, storage_of);
  lists->allocates = read_all<ReadAllocate>("--allocate", texts.allocates, read_allocate_of);
  lists->writes = read_all<WritePolicy>("--write", texts.writes, write_policy_of);
  lists->admissions = read_all<Admission>("--admit", texts.admissions, admission_of);
  lists->hosts = read_all<HostKind>("--host", texts.hosts, host_of);
}

void add_run(CLI::App* app, Options* options, Texts* texts) {
  add_source(app, options);
  add_cache(app, &options->lists, texts);
  add_policies(app, &options->lists, texts);
  add_latencies(app, &options->latencies);
  add_throughputs(app, &options->throughputs);
  app->add_option("-j,--threads", options->threads, "settings run at once; 0: one a CPU")
      ->check(CLI::Range(0u, 1024u));
  app->add_option("--seeds", options->seeds, "runs of each setting, with other seeds each")
      ->check(CLI::Range(1u, 1000u));
  app->add_flag("-q,--quiet", options->quiet, "no progress on standard error");
}

void add_trace(CLI::App* app, Options* options) {
  add_source(app, options);
  app->add_option("--first", options->first_requests, "requests whose keys are listed");
  app->add_option("--points", options->cdf_points, "of the cumulative distribution")
      ->check(CLI::Range(4u, 1'000'000u));
  app->add_option("--write-trace", options->write_trace_path,
                  "write the measured requests there, for --file and for warpcache-load "
                  "--distribution trace:FILE; of one workload");
}

void add_model(CLI::App* app, Options* options) {
  const CLI::Range share(0.0, 1.0);
  app->add_option("--miss-rate", options->miss_rates, "of GETs")->delimiter(',')->check(share);
  app->add_option("--gets", options->get_shares, "GETs among the requests")
      ->delimiter(',')
      ->check(share);
  add_latencies(app, &options->latencies);
  add_throughputs(app, &options->throughputs);
  add_output(app, options);
}

}  // namespace

ParseResult parse_options(int argc, char** argv, Options* out) {
  Texts texts;
  out->lists.ways = {8};
  out->lists.tag_bits = {17};
  out->lists.slot_bytes = {512};
  out->lists.reply_requests = {0};
  CLI::App app(kAbout, "nic-cache-sim");
  app.footer(kEpilogue);
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default();
  CLI::App* run = app.add_subcommand("run", "replay workloads through NIC caches");
  CLI::App* trace = app.add_subcommand("trace", "how the workloads ask for their keys");
  CLI::App* model = app.add_subcommand("model", "throughput and latency of given miss rates");
  add_run(run, out, &texts);
  add_trace(trace, out);
  add_model(model, out);
  try {
    app.parse(argc, argv);
    read_lists(texts, &out->lists);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) == 0) return ParseResult::kShown;
    return ParseResult::kRefused;
  }
  if (trace->parsed()) out->command = Command::kTrace;
  if (model->parsed()) out->command = Command::kModel;
  if (out->threads == 0) out->threads = std::max(1u, std::thread::hardware_concurrency());
  return ParseResult::kRun;
}

}  // namespace warpcache::nic
