// SPDX-License-Identifier: Apache-2.0
#include "edge/options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>

namespace warpcache::edge_sim {
namespace {

constexpr const char* kAbout =
    "Simulates the SMs of a GPU that serve interrupts with warps, as in chapter 5 of "
    "\"Architectural\n"
    "Support for Networking on GPUs\" (EDGE). docs/simulators/edge-sim.md explains it.";

constexpr const char* kEpilogue =
    "Lists are separated by commas; every combination is run.\n"
    "\n"
    "Examples:\n"
    "  edge-sim run -k matmul,conv --period 10000 --victim oldest,newest --flush none,all\n"
    "  edge-sim run -k conv --machine gem5-4 --period 20000 --event get --priority p1,p2\n"
    "  edge-sim run -k get --machine gpgpu-sim --l1 8192:8,32768:8,1048576:0 --memory "
    "full,no-latency\n"
    "  edge-sim run --ptx own.ptx --grid 64 --block 256 --args floats:16384,zeros:65536,int:16384\n"
    "  edge-sim lanes -k get-mixed,strings,rays\n"
    "\n"
    "Exit status: 0 done, 1 a run was given up or a kernel's output is wrong, 2 bad command line "
    "or\n"
    "input file.";

const Flush kFlushes[] = {
    {"none", false, false, false, false},    {"barrier", true, false, false, false},
    {"priority", false, true, false, false}, {"buffer", false, false, true, false},
    {"replay", false, false, false, true},   {"all", true, true, true, true},
};

struct VictimName {
  const char* name;
  Victim victim;
};
constexpr VictimName kVictims[] = {{"dedicated", Victim::kDedicated},
                                   {"reserved", Victim::kReserved},
                                   {"free", Victim::kFree},
                                   {"oldest", Victim::kOldest},
                                   {"newest", Victim::kNewest}};

template <typename Items>
auto* find_named(Items& items, const std::string& name) {
  const auto found = std::find_if(std::begin(items), std::end(items),
                                  [&](const auto& one) { return name == one.name; });
  return found == std::end(items) ? nullptr : &*found;
}

// The library takes -4 for the largest number but three.
const CLI::Validator kNotNegative(
    [](std::string& text) { return text.starts_with('-') ? text + " is below 0" : ""; }, "");

void add_common(CLI::App* app, Options* options, std::string* machine) {
  Lists& lists = options->lists;
  CLI::Option* const kernels =
      app->add_option("-k,--kernel", lists.kernels, "see edge-sim kernels; none: interrupts alone")
          ->delimiter(',');
  app->add_option("--scale", options->cases.scale, "times the kernel's usual work");
  app->add_option("--blocks", options->cases.blocks_max,
                  "only the first; 0: all. The output is not checked then")
      ->check(kNotNegative);
  app->add_option("--seed", options->cases.seed, "of the kernel's input")->check(kNotNegative);
  app->add_option("--warp-size", lists.warp_sizes, "threads, 1 to 64")
      ->delimiter(',')
      ->check(CLI::Range(1u, 64u));
  app->add_option("--machine", *machine, "gem5, gem5-4, gem5-16, gpgpu-sim, h100");
  CLI::Option* const ptx =
      app->add_option("--ptx", options->own.path, "a kernel of your own, as nvcc --ptx writes it");
  ptx->excludes(kernels);
  app->add_option("--entry", options->own.entry, "which kernel of that file")->needs(ptx);
  app->add_option("--grid", options->own.grid, "its blocks, X or X:Y")->needs(ptx);
  app->add_option("--block", options->own.block, "its threads a block, X or X:Y")->needs(ptx);
  app->add_option(
         "--args", options->own.arguments,
         "its parameters: floats:COUNT, ints:COUNT:BELOW, zeros:BYTES, int:N, long:N, float:X")
      ->delimiter(',')
      ->needs(ptx);
  app->add_option("--registers", options->own.registers, "a thread, as ptxas reports; 0: 32")
      ->needs(ptx)
      ->check(CLI::Range(0u, 255u));
  app->add_option("--json", options->json_path,
                  "append a JSON line a run there (-: standard output, without tables)");
  app->add_flag("-q,--quiet", options->quiet, "no progress on standard error");
}

void add_interrupts(CLI::App* app, Options* options) {
  Lists& lists = options->lists;
  app->add_option("--period", lists.periods, "cycles from one interrupt to the next; 0: none")
      ->delimiter(',')
      ->check(kNotNegative);
  app->add_option("--victim", lists.victims, "dedicated, reserved, free, oldest, newest")
      ->delimiter(',');
  app->add_option("--flush", lists.flushes,
                  "what shortens preemption: none, barrier, priority, buffer, replay, all")
      ->delimiter(',');
  app->add_flag("--always", options->always, "preempt even where a context is free");
  app->add_flag("!--isr-last", options->isr_first,
                "the service routine has no priority over warps");
  app->add_option("--delay", lists.delays, "iterations of the service routine's loop")
      ->delimiter(',')
      ->check(CLI::Range(0u, 1'000'000u));
  app->add_option("--isr-lines", lists.code_lines_reserved,
                  "of the instruction cache, reserved for the service routine")
      ->delimiter(',')
      ->check(kNotNegative);
  app->add_option("--event", options->event, "a kernel that every service routine launches");
  app->add_option("--event-scale", options->event_scale, "times its usual work");
  app->add_option("--priority", lists.priorities, "of event kernels: p1, p2")->delimiter(',');
  app->add_option("--reserve-sms", lists.sms_reserved, "for event kernels")
      ->delimiter(',')
      ->check(kNotNegative);
  app->add_option("--reserve-blocks", lists.blocks_reserved, "of each SM, for event kernels")
      ->delimiter(',')
      ->check(kNotNegative);
}

void add_machine(CLI::App* app, Options* options) {
  Lists& lists = options->lists;
  app->add_option("--scheduler", lists.schedulers, "gto, rr")->delimiter(',');
  app->add_option("--memory", lists.memories, "full, no-latency, no-stalls")->delimiter(',');
  app->add_option("--l1", lists.l1s, "BYTES[:WAYS], 0 bytes: none, 0 ways: fully associative")
      ->delimiter(',');
  app->add_option("--runs", options->runs, "of the kernel, one after the other")
      ->check(CLI::Range(1u, 1000u));
}

bool known(const std::string& what, const std::string& name, bool is_known, std::string* why) {
  if (!is_known) *why = "no " + what + " " + name;
  return is_known;
}

bool set_l1(const std::string& text, Machine* machine, std::string* why) {
  unsigned bytes = 0, ways = machine->l1.ways;
  char rest = 0;
  const int read = std::sscanf(text.c_str(), "%u:%u%c", &bytes, &ways, &rest);
  if (read < 1 || read > 2 ||
      (read == 1 && text.find_first_not_of("0123456789") != std::string::npos)) {
    *why = "an L1 of " + text + " is not BYTES[:WAYS]";
    return false;
  }
  machine->l1.bytes = bytes;
  machine->l1.ways = ways;
  return true;
}

bool fill(Setting* setting, std::string* why) {
  const Flush* const flush = find_named(kFlushes, setting->flush);
  const VictimName* const victim = find_named(kVictims, setting->victim);
  RunOptions& run = setting->run;
  const std::string& scheduler = setting->scheduler;
  if (!known("victim", setting->victim, victim != nullptr, why) ||
      !known("way to flush", setting->flush, flush != nullptr, why) ||
      !known("scheduler", scheduler, scheduler.empty() || scheduler == "gto" || scheduler == "rr",
             why) ||
      !known("memory", setting->memory,
             setting->memory == "full" || setting->memory == "no-latency" ||
                 setting->memory == "no-stalls",
             why) ||
      !known("priority", setting->priority, setting->priority == "p1" || setting->priority == "p2",
             why)) {
    return false;
  }
  Machine& machine = run.machine;
  if (machine.lanes != 0) {
    machine.alu_interval = (setting->warp_size + machine.lanes - 1) / machine.lanes;
    machine.special_interval *= machine.alu_interval;
    machine.warps = machine.warps * 32 / setting->warp_size;
  }
  run.preempt.victim = victim->victim;
  run.preempt.barrier_skip = flush->barrier_skip;
  run.preempt.victim_priority = flush->victim_priority;
  run.preempt.flush_buffer = flush->flush_buffer;
  run.preempt.replay_loads = flush->replay_loads;
  if (!scheduler.empty())
    run.machine.scheduler =
        scheduler == "rr" ? Scheduler::kRoundRobin : Scheduler::kGreedyThenOldest;
  if (setting->memory == "no-latency") run.machine.memory = MemoryModel::kNoLatency;
  if (setting->memory == "no-stalls") run.machine.memory = MemoryModel::kNoStalls;
  run.interrupts.priority = setting->priority == "p1" ? Priority::kP1 : Priority::kP2;
  if (!setting->l1.empty() && !set_l1(setting->l1, &run.machine, why)) return false;
  *why = check_machine(run.machine);
  return why->empty();
}

// Every element of `list` in each of the settings so far.
template <typename T, typename Set>
void multiply(const std::vector<T>& list, std::vector<Setting>* all, Set set) {
  if (list.empty()) return;
  std::vector<Setting> more;
  for (const Setting& one : *all) {
    for (const T& value : list) {
      more.push_back(one);
      set(more.back(), value);
    }
  }
  *all = std::move(more);
}

}  // namespace

bool combinations(const Options& options, std::vector<Setting>* out, std::string* why) {
  const Lists& lists = options.lists;
  Setting base{};
  base.run.machine = options.machine;
  base.run.preempt.always = options.always;
  base.run.preempt.isr_priority = options.isr_first;
  base.run.runs = options.runs;
  *out = {base};
  const std::vector<std::string> own = {"own"};
  multiply(options.own.path.empty() ? lists.kernels : own, out,
           [](Setting& to, const std::string& from) { to.kernel = from; });
  multiply(lists.warp_sizes, out, [](Setting& to, uint32_t from) { to.warp_size = from; });
  multiply(lists.schedulers, out,
           [](Setting& to, const std::string& from) { to.scheduler = from; });
  multiply(lists.memories, out, [](Setting& to, const std::string& from) { to.memory = from; });
  multiply(lists.l1s, out, [](Setting& to, const std::string& from) { to.l1 = from; });
  multiply(lists.periods, out, [](Setting& to, uint64_t from) { to.run.interrupts.period = from; });
  multiply(lists.delays, out, [](Setting& to, uint32_t from) { to.run.interrupts.delay = from; });
  multiply(lists.code_lines_reserved, out,
           [](Setting& to, uint32_t from) { to.run.preempt.code_lines_reserved = from; });
  multiply(lists.priorities, out, [](Setting& to, const std::string& from) { to.priority = from; });
  multiply(lists.sms_reserved, out,
           [](Setting& to, uint32_t from) { to.run.interrupts.sms_reserved = from; });
  multiply(lists.blocks_reserved, out,
           [](Setting& to, uint32_t from) { to.run.interrupts.blocks_reserved = from; });
  multiply(lists.victims, out, [](Setting& to, const std::string& from) { to.victim = from; });
  multiply(lists.flushes, out, [](Setting& to, const std::string& from) { to.flush = from; });
  return std::all_of(out->begin(), out->end(), [&](Setting& one) { return fill(&one, why); });
}

ParseResult parse_options(int argc, char** argv, Options* out) {
  std::string machine = "gem5";
  CLI::App app(kAbout, "edge-sim");
  app.footer(kEpilogue);
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default();
  CLI::App* const run = app.add_subcommand("run", "run kernels, with interrupts or without");
  CLI::App* const lanes = app.add_subcommand(
      "lanes", "how many lanes of kernels' warps work, and what branch probabilities say");
  CLI::App* const kernels = app.add_subcommand("kernels", "the named kernels");
  add_common(run, out, &machine);
  add_machine(run, out);
  add_interrupts(run, out);
  add_common(lanes, out, &machine);
  lanes->add_option("--passes", out->passes, "drawn for each estimate")
      ->check(CLI::Range(uint64_t{10}, uint64_t{10'000'000}));
  lanes->add_option("--graph", out->graph_path,
                    "write the last kernel's control-flow graph for cfg-sim");
  lanes->add_option("--traces", out->traces_path, "and its threads");
  try {
    app.parse(argc, argv);
    std::string why;
    if (!find_machine(machine, &out->machine, &why)) throw CLI::ValidationError("--machine", why);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ParseResult::kShown : ParseResult::kRefused;
  }
  if (lanes->parsed()) out->command = Command::kLanes;
  if (kernels->parsed()) out->command = Command::kKernels;
  return ParseResult::kRun;
}

}  // namespace warpcache::edge_sim
