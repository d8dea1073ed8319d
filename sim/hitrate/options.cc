// SPDX-License-Identifier: Apache-2.0
#include "hitrate/options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "traces/exit_status.h"
#include "traces/keys.h"

namespace warpcache::sim {
namespace {

constexpr uint32_t kThreadsMax = 256;

void add_cache_options(CLI::App* app, Options* out) {
  app->add_option(
         "--cache", out->caches,
         "chained[:POLICY], set:WAYS[:POLICY], hopscotch, strided, cuckoo, cuckoo:4, "
         "two-generations[:YOUNG[:WASTE[:MAX[:MIN[:GHOSTS[:BY_SIZE]]]]]], store[:SEGMENT_KIB]; "
         "POLICY lru, fifo, clock, "
         "sieve, s3fifo; over all items also gdsf, gdsf-25, gdsf-50, gdsf-75, lirs, w-tinylfu, "
         "lhd, farthest; in sets also random, duel, two-generations")
      ->capture_default_str();
  CLI::Option* const capacity =
      app->add_option("--capacity", out->capacities, "entries; several: one run each");
  CLI::Option* const memory =
      app->add_option("--memory", out->memories, "bytes (64M), instead of --capacity")
          ->transform(CLI::AsSizeValue(false))
          ->excludes(capacity);
  CLI::Option* const share =
      app->add_option("--share", out->shares,
                      "of the bytes of all that is asked for, instead of --memory")
          ->check(CLI::Range(1e-6, 10.0))
          ->excludes(capacity)
          ->excludes(memory);
  app->add_option("--overhead", out->overhead,
                  "with --memory or --share: bytes an item beside key and value")
      ->excludes(capacity)
      ->capture_default_str();
  app->add_flag("--exact-lru", out->exact_lru, "also the exact LRU figures, by stack distances")
      ->excludes(memory)
      ->excludes(share);
}

// Options of a generated stream: refused with a file, which has its own requests.
void add_stream_options(CLI::App* app, Options* out) {
  Workload& workload = out->workload;
  app->add_option("--keys", workload.keys,
                  "uniform, zipf:S, zipf-ranks:S, ycsb-zipf:S, ycsb-scrambled, latest:S, drift:S:N")
      ->capture_default_str();
  app->add_option("--key-count", workload.key_count, "keys in the beginning")
      ->check(CLI::Range(uint64_t{2}, kKeysMax))
      ->capture_default_str();
  app->add_option("--requests", workload.requests, "after loading")->capture_default_str();
  app->add_option("--mix", out->mix, "YCSB's a, b, c, d, or GETS:SETS[:INSERTS:DELETES]")
      ->capture_default_str();
  app->add_option("--one-hits", workload.one_hits, "share of requests for keys never seen again");
  app->add_option("--scans", workload.scans, "share of requests that belong to scans");
  app->add_option("--scan-length", workload.scan_length, "keys in a scan")->needs("--scans");
  CLI::Option* const loops =
      app->add_option("--loops", workload.loops, "share of requests that belong to loops");
  app->add_option("--loop-length", workload.loop_length, "keys in a loop")->needs(loops);
  app->add_option("--loop-count", workload.loop_count, "loops")->needs(loops);
  app->add_option("--sizes", workload.sizes,
                  "etc, fixed:KEY:VALUE, uniform:KEY:MIN:MAX or steps:KEY:VALUE=WEIGHT,...")
      ->capture_default_str();
  app->add_flag("--load,!--no-load", out->load, "first set every key once (default)");
}

void add_trace_options(CLI::App* app, Options* out) {
  CLI::Option* const trace =
      app->add_option("--trace", out->trace_path, "requests from this file instead");
  const size_t before = app->get_options().size();
  add_stream_options(app, out);
  const std::vector<CLI::Option*> all = app->get_options();
  for (size_t i = before; i < all.size(); ++i) all[i]->excludes(trace);
  app->add_option("--seed", out->workload.seed, "of requests, sizes and hashes")
      ->capture_default_str();
  app->add_option("--write-trace", out->write_trace_path,
                  "write load and requests there as time,key,size, and end");
}

void add_run_options(CLI::App* app, Options* out) {
  SimulateOptions& simulate = out->simulate;
  app->add_option("--warm-up", simulate.warm_up, "requests that are not counted");
  CLI::Option* const ttl =
      app->add_option("--ttl", simulate.ttl_s, "seconds to live; needs --rate");
  app->add_option("--ttl-every", simulate.ttl_every, "keys, of which one has a time to live")
      ->check(CLI::Range(1u, 1u << 30))
      ->needs(ttl);
  ttl->needs(app->add_option("--rate", simulate.requests_per_s,
                             "requests in a second of simulated time; needs --ttl")
                 ->needs(ttl));
  app->add_option("--threads", out->threads, "runs at once")->check(CLI::Range(1u, kThreadsMax));
  app->add_option("--json", out->json_path, "append a JSON line a run there (-: standard output)");
  app->add_flag("--quiet", out->quiet, "no progress, no table");
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int* status) {
  Options options;
  CLI::App app(
      "hash-sim: hit rates of hash tables and evictions over a stream of requests.\n"
      "A get that misses is followed by a set. docs/simulators/hash-sim.md explains.");
  add_cache_options(&app, &options);
  add_trace_options(&app, &options);
  add_run_options(&app, &options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *status = app.exit(error) == 0 ? kExitDone : kExitUsage;
    return {};
  }
  std::string why;
  if (!Mix::parse(options.mix, &options.workload.mix, &why)) {
    fmt::print(stderr, "hash-sim: {}\n", why);
    *status = kExitUsage;
    return {};
  }
  options.simulate.hash_seed = options.workload.seed;
  return options;
}

}  // namespace warpcache::sim
