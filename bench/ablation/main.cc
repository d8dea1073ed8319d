// SPDX-License-Identifier: Apache-2.0
//
// warpcache-ablation: the effect of single decisions about the request kernel.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "ablation/report.h"
#include "ablation/study.h"

namespace {

using namespace warpcache::ablation;

constexpr const char* kAbout =
    "GETs of one size, on frames that lie in the GPU's memory, by kernels that differ in one "
    "thing:\n"
    "  threads  1, 2, 4, 8, 16 or 32 threads work on a request\n"
    "  helpers  a second warp composes the headers of the replies meanwhile, or not\n"
    "  launch   batches of 256 by calls on a stream, or by a CUDA graph; frames copied or in "
    "place\n"
    "  index    look-ups alone: sets of 16 ways against hopscotch hashing\n"
    "All keys are stored first. Every reply is compared byte by byte, every look-up with the one "
    "of\n"
    "the host in a copy of the store.";

constexpr const char* kEpilogue =
    "Exit status: 0 done, 1 wrong replies, 2 bad command line, 3 it cannot be measured here.";

void add_options(CLI::App* app, StudyConfig* study, bool* json) {
  app->add_option("--keys", study->workload.keys, "keys that are stored")
      ->check(CLI::Range(1u, 1u << 28))
      ->capture_default_str();
  app->add_option("--key-size", study->workload.key_size, "bytes")
      ->check(CLI::Range(8u, 250u))
      ->capture_default_str();
  app->add_option("--value-size", study->workload.value_size, "bytes")
      ->check(CLI::Range(0u, 256u))
      ->capture_default_str();
  app->add_option("--seed", study->workload.seed, "of keys, values and their order");
  app->add_option("--requests", study->requests, "of a pass, rounded up to whole batches")
      ->check(CLI::Range(1u, 1u << 26))
      ->capture_default_str();
  app->add_option("--batch", study->batch, "requests of a launch")
      ->check(CLI::Range(1u, 1u << 20))
      ->capture_default_str();
  app->add_option("--passes", study->passes, "the best counts")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  app->add_option("--hopscotch-loads", study->hopscotch_loads,
                  "items by homes, one row each; less where that is too full; 0: as many homes as "
                  "the sets have slots")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app->add_option("--gpu", study->gpu, "which one");
  app->add_flag("--json", *json, "one line of JSON instead of the table");
}

}  // namespace

int main(int argc, char** argv) {
  StudyConfig study;
  study.workload.keys = 4'000'000;
  bool json = false;
  CLI::App app(kAbout);
  app.footer(kEpilogue);
  add_options(&app, &study, &json);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    const bool terminal = isatty(STDERR_FILENO) != 0;
    const StudyResult result = run_study(study, [terminal](const std::string& text) {
      if (terminal) (void)std::fprintf(stderr, "\r\033[K%s", text.c_str());
    });
    if (terminal) (void)std::fputs("\r\033[K", stderr);
    const std::string text = json ? json_report(study, result) : text_report(study, result);
    (void)std::fwrite(text.data(), 1, text.size(), stdout);
    for (const Row& row : result.rows) {
      if (row.wrong > 0) return 1;
    }
    return 0;
  } catch (const std::exception& failure) {
    (void)std::fprintf(stderr, "warpcache-ablation: %s\n", failure.what());
    return 3;
  }
}
