# SPDX-License-Identifier: Apache-2.0
"""Tables of edge-sim (sim/edge), beside the dissertation's values and a GPU's."""

from __future__ import annotations

from dataclasses import dataclass

from rendering.markdown import percent, table, three
from rendering.registry import block, plot
from rendering.rows import Rows, only, pick, rows, source

FILE = "edge_sim"
GPU_FILE = "edge_sim_gpu"
FLUSHES = ("none", "barrier", "priority", "buffer", "replay", "all")
FLUSH_NAMES = {
    "none": "none",
    "barrier": "barrier skip",
    "priority": "victim's priority",
    "buffer": "i-buffer flush",
    "replay": "load replay",
    "all": "all",
}
CAUSES = ("pipeline", "scoreboard", "load", "code_miss", "barrier", "fence")


def runs(experiment: str, **wanted: object) -> Rows:
    found = rows(FILE, experiment=experiment)
    return pick([row for row in found if row["measure"] != "provenance"], **wanted)


def from_experiments(*names: str) -> str:
    return source([row for row in rows(FILE, measure="provenance") if row["experiment"] in names], FILE)


def names(found: Rows) -> list[str]:
    return list(dict.fromkeys(row["kernel"] for row in found))


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def stall(experiment: str, victim: str, flush: str) -> float:
    """Cycles until a victim has left; mean over the kernels, as the dissertation's."""
    return mean([row["preempt_cycles"] for row in runs(experiment, victim=victim, flush=flush)])


def reduction(experiment: str, victim: str) -> float:
    return stall(experiment, victim, "none") / stall(experiment, victim, "all")


@block("edge-sim-papers")
def against_dissertation() -> str:
    alone = runs("alone")
    lines = [
        ("figure 5.9: a context is free, mean", "about 50%", percent(mean([row["free_context_share"] for row in alone]))),
        ("figure 5.10: registers in use, mean", "about 60%", percent(mean([row["register_share"] for row in alone]))),
        ("figure 5.11: preemption, oldest, cycles", "about 2,000", f"{stall('preempt', 'oldest', 'none'):,.0f}"),
        ("the same, newest", "about 8,000", f"{stall('preempt', 'newest', 'none'):,.0f}"),
        ("figure 5.12: with all short cuts, oldest", "50", three(stall("preempt", "oldest", "all"))),
        ("the same, newest", "220", three(stall("preempt", "newest", "all"))),
        ("times shorter: oldest, newest", "35.9, 33.7", f"{reduction('preempt', 'oldest'):.0f}, {reduction('preempt', 'newest'):.0f}"),
    ]
    return table(("", "the dissertation", "edge-sim"), lines) + "\n\n" + from_experiments("alone", "preempt")


@block("edge-sim-alone")
def contexts_and_registers() -> str:
    lines = [
        (row["kernel"], percent(row["free_context_share"]), percent(row["register_share"]), f"{row['ipc']:.3f}")
        for row in runs("alone")
    ]
    return table(("kernel", "a context is free", "registers in use", "IPC"), lines) + "\n\n" + from_experiments("alone")


@block("edge-sim-preempt")
def short_cuts() -> str:
    lines = []
    for flush in FLUSHES:
        cells = [f"{stall('preempt', victim, flush):,.1f}" for victim in ("oldest", "newest")]
        lines.append((FLUSH_NAMES[flush], *cells))
    for name, experiment, flush in (("round robin: none", "round-robin", "none"), ("round robin: all", "round-robin", "all")):
        lines.append((name, *(f"{stall(experiment, victim, flush):,.1f}" for victim in ("oldest", "newest"))))
    return table(("cycles, mean over the kernels", "oldest", "newest"), lines) + "\n\n" + from_experiments("preempt", "round-robin")


@block("edge-sim-causes")
def causes() -> str:
    lines = []
    for victim in ("oldest", "newest"):
        for row in runs("preempt", victim=victim, flush="none"):
            cells = (f"{row['causes'][cause]:,.0f}" for cause in CAUSES)
            lines.append((f"{row['kernel']}, {victim}", f"{row['preempt_cycles']:,.0f}", *cells))
    head = ("kernel, victim", "cycles", "pipeline", "scoreboard", "load", "code miss", "barrier", "fence")
    return table(head, lines) + "\n\n" + from_experiments("preempt")


def relative_ipc(victim: str, period: int, delay: int) -> float:
    found = runs("interference", victim=victim, period=period, delay=delay)
    alone = {row["kernel"]: row["ipc"] for row in runs("interference") if "period" not in row}
    return mean([row["ipc"] / alone[row["kernel"]] for row in found])


@block("edge-sim-interference")
def interference() -> str:
    found = [row for row in runs("interference") if "period" in row]
    periods = sorted({row["period"] for row in found}, reverse=True)
    delays = sorted({row["delay"] for row in found})
    lines = []
    for victim in ("dedicated", "reserved", "oldest", "newest"):
        lines.append((victim, *(percent(relative_ipc(victim, period, delay)) for delay in delays for period in periods)))
    head = ("IPC beside interrupts", "slow, short", "fast, short", "slow, long", "fast, long")
    return table(head, lines) + "\n\n" + from_experiments("interference")


