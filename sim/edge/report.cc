// SPDX-License-Identifier: Apache-2.0
#include "edge/report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace warpcache::edge_sim {
namespace {

using Json = nlohmann::ordered_json;

double per(double sum, uint64_t count) { return count == 0 ? 0 : sum / static_cast<double>(count); }
double per(uint64_t sum, uint64_t count) { return per(static_cast<double>(sum), count); }

void add_causes(const InterruptCounts& counts, Json* row) {
  const StallCauses& causes = counts.causes;
  Json& to = (*row)["causes"];
  to["pipeline"] = per(causes.pipeline, counts.preemptions);
  to["scoreboard"] = per(causes.scoreboard, counts.preemptions);
  to["load"] = per(causes.load, counts.preemptions);
  to["code_miss"] = per(causes.code_miss, counts.preemptions);
  to["barrier"] = per(causes.barrier, counts.preemptions);
  to["fence"] = per(causes.fence, counts.preemptions);
}

void add_event(const Options& options, const Setting& setting, const RunResult& result, Json* row) {
  const InterruptOptions& interrupts = setting.run.interrupts;
  (*row)["event"] = options.event;
  (*row)["event_scale"] = options.event_scale;
  (*row)["priority"] = setting.priority;
  (*row)["sms_reserved"] = interrupts.sms_reserved;
  (*row)["blocks_reserved"] = interrupts.blocks_reserved;
  (*row)["events"] = result.events;
  (*row)["event_cycles"] = result.event_cycles;
}

Json shares_of(const Histogram& histogram) {
  return {{"efficiency", histogram.efficiency}, {"shares", histogram.shares}};
}

}  // namespace

std::string run_line(const Options& options, const Setting& setting, const KernelTrace& trace,
                     const RunResult& result) {
  const RunOptions& run = setting.run;
  const SmCounts& sm = result.sm;
  const InterruptCounts& interrupts = result.interrupts;
  Json row;
  row["measure"] = "edge-sim";
  row["kernel"] = trace.name;
  row["machine"] = run.machine.name;
  row["scale"] = options.cases.scale;
  row["seed"] = options.cases.seed;
  row["warp_size"] = setting.warp_size;
  row["scheduler"] = run.machine.scheduler == Scheduler::kRoundRobin ? "rr" : "gto";
  row["memory"] = setting.memory;
  row["l1_bytes"] = run.machine.l1.bytes;
  row["l1_ways"] = run.machine.l1.ways;
  row["runs"] = run.runs;
  row["blocks"] = trace.ctas.size();
  row["cycles"] = result.cycles;
  row["instructions"] = result.instructions;
  row["ipc"] = result.ipc;
  row["lane_ipc"] = result.lane_ipc;
  row["l1_hit_ratio"] = result.l1_hit_ratio;
  row["l1_misses"] = result.l1.misses;
  row["l1_mpki"] = 1000 * per(result.l1.misses, sm.instructions);
  row["l2_hit_ratio"] = result.l2_sectors == 0 ? 0 : 1 - per(result.l2_misses, result.l2_sectors);
  row["code_miss_ratio"] = per(sm.code_misses, sm.code_accesses);
  row["free_context_share"] = per(sm.free_context_cycles, sm.busy_cycles);
  row["register_share"] = per(sm.register_cycles, sm.busy_cycles) / run.machine.registers;
  row["context_share"] = per(sm.context_cycles, sm.busy_cycles) / run.machine.warps;
  if (run.interrupts.event != nullptr) add_event(options, setting, result, &row);
  if (run.interrupts.period == 0) return row.dump() + "\n";
  row["period"] = run.interrupts.period;
  row["delay"] = run.interrupts.delay;
  row["victim"] = setting.victim;
  row["flush"] = setting.flush;
  row["always"] = run.preempt.always;
  row["isr_priority"] = run.preempt.isr_priority;
  row["isr_lines"] = run.preempt.code_lines_reserved;
  row["interrupts"] = interrupts.raised;
  row["lost"] = interrupts.lost;
  row["served"] = interrupts.served;
  row["preemptions"] = interrupts.preemptions;
  row["preempt_cycles"] = per(interrupts.preempt_cycles, interrupts.preemptions);
  row["preempt_max"] = interrupts.preempt_max;
  row["wait_cycles"] = per(interrupts.wait_cycles, interrupts.served);
  row["isr_cycles"] = per(interrupts.isr_cycles, interrupts.served);
  row["replayed_loads"] = interrupts.replayed_loads;
  add_causes(interrupts, &row);
  return row.dump() + "\n";
}

