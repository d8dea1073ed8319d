// SPDX-License-Identifier: Apache-2.0
#include "load/options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/cpu_list.h"

namespace warpcache::load {
namespace {

constexpr const char* kAbout =
    "Puts a memcached server under load and reports requests per second, latencies and hit ratio.\n"
    "All keys are stored first; every value that comes back is checked whole.";

constexpr uint32_t kFrameConnectionsMax = 40'000;  // each has a port

constexpr const char* kEpilogue =
    "Latency: in a closed loop (no --rate) each connection sends as soon as replies leave room, "
    "and\n"
    "latency counts from sending. With --rate requests are due at even intervals whatever the "
    "server\n"
    "does, and latency counts from when a request was due.\n"
    "\n"
    "Examples:\n"
    "  warpcache-load                                    90% get, 10% set on 127.0.0.1:11211\n"
    "  warpcache-load cache1:11211 -c 200 -t 4 --sets 0  gets over 200 connections\n"
    "  warpcache-load --rate 100000                      latency at 100,000 requests/s\n"
    "  warpcache-load --udp --multiget 10                UDP, 10 keys a request\n"
    "  warpcache-load /run/memcached.sock --meta -P 32   Unix socket, meta protocol, pipelined\n"
    "  warpcache-load --look-aside --keys 2000000 --sizes etc --sets 0\n"
    "                                                    hit ratio of a cache in front of a store\n"
    "\n"
    "Exit status: 0 done, 1 wrong values or refused requests, 2 bad command line, 3 no server.";

void add_traffic(CLI::App* app, Options* options) {
  app->add_option("-t,--threads", options->threads, "threads that send")
      ->check(CLI::Range(1u, 256u));
  app->add_option("--cpus", options->cpus, "CPUs for these threads, one each, as 1,4-7");
  app->add_option("-c,--connections", options->connections, "connections or UDP sockets in all")
      ->check(CLI::Range(1u, 100'000u));
  app->add_option("-P,--pipeline", options->pipeline, "requests on the way on each connection")
      ->check(CLI::Range(1u, kPipelineMax));
  app->add_option("-r,--rate", options->rate,
                  "open loop: requests per second in all; 0: closed loop")
      ->check(CLI::Range(0.0, 1e9));
  app->add_option("-s,--seconds", options->seconds, "how long to measure")
      ->check(CLI::Range(0.01, 1e6));
  app->add_option("--requests", options->requests, "measure this number of requests instead");
  app->add_option("--interval", options->interval_s,
                  "seconds between two lines of progress, and of `intervals` in --json")
      ->check(CLI::Range(0.01, 1e6));
  app->add_option("--warm-up", options->warm_up_s, "seconds of load before measuring")
      ->check(CLI::Range(0.0, 1e6));
  app->add_option("--timeout", options->timeout_s,
                  "seconds without a reply after which the server is away, or a datagram lost")
      ->check(CLI::Range(0.001, 1e5));
}

void add_requests(CLI::App* app, Options* options) {
  app->add_flag("--udp", options->udp, "UDP, a datagram a request");
  app->add_option("--ucx", options->ucx_port, "active messages to this port of the server's host")
      ->check(CLI::Range(1, 65535));
  app->add_option(
      "--frames", options->frames,
      "dpdk:DEVICE[,ARGUMENTS]: UDP in Ethernet frames of this device, with a queue for "
      "each thread; or ring:NAME: DPDK's rings in the memory of a server with --frames=ring; "
      "or peer:FILE: this process writes frames to memory that it shares with the "
      "server, and rings its GPU (--frames=peer of the server); implies --udp");
  app->add_option("--frames-source", options->frames_source,
                  "the IPv4 address that frames come from");
  app->add_flag("--meta", options->meta, "meta protocol (mg, ms, md) instead of text");
  app->add_option("-g,--multiget", options->multiget, "keys in each get")
      ->check(CLI::Range(1u, kMultigetMax));
  app->add_option("--sets", options->sets, "share of requests that are sets")
      ->check(CLI::Range(0.0, 1.0));
  app->add_option("--deletes", options->deletes, "share of requests that are deletes")
      ->check(CLI::Range(0.0, 1.0));
  app->add_flag("--look-aside", options->look_aside,
                "set each key that was missed, as an application does; implies --no-fill");
  app->add_option("--expiry", options->expiry_s, "seconds that items live; 0: for ever");
  app->add_flag("!--no-fill", options->fill, "do not store all keys first");
  app->add_option("--fill-share", options->fill_share, "store only this share of the keys first")
      ->check(CLI::Range(0.0, 1.0));
  app->add_flag("!--no-verify", options->verify, "do not check what values come back");
  app->add_option("--verify-share", options->verify_share,
                  "frames: the share of replies whose checksums and values are checked")
      ->check(CLI::Range(1e-6, 1.0));
}

void add_keys(CLI::App* app, Options* options) {
  app->add_option("-k,--keys", options->keys, "how many different keys")
      ->check(CLI::Range(1u, 1u << 30));
  app->add_option(
      "-d,--distribution", options->distribution,
      "uniform, zipf:S, latest:S (sets add keys, gets prefer the newest) or trace:FILE");
  app->add_option("--sizes", options->sizes,
                  "fixed:KEY:VALUE, uniform:KEY:MIN:MAX, steps:KEY:VALUE=WEIGHT,..., "
                  "keys:VALUE:KEY=WEIGHT,... (bytes), or etc (those of Facebook's ETC)");
  app->add_option("--seed", options->seed, "of keys, values and their order");
}

void add_output(CLI::App* app, Options* options) {
  app->add_option("--json", options->json_path, "also write the result here; - is standard output");
  app->add_flag("-q,--quiet", options->quiet, "no progress lines, and no table with --json -");
  app->add_option("--server-pid", options->server_pid,
                  "the server's process on this machine: report its CPU time per request");
}

// Checks options that depend on each other. Returns an error message, or an empty string.
std::string contradiction(const Options& options) {
  if (options.sets + options.deletes > 1) return "--sets and --deletes are more than 1 together";
  if (options.connections < options.threads) return "each thread needs a connection";
  const bool is_peer = options.frames.starts_with(kPeerPrefix);
  if (!options.frames.empty() && !is_peer && !options.frames.starts_with(kDpdkPrefix) &&
      !options.frames.starts_with(kRingPrefix)) {
    return "--frames accepts dpdk:DEVICE[,ARGUMENTS], ring:NAME and peer:FILE";
  }
  if (is_peer && options.threads != 1) return "--frames=peer:FILE has one thread";
  if (!options.frames.empty() && options.connections / options.threads > kFrameConnectionsMax) {
    return "with --frames a thread has at most 40000 connections";
  }
  if (!options.cpus.empty() && read_cpu_list(options.cpus).size() != options.threads) {
    return "--cpus gives each thread a CPU, as 1,4-7";
  }
  if (const auto others = cpus_not_allowed(read_cpu_list(options.cpus)); !others.empty()) {
    return fmt::format("--cpus: CPU {} may not be used", others[0]);
  }
  if (options.ucx_port != 0 && (options.udp || options.server.find('/') != std::string::npos)) {
    return "--ucx needs a host, and neither --udp nor --frames";
  }
  if (options.udp && options.meta && options.multiget > 1) {
    return "a meta multiget is several requests, which one datagram cannot hold";
  }
  return "";
}

}  // namespace

ParseResult parse_options(int argc, char** argv, Options* out) {
  CLI::App app(kAbout, "warpcache-load");
  app.footer(kEpilogue);
  app.option_defaults()->always_capture_default()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
  app.get_formatter()->column_width(34);
  app.add_option("SERVER", out->server, "HOST[:PORT], or the path of a Unix socket");
  add_traffic(&app, out);
  add_requests(&app, out);
  add_keys(&app, out);
  add_output(&app, out);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);
      return ParseResult::kShown;
    }
    fmt::print(stderr, "warpcache-load: {}\nwarpcache-load --help tells more.\n", error.what());
    return ParseResult::kRefused;
  }
  if (!out->frames.empty()) out->udp = true;
  const std::string why = contradiction(*out);
  if (!why.empty()) fmt::print(stderr, "warpcache-load: {}\n", why);
  if (out->look_aside) out->fill = false;
  return why.empty() ? ParseResult::kRun : ParseResult::kRefused;
}

}  // namespace warpcache::load
