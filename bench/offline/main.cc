// SPDX-License-Identifier: Apache-2.0
//
// warpcache-bench: measurements that run inside one process. `offline` is the limit study of
// MemcachedGPU (SoCC 2015, section 5.5).
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "offline/report.h"
#include "offline/study.h"

namespace {

using namespace warpcache::offline;

constexpr const char* kAbout =
    "How fast requests become replies where no network is in the way: whole Ethernet frames lie "
    "in\n"
    "memory, and whole reply frames are written there. All keys are stored first; afterwards "
    "every\n"
    "reply of the last pass is compared byte by byte, checksums included.";

constexpr const char* kEpilogue =
    "Examples:\n"
    "  warpcache-bench offline                             CPU engine, 16-byte keys\n"
    "  warpcache-bench offline --engine cuda --keys 20000000 --requests 67108864 \\\n"
    "      --batches 512,4096,65536 --threads 4            GPU, four batches at a time\n"
    "  warpcache-bench offline --engine cuda --ping        headers alone\n"
    "\n"
    "Exit status: 0 done, 1 wrong replies, 2 bad command line, 3 it cannot be measured here.";

struct Options {
  StudyConfig study;
  BackendConfig backend;
  std::string engine = "cpu";
  uint64_t memory_mib = 0;
  std::vector<uint32_t> background_launches;
  std::string background_cut = "blocks";
  bool json = false;
  BackgroundProcess background{.config = {.launches = 1}};
};

BackgroundConfig::Cut cut_of(const Options& options) {
  return options.background_cut == "time" ? BackgroundConfig::Cut::kTime
                                          : BackgroundConfig::Cut::kBlocks;
}

// "16:0.7"
KeySize key_size(const std::string& text) {
  const size_t colon = text.find(':');
  KeySize size = {0, 0};
  const bool read = colon != std::string::npos &&
                    CLI::detail::lexical_cast(text.substr(0, colon), size.bytes) &&
                    CLI::detail::lexical_cast(text.substr(colon + 1), size.weight);
  if (!read || size.bytes < 8 || size.bytes > 250 || size.weight <= 0) {
    throw CLI::ValidationError("--key-mixture", "'" + text + "' is not BYTES:WEIGHT");
  }
  return size;
}

void add_workload(CLI::App* app, WorkloadConfig* workload) {
  app->add_option("--keys", workload->keys, "keys that are stored")
      ->take_last()
      ->check(CLI::Range(1u, 1u << 30));
  app->add_option("--key-size", workload->key_size, "bytes")->check(CLI::Range(8u, 250u));
  app->add_option_function<std::vector<std::string>>(
         "--key-mixture",
         [workload](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) workload->key_mixture.push_back(key_size(text));
         },
         "keys of several sizes, as BYTES:WEIGHT,...")
      ->delimiter(',');
  app->add_option("--value-size", workload->value_size,
                  "bytes; above " + std::to_string(Workload::kSetValueMax) + " there are gets only")
      ->check(CLI::Range(0u, Workload::kValueSizeMax));
  app->add_flag("--etc", workload->etc, "sizes of keys and values as in Facebook's ETC pool");
  app->add_option("--zipf", workload->theta, "exponent; 0: uniform")->check(CLI::Range(0.0, 10.0));
  app->add_option("--hits", workload->hit_ratio, "share of gets that hit")
      ->check(CLI::Range(0.0, 1.0));
  app->add_option("--multiget", workload->multiget, "keys of a get")->check(CLI::Range(1u, 128u));
  app->add_option("--sets", workload->set_share, "share of requests that are sets")
      ->check(CLI::Range(0.0, 1.0));
  app->add_flag("--ping", workload->ping, "mn alone: nothing of the store");
  app->add_flag("--udp-checksum", workload->udp_checksum, "frames with UDP checksums");
  app->add_option("--seed", workload->seed, "of keys, values and their order");
}

