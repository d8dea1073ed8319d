// SPDX-License-Identifier: Apache-2.0
// Measures the hit ratio and the capacity of a memcached server. One run prints one JSON line;
// README.md explains it.
//   replay_client replay ...   a look-aside cache's request stream: hit ratio
//   replay_client trace ...    likewise, from a file
//   replay_client fill ...     sets, in the order of the keys' numbers
//   replay_client count ...    gets: how many of these keys the server holds
//   replay_client remove ...   deletes
// The exit status is 0 if the run was completed, whatever its counts.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "memory/text_session.h"
#include "workload/item_maker.h"
#include "workload/random.h"
#include "workload/sizes.h"
#include "workload/trace.h"
#include "workload/zipf.h"

namespace warpcache::bench {
namespace {

// Requests of a batch. Two batches are sent before the first reply is read.
constexpr uint32_t kBatch = 64;
constexpr uint32_t kTraceBatch = 8;     // whose sets follow their misses sooner
constexpr uint32_t kStatsEvery = 1024;  // sets between two reads of the server's evictions

struct Options {
  std::string address = "127.0.0.1";
  uint16_t port = 11211;
  uint64_t seed = 1;
  std::string sizes = "etc";
  // replay
  uint32_t keys = 2'000'000;
  double theta = 0.99;
  double overwrites = 0.1;
  uint64_t requests = 0;
  uint64_t warm_up = 0;
  uint64_t round = 0;
  std::string file;  // trace
  // fill, count, remove
  uint32_t first = 0;
  uint32_t last = 0;  // one past the last
  uint32_t step = 1;
  uint32_t version = 0;
  uint32_t expiry_s = 0;
  bool until_eviction = false;
};

struct Counts {
  uint64_t outcomes[8] = {};
  uint64_t counted_hits = 0;
  uint64_t counted_gets = 0;
  uint64_t counted_hit_bytes = 0;  // of keys and values
  uint64_t counted_bytes = 0;
  uint64_t overwrites = 0;
  uint64_t fills = 0;
  uint64_t curr_items = 0;  // until_eviction: the server's items then
  bool evicting = false;

  uint64_t operator[](Outcome outcome) const { return outcomes[static_cast<size_t>(outcome)]; }

