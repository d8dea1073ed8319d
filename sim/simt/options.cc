// SPDX-License-Identifier: Apache-2.0
#include "simt/options.h"

#include <CLI/CLI.hpp>
#include <thread>

namespace warpcache::simt {
namespace {

constexpr const char* kAbout =
    "SIMD efficiency of a warp on its way through a control-flow graph: from branch "
    "probabilities,\n"
    "or of recorded threads. GRAPH is a DOT file, plain or as nvdisasm -bbcfg or -cfg writes it.";

constexpr const char* kEpilogue =
    "Examples:\n"
    "  cfg-sim run kernel.dot                              all branches equally probable\n"
    "  cfg-sim run kernel.dot --model profile.json --reconverge sass\n"
    "  cfg-sim replay graph.dot requests.trace             recorded threads, in lock step\n"
    "  cfg-sim profile graph.dot requests.trace -o profile.json\n"
    "\n"
    "Exit status: 0 done, 1 the graph has no end or the traces do not fit, 2 bad command line or\n"
    "input file.";

void add_graph(CLI::App* app, Options* options) {
  app->add_option("graph", options->graph_path, "DOT file")->required();
  app->add_option("--instructions", options->instructions_path,
                  "DOT file with the instructions of each block");
  app->add_option("--function", options->function,
                  "of a disassembly: where warps begin (its name, or a part of it)");
}

void add_machine(CLI::App* app, Options* options) {
  app->add_option("-w,--warp-size", options->run.warp_size, "lanes of a warp")
      ->check(CLI::Range(1u, kLanesMax))
      ->capture_default_str();
  app->add_option("--reconverge", options->reconvergence,
                  "where diverged lanes meet: ipdom, or sass for BSSY and BSYNC")
      ->check(CLI::IsMember({"ipdom", "sass"}))
      ->capture_default_str();
  app->add_flag("--exits-leave", options->run.post_dominators.exits_leave,
                "ipdom: lanes that end early keep nobody from meeting");
  app->add_flag("--prune", options->run.prune,
                "ipdom: edges that are never taken are no edges, so that lanes meet earlier");
  app->add_option("--steps-max", options->run.steps_max, "blocks after which a pass has no end");
  app->add_option("--json", options->json_path, "write the results as JSON ('-': standard output)");
  app->add_flag("--blocks", options->per_block, "also list what each block contributes");
  app->add_flag("-q,--quiet", options->quiet, "no progress on standard error, no table");
}

void add_model(CLI::App* app, Options* options) {
  app->add_option("-m,--model", options->model_path, "branch probabilities or a profile, JSON");
  app->add_option("--weights", options->weights, "of the model's classes: CLASS=WEIGHT,...");
  app->add_option("--assume", options->assume,
                  "model; equal: all branches equally probable (pessimistic); augmented: equal, "
                  "but what the model never takes is never taken")
      ->check(CLI::IsMember({"model", "equal", "augmented"}))
      ->capture_default_str();
}

void add_run(CLI::App* app, Options* options) {
  add_graph(app, options);
  add_model(app, options);
  add_machine(app, options);
  app->add_option("-n,--passes", options->run.passes, "passes through the graph")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}))
      ->capture_default_str();
  app->add_option("--half-width", options->run.half_width,
                  "stop once the 95% intervals reach no further than this to each side");
  app->add_option("--seed", options->run.seed, "of all that is drawn")->capture_default_str();
  app->add_option("-t,--threads", options->run.threads, "threads; the result does not depend on it")
      ->check(CLI::Range(1u, 256u))
      ->capture_default_str();
  app->add_flag("--exact", options->exact,
                "compute the ratio of sums as well (independent lanes, plain branches, ipdom)");
}

void add_replay(CLI::App* app, Options* options) {
  add_graph(app, options);
  app->add_option("traces", options->traces_path, "a thread a line: CLASS BLOCK BLOCK ...")
      ->required();
  add_machine(app, options);
  app->add_option("--weights", options->weights,
                  "draw warps of the recorded threads, by the weights of their classes: "
                  "CLASS=WEIGHT,...");
  app->add_option("--warps", options->warps, "to draw (1000 where --weights is given)");
  app->add_option("--class-rho", options->class_rho,
                  "correlation of the classes of a warp's lanes, when drawing")
      ->check(CLI::Range(0.0, 1.0));
  app->add_option("--seed", options->run.seed, "of the draws")->capture_default_str();
}

}  // namespace

ParseResult parse_options(int argc, char** argv, Options* out) {
  CLI::App app(kAbout, "cfg-sim");
  app.footer(kEpilogue);
  app.require_subcommand(1);
  out->run.threads = std::max(1u, std::thread::hardware_concurrency());
  CLI::App* run = app.add_subcommand("run", "draw what threads do, by a model");
  add_run(run, out);
  CLI::App* replay = app.add_subcommand("replay", "run recorded threads in lock step");
  add_replay(replay, out);
  CLI::App* profile = app.add_subcommand("profile", "make a model of recorded threads");
  add_replay(profile, out);
  profile->add_option("-o,--output", out->output_path, "the profile's file")->required();
  profile->add_flag("--mix-classes", out->mix_classes, "one class of threads, whatever they were");
  profile->add_flag("--plain", out->plain,
                    "only how often each branch goes where: no loops by iteration, no correlation");
  CLI::App* counters = app.add_subcommand("counters", "make a model of a profiler's counters");
  add_graph(counters, out);
  counters->add_option("counters", out->counters_path, "ncu's source page, as CSV")->required();
  counters->add_option("-o,--output", out->output_path, "the profile's file")->required();
  CLI::App* merge = app.add_subcommand("merge", "make classes of profiles of one class each");
  merge->add_option("profiles", out->profiles, "CLASS=FILE ...")->required();
  merge->add_option("--mixture", out->mixtures,
                    "FILE:CLASS=SHARE,... a profile of these together, for what a class does only "
                    "in the company of others; repeated: one after the other");
  merge->add_option("--rounds", out->rounds,
                    "CAPACITY:CLASS=SIZE,... of a buffer that a warp's lanes share: those whose "
                    "pieces do not fit are served in further rounds");
  merge->add_option("--graph", out->graph_path, "DOT file (needed for --mixture)");
  merge->add_option("--function", out->function, "as for the other commands");
  merge->add_option(
      "--like", out->likes,
      "CLASS=CLASS: the first does what the second does where nothing is known of it");
  merge->add_option("-o,--output", out->output_path, "the profile's file")->required();
  CLI::App* show = app.add_subcommand("show", "list blocks, post-dominators, loops and barriers");
  add_graph(show, out);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ParseResult::kShown : ParseResult::kRefused;
  }
  if (replay->parsed()) out->command = Command::kReplay;
  if (profile->parsed()) out->command = Command::kProfile;
  if (counters->parsed()) out->command = Command::kCounters;
  if (merge->parsed()) out->command = Command::kMerge;
  if (show->parsed()) out->command = Command::kShow;
  if (out->reconvergence == "sass") out->run.reconvergence = Reconvergence::kMachineCode;
  return ParseResult::kGo;
}

}  // namespace warpcache::simt