# In the order of the experiment's rows.
RESERVED = (
    "nothing",
    "1 SM of 16",
    "2 SMs",
    "4 SMs",
    "6 SMs",
    "8 SMs",
    "1 block an SM",
    "2 blocks an SM",
    "3 lines of the i-cache",
)


def reserving(what: str) -> int:
    """Cycles of the convolution."""
    return runs("reserve")[RESERVED.index(what)]["cycles"]


@block("edge-sim-reserve")
def reserved() -> str:
    base = reserving("nothing")
    lines = [(what, f"{reserving(what):,}", percent(base / reserving(what))) for what in RESERVED]
    return table(("reserved", "cycles", "speed"), lines) + "\n\n" + from_experiments("reserve")


def slowdowns(row: dict) -> tuple[float, float]:
    conv = reserving("nothing")
    get = only(runs("events"), kernel="get")["cycles"]
    return row["cycles"] / conv, row["event_cycles"] / get if row.get("events") else 0.0


def event_rows() -> Rows:
    return [row for row in runs("events") if "priority" in row]


@block("edge-sim-isr")
def routine_times() -> str:
    alone = only(runs("isr"), kernel="none", isr_lines=3, delay=0)["isr_cycles"]
    lines = []
    for row in event_rows():
        if row["sms_reserved"] or row["blocks_reserved"]:
            continue
        rate = "lower" if row["period"] == max(one["period"] for one in event_rows()) else "higher"
        kept = "yes" if row["isr_lines"] else "no"
        lines.append((f"{rate} rate, {row['priority'].upper()}", kept, f"{row['isr_cycles']:,.0f}", f"{row['isr_cycles'] / alone:.1f}"))
    return table((f"alone: {alone:.0f} cycles", "lines reserved", "cycles", "times"), lines) + "\n\n" + from_experiments("isr", "events")


@block("edge-sim-events")
def event_kernels() -> str:
    lines = []
    for row in event_rows():
        if not row["isr_lines"]:
            continue
        conv, get = slowdowns(row)
        kept = f"{row['sms_reserved']} SMs" if row["sms_reserved"] else f"{row['blocks_reserved']} blocks" if row["blocks_reserved"] else "nothing"
        rate = "lower" if row["period"] == max(one["period"] for one in event_rows()) else "higher"
        antt = f"{(conv + get) / 2:.2f}" if get else ""
        lines.append((f"{rate} rate, {row['priority'].upper()}, {kept}", row.get("events", 0), f"{conv:.2f}", f"{get:.2f}", antt))
    head = ("rate, priority, reserved", "GET kernels", "convolution", "a GET kernel", "ANTT")
    return table(head, lines) + "\n\n" + from_experiments("events", "reserve")


@block("edge-sim-lanes")
def lanes() -> str:
    lines = []
    for row in runs("lanes"):
        cells = (percent(row[view]["efficiency"]) for view in ("actual", "equal", "augmented", "profiled"))
        lines.append((row["kernel"], *cells, f"{row['actual']['efficiency'] / row['equal']['efficiency']:.1f}"))
    head = ("SIMD efficiency", "actual", "equal", "augmented", "measured probabilities", "actual / equal")
    return table(head, lines) + "\n\n" + from_experiments("lanes")


PEAK_LANES = 8  # of table 3.3's pipeline


def thread_mpki(row: dict) -> float:
    """L1 misses per 1,000 instructions of threads, as GPGPU-Sim counts them."""
    return row["l1_mpki"] * row["ipc"] / row["lane_ipc"]


@block("edge-sim-l1")
def l1_sizes() -> str:
    lines = []
    for row in runs("l1"):
        size = f"{row['l1_bytes'] // 1024} KB" if row["l1_bytes"] else "none"
        ways = "fully associative" if row["l1_ways"] == 0 and row["l1_bytes"] else ""
        name = {"full": f"{size} {ways}".strip(), "no-latency": "no latency", "no-stalls": "no stalls"}[row["memory"]]
        misses = (f"{row['l1_mpki']:.0f}", f"{thread_mpki(row):.1f}") if row["memory"] == "full" else ("", "")
        lines.append((name, *misses, percent(row["lane_ipc"] / PEAK_LANES)))
    return table(("L1", "misses per 1,000 instructions", "of threads", "of the peak IPC"), lines) + "\n\n" + from_experiments("l1")


@block("edge-sim-warp-size")
def warp_sizes() -> str:
    found = runs("warp-size")
    base = only(found, warp_size=8)["cycles"]
    lines = [(row["warp_size"], f"{row['cycles']:,}", f"{base / row['cycles']:.2f}") for row in found]
    return table(("warp size", "cycles", "speed, 8 is 1"), lines) + "\n\n" + from_experiments("warp-size")