void add_options(CLI::App* app, Options* options) {
  add_workload(app, &options->study.workload);
  app->add_option("--requests", options->study.requests, "of a pass")
      ->take_last()
      ->check(CLI::Range(1u, 1u << 30));
  app->add_option("--batches", options->study.batches, "requests at a time, one row each")
      ->delimiter(',')
      ->check(CLI::Range(1u, 1u << 20));
  app->add_option("--passes", options->study.passes, "the best counts")
      ->take_last()
      ->check(CLI::Range(1u, 1000u));
  app->add_flag("!--no-verify", options->study.verify, "do not compare replies");
  app->add_option("--engine", options->engine, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app->add_option("--threads", options->backend.threads, "of the host")
      ->take_last()
      ->check(CLI::Range(1u, 64u));
  app->add_option("--depth", options->backend.depth,
                  "batches that a thread keeps under way on the GPU")
      ->take_last()
      ->check(CLI::Range(1u, 64u));
  app->add_option("-m,--memory", options->memory_mib,
                  "MiB of the store; without it, what the keys need")
      ->check(CLI::Range(16u, 1u << 24));
  app->add_option("--gpu", options->backend.gpu, "which one");
  app->add_option("--blocks", options->backend.blocks,
                  "of the GPU, for a batch; 0: as many as it has multiprocessors");
  app->add_option(
         "--copied", options->backend.copied_batch_min,
         "batches of at least this number of requests cross the bus by copy engines; 0: none")
      ->take_last();
  app->add_flag("--persistent", options->backend.persistent,
                "a persistent kernel, instead of a launch for each batch");
  app->add_flag("--device-memory", options->backend.device_memory,
                "frames and replies lie in the GPU's memory: no bus");
  app->add_flag("--nic", options->backend.nic,
                "with --device-memory: copy engines bring frames and take replies away meanwhile, "
                "in the place of a network card that writes to the GPU's memory");
  app->add_option("--order", options->study.order,
                  "how the requests of a batch stand: as drawn, by command, by size of key")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, Order>{{"drawn", Order::kDrawn},
                                                               {"command", Order::kCommand},
                                                               {"key-size", Order::kKeySize}},
                                  CLI::ignore_case));
  app->add_flag("--high-priority", options->backend.high_priority,
                "of the requests' streams, against background work");
  app->add_option("--rate", options->study.requests_per_s,
                  "requests/s that come, in batches at equal distances, which count from when they "
                  "come; without it, as many as are done")
      ->check(CLI::Range(1.0, 1e10));
  app->add_option("--background", options->background_launches,
                  "launches that a run of background work is cut into, which shares the GPU; one "
                  "row each, 0: without it")
      ->delimiter(',')
      ->check(CLI::Range(0u, kBackgroundBlocks));
  app->add_option("--background-cut", options->background_cut,
                  "a launch has a share of the blocks, or of the time of all")
      ->check(CLI::IsMember({"blocks", "time"}));
  app->add_flag("--json", options->json, "one line of JSON instead of the table");
  app->callback([options] {
    const WorkloadConfig& workload = options->study.workload;
    if (options->backend.nic && (!options->backend.device_memory || options->engine != "cuda")) {
      throw CLI::ValidationError("--nic", "it needs --engine cuda and --device-memory");
    }
    if (workload.set_share > 0 && workload.value_size > Workload::kSetValueMax) {
      throw CLI::ValidationError("--sets", "a set is one datagram: its value has at most " +
                                               std::to_string(Workload::kSetValueMax) + " bytes");
    }
  });
}

void add_background_options(CLI::App* app, Options* options) {
  BackgroundProcess* const process = &options->background;
  app->add_option("--launches", process->config.launches, "that a run is cut into")
      ->check(CLI::Range(1u, kBackgroundBlocks));
  app->add_option("--cut", options->background_cut,
                  "a launch has a share of the blocks, or of the time of all")
      ->check(CLI::IsMember({"blocks", "time"}));
  app->add_option("--seconds", process->seconds, "how long")->check(CLI::Range(0.0, 1e6));
  app->add_option("--loops", process->loops,
                  "of a block; 0: that many that a launch alone takes 30 ms, measured first");
  app->add_option("--gpu", process->gpu, "which one");
}

int run_beside(Options& options) {
  options.background.config.cut = cut_of(options);
  const BackgroundFigures figures = run_background(options.background);
  (void)std::printf("{\"launches\": %u, \"loops\": %u, \"run_ms\": %.3f}\n",
                    options.background.config.launches, figures.loops, figures.run_ms);
  return 0;
}

// The caller owns `backend`: after a failure it must not be destroyed.
int run(Options& options, std::unique_ptr<Backend>& backend) {
  options.backend.memory_bytes =
      options.memory_mib != 0 ? options.memory_mib << 20 : memory_for(options.study.workload);
  options.backend.hash_power = hash_power_for(options.study.workload);
  if (!options.background_launches.empty()) options.study.backgrounds.clear();
  for (const uint32_t launches : options.background_launches) {
    options.study.backgrounds.push_back({launches, cut_of(options)});
  }
  backend = options.engine == "cuda" ? make_gpu_backend(options.backend)
                                     : make_cpu_backend(options.backend);
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const StudyResult result =
      run_study(options.study, *backend, [terminal](const std::string& text) {
        if (terminal) (void)std::fprintf(stderr, "\r\033[K%s", text.c_str());
      });
  if (terminal) (void)std::fputs("\r\033[K", stderr);
  const auto report = options.json ? json_report : text_report;
  const std::string text = report(options.study, backend->describe(), result);
  (void)std::fwrite(text.data(), 1, text.size(), stdout);
  for (const Row& row : result.rows) {
    if (row.wrong > 0) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Measurements of warpcache that run inside one process.");
  app.require_subcommand(1);
  CLI::App* offline = app.add_subcommand("offline", kAbout);
  offline->footer(kEpilogue);
  add_options(offline, &options);
  CLI::App* background = app.add_subcommand(
      "background", "Nothing but background work on a GPU, beside a server: one line of JSON.");
  add_background_options(background, &options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  std::unique_ptr<Backend> backend;
  try {
    if (background->parsed()) return run_beside(options);
    return run(options, backend);
  } catch (const std::exception& failure) {
    (void)std::fprintf(stderr, "warpcache-bench: %s\n", failure.what());
    std::_Exit(3);  // anything else would wait for kernels that may never end
  }
}