std::string run_table(const std::vector<Outcome>& outcomes) {
  bool interrupts = false, events = false;
  for (const Outcome& one : outcomes) {
    interrupts |= one.setting.run.interrupts.period != 0;
    events |= one.setting.run.interrupts.event != nullptr;
  }
  std::string text = fmt::format("{:10} {:>10} {:>6} {:>6} {:>6} {:>6}", "kernel", "cycles", "IPC",
                                 "L1", "free", "regs");
  if (interrupts)
    text += fmt::format(" {:>9} {:>9} {:>7} {:>7} {:>9} {:>9} {:>7}", "victim", "flush", "period",
                        "served", "preempted", "stall", "ISR");
  if (events) text += fmt::format(" {:>3} {:>6} {:>9}", "pri", "events", "each");
  text += "\n";
  for (const Outcome& one : outcomes) {
    const RunResult& result = one.result;
    const InterruptCounts& counts = result.interrupts;
    text += fmt::format(
        "{:10} {:10} {:6.3f} {:6.3f} {:6.3f} {:6.3f}", one.setting.kernel, result.cycles,
        result.ipc, result.l1_hit_ratio, per(result.sm.free_context_cycles, result.sm.busy_cycles),
        per(result.sm.register_cycles, result.sm.busy_cycles) / one.setting.run.machine.registers);
    if (interrupts) {
      text += fmt::format(" {:>9} {:>9} {:7} {:7} {:9} {:9.1f} {:7.0f}", one.setting.victim,
                          one.setting.flush, one.setting.run.interrupts.period, counts.served,
                          counts.preemptions, per(counts.preempt_cycles, counts.preemptions),
                          per(counts.isr_cycles, counts.served));
    }
    if (events)
      text += fmt::format(" {:>3} {:6} {:9.0f}", one.setting.priority, result.events,
                          result.event_cycles);
    text += "\n";
  }
  return text;
}

std::string lanes_line(const Options& options, const std::string& kernel, const Lanes& lanes) {
  Json row;
  row["measure"] = "edge-sim-lanes";
  row["kernel"] = kernel;
  row["scale"] = options.cases.scale;
  row["seed"] = options.cases.seed;
  row["recorded"] = shares_of(lanes.recorded);
  row["actual"] = shares_of(lanes.actual);
  row["equal"] = shares_of(lanes.equal);
  row["augmented"] = shares_of(lanes.augmented);
  row["profiled"] = shares_of(lanes.profiled);
  return row.dump() + "\n";
}

std::string lanes_table(const std::vector<std::pair<std::string, Lanes>>& all) {
  std::string text = fmt::format("{:10} {:>9} {:>7} {:>7} {:>10} {:>9}\n", "kernel", "recorded",
                                 "actual", "equal", "augmented", "profiled");
  for (const auto& [kernel, lanes] : all) {
    text += fmt::format("{:10} {:8.1f}% {:6.1f}% {:6.1f}% {:9.1f}% {:8.1f}%\n", kernel,
                        100 * lanes.recorded.efficiency, 100 * lanes.actual.efficiency,
                        100 * lanes.equal.efficiency, 100 * lanes.augmented.efficiency,
                        100 * lanes.profiled.efficiency);
  }
  return text;
}

}  // namespace warpcache::edge_sim
