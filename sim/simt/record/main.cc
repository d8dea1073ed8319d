// SPDX-License-Identifier: Apache-2.0
// cfg-record: the blocks that requests go through in the project's own code, compiled for this
// machine, for cfg-sim. docs/simulators/cfg-sim.md explains it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>

#include "simt/read_graph.h"
#include "simt/record/listing.h"
#include "simt/record/requests.h"
#include "simt/record/serve.h"
#include "simt/record/stepper.h"
#include "store/host/store.h"

namespace warpcache::simt {
namespace {

constexpr uint64_t kMemoryBytes = uint64_t{64} << 20;
constexpr uint32_t kReplyBytesMax = 64 * 1024;
constexpr uint64_t kHashSeed = 12345;

struct Options {
  std::string listing_path;
  std::string lengths = "16:1";
  std::string dot_path;
  std::string traces_path;
  uint64_t requests = 8192;
  Workload workload;
};

// A store of its own and the function under study over it.
class Server {
 public:
  bool create() {
    store::StoreConfig config;
    config.memory_limit = kMemoryBytes;
    config.threads = 1;
    config.maintenance_thread = false;
    config.manual_clock = true;
    config.huge_pages = false;
    config.seed = kHashSeed;
    if (store::Store::create(config, &store_) != Status::kOk) return false;
    if (store_->register_thread(&thread_) != Status::kOk) return false;
    serve_.context.store = store_->ref();
    serve_.context.thread = &thread_;
    serve_.context.clock = store_->clock();
    serve_.context.counters = &counters_;
    serve_.limits = {1 << 20, 1 << 20, true, protocol::kProtocolAuto};
    return true;
  }
  ~Server() {
    if (store_) store_->unregister_thread(&thread_);
  }

  // Runs `request` through `call`, which is to call its argument's function. Returns the reply.
  template <typename Call>
  std::string serve(std::string request, Call call) {
    serve_.context.input = reinterpret_cast<uint8_t*>(request.data());
    serve_.request = {serve_.context.input, request.size()};
    serve_.out = reply_.get();
    serve_.context.store.enter_batch(thread_);
    call(&serve_);
    serve_.context.store.leave_batch(thread_);
    return serve_.out == nullptr ? "" : std::string(reply_.get(), serve_.out);
  }

 private:
  std::unique_ptr<store::Store> store_;
  store::ThreadContext thread_;
  request::Counters counters_;
  Thread serve_ = {};
  std::unique_ptr<uint8_t[]> reply_ = std::make_unique<uint8_t[]>(kReplyBytesMax);
};

void call_serve(void* thread) { warpcache_simt_serve(static_cast<Thread*>(thread)); }

bool fill(const Workload& workload, Server* server, std::string* why) {
  for (const KeyLength& length : workload.lengths) {
    for (uint32_t i = 0; i < workload.keys; ++i) {
      const std::string text = store_request(workload, length.bytes, i);
      if (server->serve(text, call_serve) == "STORED\r\n") continue;
      *why = "a key could not be stored";
      return false;
    }
  }
  return true;
}

// Whether the reply is the one of the request's class.
bool is_expected(const Request& request, const std::string& reply) {
  switch (request.thread_class.back()) {
    case 'h':
      return reply.starts_with("VALUE ");
    case 'm':
      return reply == "END\r\n";
    default:
      return reply == "STORED\r\n";
  }
}

bool record(const Options& options, const Listing& listing, Server* server, std::ostream& out,
            std::string* why) {
  const auto begin = reinterpret_cast<uintptr_t>(&warpcache_simt_serve);
  Stepper stepper(begin, begin + listing.size);
  std::vector<uint32_t> steps;
  std::vector<uint32_t> blocks;
  for (uint64_t i = 0; i < options.requests; ++i) {
    const Request one = request(options.workload, i);
    const std::string reply =
        server->serve(one.text, [&](Thread* thread) { steps = stepper.run(call_serve, thread); });
    if (!is_expected(one, reply) || !blocks_of(listing, steps, &blocks)) {
      *why = fmt::format("request {} ({}) was answered {:?}", i, one.thread_class, reply);
      return false;
    }
    out << one.thread_class;
    for (const uint32_t block : blocks) out << ' ' << listing.graph.blocks[block].name;
    out << '\n';
    if (i % 1024 == 0) fmt::print(stderr, "\r{} of {} requests", i, options.requests);
  }
  fmt::print(stderr, "\r{} of {} requests\n", options.requests, options.requests);
  out.flush();
  if (!out) *why = "the traces cannot be written";
  return static_cast<bool>(out);
}

void add_options(CLI::App* app, Options* options) {
  app->add_option("--listing", options->listing_path,
                  "objdump -d --no-show-raw-insn of this program")
      ->required();
  app->add_option("--dot", options->dot_path, "write the control-flow graph");
  app->add_option("--traces", options->traces_path, "write the threads")->required();
  app->add_option("--lengths", options->lengths, "key lengths: BYTES:WEIGHT,...")
      ->capture_default_str();
  app->add_option("--hits", options->workload.hit_ratio, "share of the gets that hit")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app->add_option("--sets", options->workload.set_share, "share of the requests that are sets")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app->add_option("--keys", options->workload.keys, "stored keys of each length")
      ->check(CLI::Range(1u, 50'000u))
      ->capture_default_str();
  app->add_option("--value-bytes", options->workload.value_bytes, "of each value")
      ->check(CLI::Range(0u, 16'384u))
      ->capture_default_str();
  app->add_option("--requests", options->requests, "to record")->capture_default_str();
  app->add_option("--seed", options->workload.seed, "of keys and order")->capture_default_str();
}

bool run(Options* options, std::string* why) {
  Listing listing;
  std::ifstream in(options->listing_path);
  if (!parse_lengths(options->lengths, &options->workload.lengths, why) ||
      !read_listing(in, kServeSymbol, &listing, why)) {
    return false;
  }
  if (!options->dot_path.empty()) {
    std::ofstream dot(options->dot_path);
    dot << to_dot(listing.graph);
  }
  Server server;
  if (!server.create()) {
    *why = "no memory for a store";
    return false;
  }
  std::ofstream traces(options->traces_path);
  return fill(options->workload, &server, why) && record(*options, listing, &server, traces, why);
}

int parse_and_run(int argc, char** argv) {
  Options options;
  CLI::App app("Records the blocks that requests go through in warpcache's own code.",
               "cfg-record");
  add_options(&app, &options);
  CLI11_PARSE(app, argc, argv);
  std::string why;
  if (run(&options, &why)) return 0;
  fmt::print(stderr, "cfg-record: {}\n", why);
  return 1;
}

}  // namespace
}  // namespace warpcache::simt

int main(int argc, char** argv) {
  try {
    return warpcache::simt::parse_and_run(argc, argv);
  } catch (const std::exception& error) {  // of the libraries: no memory, a format of ours is wrong
    std::fprintf(stderr, "cfg-record: %s\n", error.what());
    return 1;
  }
}