def on_gpu(kernel: str, mode: str) -> tuple[float, dict]:
    """Cycles of the GPU (the median of its runs) and its counters."""
    timed = only(rows(GPU_FILE, measure="edge-gpu-kernel"), kernel=kernel, mode=mode)["block_and_sm_cycles"]
    counters = only(rows(GPU_FILE, measure="edge-gpu-counters"), case=kernel, mode=mode)
    return sorted(run[0 if mode == "alone" else 1] for run in timed)[len(timed) // 2], counters


def error(ours: float, theirs: float) -> str:
    return f"{100 * (ours / theirs - 1):+.1f}%"


@dataclass(frozen=True)
class Compared:
    """A kernel in the model and on the GPU."""

    name: str
    alone: bool
    cycles: float
    gpu_cycles: float
    instructions: float
    gpu_instructions: float
    hits: float
    gpu_hits: float

    def ipc_error(self) -> float:
        return (self.instructions / self.cycles) / (self.gpu_instructions / self.gpu_cycles) - 1


def compared() -> list[Compared]:
    found = []
    for row in runs("gpu"):
        mode = "alone" if row["call"] == 0 else "full"
        cycles, counters = on_gpu(row["kernel"], mode)
        loads = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld"
        found.append(
            Compared(
                row["kernel"] + (", full GPU" if mode == "full" else ""),
                mode == "alone",
                row["cycles"],
                cycles,
                row["instructions"],
                counters["smsp__inst_executed.sum"],
                row.get("l1_hit_ratio", 0),
                counters[f"{loads}_lookup_hit.sum"] / counters[f"{loads}.sum"],
            )
        )
    return found


ERROR_MAX = 0.15


@block("edge-sim-gpu")
def against_gpu() -> str:
    found = compared()
    lines = [
        (
            one.name,
            f"{one.cycles:,}",
            f"{one.gpu_cycles:,.0f}",
            error(one.cycles, one.gpu_cycles),
            error(one.instructions, one.gpu_instructions),
            f"{100 * one.ipc_error():+.1f}%",
            percent(one.hits),
            percent(one.gpu_hits),
        )
        for one in found
    ]
    alone = [one for one in found if one.alone]
    near = sum(abs(one.cycles / one.gpu_cycles - 1) <= ERROR_MAX for one in alone)
    near_ipc = sum(abs(one.ipc_error()) <= ERROR_MAX for one in alone)
    near_hits = sum(abs(one.hits - one.gpu_hits) <= ERROR_MAX * one.gpu_hits for one in alone)
    sums = (
        f"Within {percent(ERROR_MAX, 0)}, of the {len(alone)} kernels with a block an SM: cycles of {near}, "
        f"IPC of {near_ipc}, the L1's hit ratio of {near_hits}."
    )
    head = ("kernel", "cycles", "GPU", "error", "instructions", "IPC", "L1 hits", "GPU")
    gpu = source(rows(GPU_FILE, measure="provenance"), GPU_FILE)
    return table(head, lines) + f"\n\n{sums}\n\n" + from_experiments("gpu") + "\n" + gpu


# --- Values of docs/papers.md


def free_context() -> str:
    return percent(mean([row["free_context_share"] for row in runs("alone")]), 0)


def registers_used() -> str:
    return percent(mean([row["register_share"] for row in runs("alone")]), 0)


def stalls() -> str:
    return f"{stall('preempt', 'oldest', 'none'):,.0f}, {stall('preempt', 'newest', 'none'):,.0f} cycles"


def short_stalls() -> str:
    return f"{three(stall('preempt', 'oldest', 'all'))}, {three(stall('preempt', 'newest', 'all'))} cycles"


def costs() -> str:
    found = [row for row in runs("interference") if "period" in row]
    slow, short = max(row["period"] for row in found), min(row["delay"] for row in found)
    return f"{percent(1 - relative_ipc('oldest', slow, short))}, slow and short"


def half_reserved() -> str:
    return percent(reserving("nothing") / reserving("8 SMs"), 0)


def handler_times() -> str:
    alone = only(runs("isr"), kernel="none", isr_lines=3, delay=0)["isr_cycles"]
    found = [row["isr_cycles"] / alone for row in event_rows() if not row["isr_lines"]]
    return f"{min(found):.0f} to {max(found):.0f} times"


def turnarounds() -> str:
    found = [sum(slowdowns(row)) / 2 for row in event_rows() if row["isr_lines"] and row.get("events")]
    return f"{max(found):.1f} down to {min(found):.2f}"


def other_lanes() -> str:
    return ", ".join(percent(only(runs("lanes"), kernel=name)["actual"]["efficiency"]) for name in ("strings", "rays"))


def misses_at_256() -> str:
    return f"{thread_mpki(only(runs('l1'), l1_bytes=262144)):.0f} a thousand"


def peak_shares() -> str:
    found = [row["lane_ipc"] / PEAK_LANES for row in pick(runs("l1"), memory="full")]
    return f"{percent(min(found))} to {percent(max(found))}"


def wide_warps() -> str:
    found = runs("warp-size")
    return f"{100 * (only(found, warp_size=8)['cycles'] / only(found, warp_size=64)['cycles'] - 1):+.0f}%"


plot("edge-sim-preemption", lambda: runs("preempt") + runs("round-robin"), "edge", "preemption")
plot("edge-sim-memory", lambda: runs("l1") + runs("warp-size"), "edge", "memory")