  void add(const Reply& reply) {
    ++outcomes[static_cast<size_t>(reply.outcome)];
    if (!reply.request.counted || reply.request.operation != Operation::kGet) return;
    const uint64_t bytes = uint64_t{reply.request.sizes.key} + reply.request.sizes.value;
    ++counted_gets;
    counted_bytes += bytes;
    if (reply.outcome != Outcome::kHit) return;
    ++counted_hits;
    counted_hit_bytes += bytes;
  }
};

// Before each round of requests, prints a line on stdout and waits for a byte on stdin. So the
// caller can keep several clients in the same round, however the machine schedules them.
bool wait_for_round() {
  (void)std::fputc('\n', stdout);
  return std::fflush(stdout) == 0 && std::fgetc(stdin) != EOF;
}

// What is asked for.
struct Source {
  struct Drawn {
    uint32_t id;
    bool overwrite;  // a set of the key's next version; false: a get
  };
  std::vector<ItemSizes> sizes_of;  // of each id
  std::function<Drawn()> draw;      // the next request
  uint64_t requests = 0;
  uint32_t batch = kBatch;
};

// After a miss follows a set, which is sent with the batch after the next.
bool replay(const Options& options, const Source& source, TextSession* session, Counts* counts) {
  const std::vector<ItemSizes>& sizes_of = source.sizes_of;
  std::vector<uint32_t> versions(sizes_of.size(), 0);
  std::vector<uint32_t> missed;

  const auto send = [&](Operation operation, uint32_t id, bool counted) {
    session->queue({operation, counted, id, versions[id], sizes_of[id]});
  };
  uint64_t done = 0;
  while (done < source.requests || session->outstanding() > 0) {
    if (options.round != 0 && done < source.requests && done % options.round == 0 &&
        !wait_for_round()) {
      return false;
    }
    const size_t replies = session->outstanding();
    for (const uint32_t id : missed) send(Operation::kSet, id, false);
    counts->fills += missed.size();
    missed.clear();
    for (uint32_t i = 0; i < source.batch && done < source.requests; ++i, ++done) {
      const auto [id, overwrite] = source.draw();
      if (overwrite) {
        ++versions[id];
        ++counts->overwrites;
      }
      send(overwrite ? Operation::kSet : Operation::kGet, id, done >= options.warm_up);
    }
    if (!session->flush()) return false;
    for (size_t i = 0; i < replies; ++i) {
      Reply reply;
      if (!session->next_reply(&reply)) return false;
      counts->add(reply);
      if (reply.outcome == Outcome::kMiss) missed.push_back(reply.request.id);
    }
  }
  return true;
}

// Each request has a random rank and is an overwrite or a get.
bool replay_zipf(const Options& options, const Sizes& sizes, TextSession* session, Counts* counts) {
  const Zipf zipf(options.keys, options.theta);
  Random random(options.seed);
  Source source;
  for (uint32_t id = 0; id < options.keys; ++id) {
    source.sizes_of.push_back(sizes.of(options.seed, id));
  }
  source.requests = options.requests;
  source.draw = [&]() -> Source::Drawn {
    const uint32_t id = zipf.rank_at(random.next_unit());
    return {id, random.next_unit() < options.overwrites};
  };
  return replay(options, source, session, counts);
}

// Each request is a line of the file.
bool replay_trace(const Options& options, const Trace& trace, TextSession* session,
                  Counts* counts) {
  Source source;
  for (uint32_t id = 0; id < trace.keys(); ++id) {
    source.sizes_of.push_back({std::max(trace.key_size(id), kKeySizeMin), trace.value_size(id)});
  }
  source.requests = trace.entries().size();
  source.batch = kTraceBatch;
  source.draw = [entry = trace.entries().begin()]() mutable -> Source::Drawn {
    const Trace::Entry& now = *entry++;
    return {now.id, now.operation == Operation::kSet};
  };
  return replay(options, source, session, counts);
}

bool drain(TextSession* session, size_t leave, Counts* counts) {
  while (session->outstanding() > leave) {
    Reply reply;
    if (!session->next_reply(&reply)) return false;
    counts->add(reply);
  }
  return true;
}

bool look_for_evictions(TextSession* session, Counts* counts) {
  if (!drain(session, 0, counts)) return false;
  std::map<std::string, std::string> stats;
  if (!session->ask_stats(&stats)) return false;
  counts->curr_items = std::strtoull(stats["curr_items"].c_str(), nullptr, 10);
  counts->evicting = std::strtoull(stats["evictions"].c_str(), nullptr, 10) > 0;
  return true;
}

// Runs an operation on the keys first, first + step, ... below last.
bool sweep(const Options& options, const Sizes& sizes, Operation operation, TextSession* session,
           Counts* counts) {
  uint64_t sent = 0;
  for (uint64_t id = options.first; id < options.last && !counts->evicting; id += options.step) {
    const auto number = static_cast<uint32_t>(id);
    session->queue({operation, true, number, options.version, sizes.of(options.seed, number)},
                   options.expiry_s);
    ++sent;
    if (sent % kBatch == 0 && (!session->flush() || !drain(session, kBatch, counts))) return false;
    if (options.until_eviction && sent % kStatsEvery == 0 && !look_for_evictions(session, counts)) {
      return false;
    }
  }
  return session->flush() && drain(session, 0, counts);
}

void add_options(CLI::App* app, Options* options) {
  app->require_subcommand(1);
  app->fallthrough();
  app->add_option("--address", options->address, "the server's IPv4 address");
  app->add_option("--port", options->port, "the server's TCP port")->required();
  app->add_option("--seed", options->seed, "of the request stream, the sizes and the values");
  app->add_option("--sizes", options->sizes, "etc, fixed:KEY:VALUE or uniform:KEY:MIN:MAX");

  CLI::App* const replay = app->add_subcommand("replay", "a look-aside cache's request stream");
  replay->add_option("--keys", options->keys, "how many different keys")
      ->check(CLI::Range(1u, 1u << 30));
  replay->add_option("--theta", options->theta, "Zipf's exponent")->check(CLI::Range(0.0, 2.0));
  replay->add_option("--overwrites", options->overwrites, "share of requests that are sets")
      ->check(CLI::Range(0.0, 1.0));
  replay->add_option("--requests", options->requests, "how many in all")->required();
  replay->add_option("--warm-up", options->warm_up, "of these, not counted in the hit ratio");
  replay
      ->add_option("--round", options->round,
                   "before each N requests, print a line end and wait for a byte on stdin")
      ->check([](const std::string& text) {
        const uint64_t round = std::strtoull(text.c_str(), nullptr, 10);
        return round % kBatch == 0 ? "" : "must be a multiple of " + std::to_string(kBatch);
      });

  CLI::App* const trace = app->add_subcommand("trace", "a look-aside cache's requests from a file");
  trace->add_option("--file", options->file, "in one of the forms that hash-sim --trace reads")
      ->required();
  trace->add_option("--warm-up", options->warm_up, "requests that the hit ratio does not count");

  const std::pair<const char*, const char*> sweeps[] = {
      {"fill", "set keys"}, {"count", "get keys"}, {"remove", "delete keys"}};
  for (const auto& [name, text] : sweeps) {
    CLI::App* const sweep = app->add_subcommand(name, text);
    sweep->add_option("--first", options->first, "number of the first key");
    sweep->add_option("--last", options->last, "number after the last key")->required();
    sweep->add_option("--step", options->step, "distance of the keys' numbers")
        ->check(CLI::Range(1u, 1u << 30));
    sweep->add_option("--version", options->version, "of the values");
  }
  CLI::App* const fill = app->get_subcommand("fill");
  fill->add_option("--expiry", options->expiry_s, "seconds to live; 0: for ever");
  fill->add_flag("--until-eviction", options->until_eviction, "stop when the server evicts");
}

void print(const Options& options, const std::string& command, const Counts& counts, double seconds,
           const TextSession& session) {
  std::string refusal;
  for (const char c : session.first_refusal().substr(0, 200)) {
    refusal += c >= ' ' && c != '"' && c != '\\' && c < 127 ? c : '?';
  }
  fmt::print("{{\"command\": \"{}\", \"sizes\": \"{}\", \"seed\": {}, ", command, options.sizes,
             options.seed);
  if (command == "replay") {
    const auto gets = static_cast<double>(counts.counted_gets);
    fmt::print(
        "\"keys\": {}, \"theta\": {}, \"requests\": {}, \"warm_up\": {}, \"hit_ratio\": {:.5f}, "
        "\"counted_gets\": {}, \"overwrites\": {}, \"fills\": {}, ",
        options.keys, options.theta, options.requests, options.warm_up,
        gets > 0 ? static_cast<double>(counts.counted_hits) / gets : 0.0, counts.counted_gets,
        counts.overwrites, counts.fills);
  }
  if (command == "trace") {
    const auto share = [](uint64_t part, uint64_t of) {
      return of > 0 ? static_cast<double>(part) / static_cast<double>(of) : 0.0;
    };
    fmt::print("\"hit_ratio\": {:.5f}, \"byte_hit_ratio\": {:.5f}, \"counted_gets\": {}, ",
               share(counts.counted_hits, counts.counted_gets),
               share(counts.counted_hit_bytes, counts.counted_bytes), counts.counted_gets);
  }
  if (options.until_eviction) {
    fmt::print("\"evicting\": {}, \"curr_items\": {}, ", counts.evicting, counts.curr_items);
  }
  fmt::print(
      "\"hits\": {}, \"misses\": {}, \"wrong\": {}, \"stored\": {}, \"out_of_memory\": {}, "
      "\"removed\": {}, \"not_found\": {}, \"refused\": {}, \"first_refusal\": \"{}\", "
      "\"seconds\": {:.3f}}}\n",
      counts[Outcome::kHit], counts[Outcome::kMiss], counts[Outcome::kWrong],
      counts[Outcome::kStored], counts[Outcome::kOutOfMemory], counts[Outcome::kRemoved],
      counts[Outcome::kNotFound], counts[Outcome::kRefused], refusal, seconds);
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Measures what a memcached server holds and hits; prints a JSON line.");
  add_options(&app, &options);
  CLI11_PARSE(app, argc, argv);
  Sizes sizes;
  std::string why;
  if (!Sizes::parse(options.sizes, &sizes, &why)) {
    fmt::print(stderr, "replay_client: {}\n", why);
    return 2;
  }

  Trace trace;
  if (!options.file.empty()) {
    std::ifstream file(options.file);
    if (!Trace::read(&file, 0, &trace, &why)) {
      fmt::print(stderr, "replay_client: {}: {}\n", options.file, why);
      return 2;
    }
  }

  const ItemMaker maker(options.seed);
  TextSession session(maker);
  Counts counts;
  const std::string command = app.get_subcommands().front()->get_name();
  const std::map<std::string, Operation> sweeps = {
      {"fill", Operation::kSet}, {"count", Operation::kGet}, {"remove", Operation::kDelete}};
  const auto begin = std::chrono::steady_clock::now();
  const bool well =
      session.connect(options.address, options.port) &&
      (command == "replay"  ? replay_zipf(options, sizes, &session, &counts)
       : command == "trace" ? replay_trace(options, trace, &session, &counts)
                            : sweep(options, sizes, sweeps.at(command), &session, &counts));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (!well) {
    fmt::print(stderr, "replay_client: {}\n", session.failure());
    return 1;
  }
  print(options, command, counts, seconds.count(), session);
  return 0;
}

}  // namespace
}  // namespace warpcache::bench

int main(int argc, char** argv) { return warpcache::bench::run(argc, argv); }
