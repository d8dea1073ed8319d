# SPDX-License-Identifier: Apache-2.0
"""docs/papers.md: what the five papers measured, and what measures it here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rendering import edge, edge_gpu, frames, gpu, hit_rates, nic_cache, nic_program, rtl, simt, ucx
from rendering.markdown import microseconds, note, percent, text_table, three
from rendering.registry import block
from rendering.rows import only, rows

# What is missing, by the letter that a row shows.
MISSING = {
    "N": "more runs through DPDK on a machine with a GPU: caps of a batch, TCP sets at the peak, fewer threads",
    "W": "power at the wall, prices",
    "A": "two hosts with RDMA cards, for the active messages of UCX",
    "R": "more of the pipeline in RTL: an allocator, the clock of 156.25 MHz",
    "B": "an FPGA board",
    "K": "memcached's own look-up",
    "O": "other GPUs: integrated ones, other generations",
    "S": "a script that measures it; no new part is needed",
}


@dataclass(frozen=True)
class Shown:
    number: str
    what: str
    theirs: str
    ours: str | Callable[[], str]
    how: str  # the command; nothing: not reproduced
    missing: str = ""  # letters of MISSING

    def state(self) -> str:
        if not self.how:
            return "no"
        return "part" if self.missing else "yes"


def gpu_rate(commit: str, ending: str, batch: int) -> float:
    return only(gpu.study(commit, ending)["rows"], batch=batch)["requests_per_s"] / 1e6


def energy() -> str:
    row = only(gpu.study(gpu.GETS, "--passes 10 --batches 65536")["rows"], batch=65536)
    return f"{row['requests_per_j'] / 1e6:.2f} M/J, GPU alone"


def beside(cut: str, launches: int, way: str) -> dict:
    found = [
        row
        for one, row in gpu.background_rows()
        if one["offered_per_s"] == 4e6
        and gpu.way_of(one) == way
        and (row.get("background_cut"), row.get("background_launches")) == (cut, launches)
    ]
    return found[0]


def cutting() -> str:
    one, many = beside("time", 1, "high priority"), beside("time", 16, "high priority")
    slower = many["background_ms"] / many["background_alone_ms"] - 1
    return f"{slower:+.0%}, {one['batch_max_us'] / many['batch_max_us']:.0f} times shorter"


def offline() -> str:
    row = only(gpu.study(gpu.GETS, "--passes 10 --batches 65536")["rows"], batch=65536)
    return f"{row['requests_per_s'] / 1e6:.0f} M/s, {microseconds(row['batch_mean_us'])}"


def best_rate() -> str:
    return f"{gpu_rate(gpu.GETS, '--passes 10 --batches 65536', 65536):.0f} M/s offline"


def with_ping() -> str:
    ping = gpu_rate(gpu.KEYS, "--ping --batches 4096,65536", 65536)
    return f"{gpu_rate(gpu.GETS, '--passes 10 --batches 65536', 65536):.0f} and {ping:.0f} M/s"


def ping_latency() -> str:
    get = only(gpu.study(gpu.GETS, "--passes 10 --batches 65536")["rows"], batch=65536)
    ping = only(gpu.study(gpu.KEYS, "--ping --batches 4096,65536")["rows"], batch=65536)
    return f"mean {microseconds(get['batch_mean_us'])}; {microseconds(ping['batch_mean_us'])}"


def by_batch() -> str:
    times = gpu.split_times()["work"]
    rate = {size: size / times[size] for size in (1024, 65536)}
    return f"{three(rate[65536] / rate[1024])} times from 1,024 to 65,536"


def bus_share() -> str:
    times = gpu.split_times()
    return percent(1 - times["work"][65536] / times["copy engines"][65536], 0) + " at 65,536"


def views() -> str:
    return ", ".join(percent(simt.efficiency("3.10", view=view)) for view in ("actual", "pessimistic", "augmented"))


def edges() -> str:
    return ", ".join(percent(simt.efficiency("3.9", view=v)) for v in ("pessimistic", "augmented", "edge removed"))


def ways() -> str:
    found = rows(hit_rates.FILE, experiment="ways")
    each = (hit_rates.misses(found, cache=f"set:{n}:lru", capacity=8 * hit_rates.MILLION) for n in (1, 16))
    return ", ".join(percent(one, 2) for one in each)


def least_share(stream: str) -> str:
    found = rows(hit_rates.FILE, experiment="tables", stream=stream)
    return percent(min(hit_rates.share_of_chaining(found, "set:16:lru", size) for size in hit_rates.SIZES))


def tables(stream: str) -> str:
    return f"{least_share(stream)} at least"


def nic_misses() -> str:
    return percent(nic_cache.miss("replacement", workload="a", replacement="lru", ways=8, ratio=1 / 16))


def nic_gains() -> str:
    return ", ".join(f"{nic_cache.gain(workload):.2f}" for workload in "abcd")


def nic_rates() -> str:
    row = only(nic_cache.runs("replacement", workload="a", replacement="lru", ways=8, ratio=1 / 16))
    low, high = row["throughput_as_printed"]
    return f"{low / 1000:.0f} to {high / 1000:.0f} k/s"


def nic_allocate() -> str:
    return nic_cache.spread(nic_cache.without_allocate("allocate", "c")) + " points"


def nic_tags() -> str:
    found = nic_cache.runs("tags", call=0, ratio=1 / 4)
    each = [only(found, tag_bits=bits)["miss_rate"] for bits in (17, 7)]
    return f"{100 * (each[1] - each[0]):.1f} points at 1/4"


def both_readings() -> str:
    return f"{percent(simt.efficiency('2.3'))}; {percent(simt.efficiency('2.3 without H'))} without H"


RUN = "`gpu {}`"
FRAMES = "`frames {}`"
HIT, NIC = "`hit {}`", "`nic {}`"
EDGE = "`edge {}`"
EVENTS = "`events {}`"
SIMT = "`simt`"
RTL = "`rtl/measure`"

MEMCACHEDGPU = (
    Shown("figure 2", "misses by ways, 8 M entries", "21.2, 10.4% (1, 16)", ways, HIT.format("ways")),
    Shown("table 3", "GET, keys of 16 to 128 B", "12.9, 11.1, 8.7, 6.0 M/s", frames.rates_by_key, FRAMES.format("keys")),
    Shown("figure 3", "latency by rate", "p95 1.1 ms at 13 M/s", frames.at_13, FRAMES.format("rates"), "N"),
    Shown("figure 4", "power by rate", "62 k/J, the machine", frames.power_at_peak, FRAMES.format("power"), "W"),
    Shown("figure 5", "keys; 100, 85% hits", "1% below the peak", frames.hit_shares, FRAMES.format("mixtures")),
    Shown("table 4", "GET and SET at once", "7 M/s, 0.3% SET", frames.tcp_sets_beside, FRAMES.format("tcp-sets"), "N"),
    Shown("figure 6", "mean, beside other work", "under 1.5 ms (16)", frames.beside_other_work, FRAMES.format("background")),
    Shown("figure 7", "its cost, 16 launches", "+50%, 18 times shorter", cutting, RUN.format("consolidation")),
    Shown("table 5", "offline study", "27.5 to 28.3 M/s, 264 us", offline, RUN.format("get batches"), "WO"),
    Shown("table 6", "against other work", "13 M/s, 28.3 offline", best_rate, RUN.format("get"), "W"),
)
RDMA = (
    Shown("figure 3", "latency by size, cluster A", "4 times below 10GigE", ucx.gain, "bench/ucx/run", "A"),
    Shown("figure 4", "the same, cluster B", "get of 4 KB in 12 us", ucx.get_4k, "bench/ucx/run", "A"),
    Shown("figure 5", "set and get mixed", "4 times below 10GigE", ucx.mixed, "bench/ucx/run", "A"),
    Shown("figure 6", "rate by clients", "1.8 M/s", ucx.best_rate, "bench/ucx/run", "A"),
)
DISSERTATION = (
    Shown("figure 2.3", "six threads in lock step", "about 46%", both_readings, SIMT),
    Shown("figure 3.2", "SIMD efficiency", "40%; 2.7 times lower", views, SIMT),
    Shown("figure 3.5", "speed-up over one core", "33 times, without bus", "", "", "SO"),
    Shown("figure 3.6", "rate by batch size", "6 to 7 times", by_batch, RUN.format("split"), "S"),
    Shown("figure 3.7", "speed-up by batch size", "flat from 40,000", "", "", "SO"),
    Shown("figure 3.8", "bus in the time of a batch", "over 98% at 23,040", bus_share, RUN.format("split")),
    Shown("figure 3.9", "graph with an error branch", "not given", edges, SIMT, "K"),
    Shown("figure 3.10", "MUMmer, Ray Tracer", "more with 1 to 4 lanes", edge.other_lanes, EDGE.format("lanes")),
    Shown("figure 3.11", "L1 misses by cache", "10 a thousand at 256 KB", edge.misses_at_256, EDGE.format("l1")),
    Shown("figure 3.12", "IPC by cache", "1 to 12% of the peak", edge.peak_shares, EDGE.format("l1")),
    Shown("figure 3.13", "requests per instruction", "7 to 23", "", "", "S"),
    Shown("figure 3.14", "performance by warp size", "-18% from 8 to 64", edge.wide_warps, EDGE.format("warp-size")),
    Shown("figure 4.1", "time of one GET", "a breakdown", "in lab notes", "`perf`", "S"),
    Shown("figure 4.2", "kernel against user space", "90% kernel", "in lab notes", "`perf`", "S"),
    Shown("figure 4.7a", "five tables, Zipf", "96.6% at least", lambda: tables("zipf"), HIT.format("tables")),
    Shown("figure 4.7b", "the same, Latest", "", lambda: tables("latest-updates"), HIT.format("tables")),
    Shown("figure 4.7c", "the same, uniform", "96.6% at least", lambda: tables("uniform"), HIT.format("tables poisson")),
    Shown("figure 4.8", "misses by ways", "21.2, 10.4% (1, 16)", ways, HIT.format("ways")),
    Shown("figure 4.9", "kernel bypass", "0.93 to 1.82 M/s", frames.past_the_kernel, FRAMES.format("sockets"), "N"),
    Shown("table 4.3", "as table 3 of 2015", "", frames.rates_by_key, FRAMES.format("keys")),
    Shown("figure 4.10", "as figure 3 of 2015", "", frames.at_13, FRAMES.format("rates"), "N"),
    Shown("figure 4.11", "as figure 4 of 2015", "", frames.power_at_peak, FRAMES.format("power"), "W"),
    Shown("figure 4.12", "as figure 5 of 2015", "", frames.hit_shares, FRAMES.format("mixtures")),
    Shown("table 4.4", "as table 4 of 2015", "", frames.tcp_sets_beside, FRAMES.format("tcp-sets"), "N"),
    Shown("figure 4.13", "as figure 6 of 2015", "", frames.beside_other_work, FRAMES.format("background")),
    Shown("figure 4.14", "as figure 7 of 2015", "", cutting, RUN.format("consolidation")),
    Shown("figure 4.15", "offline: GET, network only", "28.3 and 39 M/s", with_ping, RUN.format("get ping")),
    Shown("figure 4.16", "its latency", "mean 264 to 353 us", ping_latency, RUN.format("get ping"), "O"),
    Shown("figure 4.17", "its energy", "127 k/J, the machine", energy, RUN.format("get"), "W"),
    Shown("table 4.5", "as table 6 of 2015", "", best_rate, RUN.format("get"), "W"),
    Shown("figure 5.2", "SPEC2006 beside a GPU ping", "4.83 times slower ping", edge_gpu.server_loss, EVENTS.format("programs")),
    Shown("figure 5.3", "persistent against launches", "2.9 times; large 0.18", edge_gpu.product_times, EVENTS.format("power")),
    Shown("figure 5.9", "a warp context is free", "half of the cycles", edge.free_context, EDGE.format("alone")),
    Shown("figure 5.10", "registers in use", "60%", edge.registers_used, EDGE.format("alone")),
    Shown("figure 5.11", "stalls before preemption", "2,000 to 8,000 cycles", edge.stalls, EDGE.format("preempt")),
    Shown("figure 5.12", "the same, optimised", "50 to 220 cycles", edge.short_stalls, EDGE.format("preempt")),
    Shown("figure 5.13", "cost for other kernels", "small, short handlers", edge.costs, EDGE.format("interference")),
    Shown("figure 5.14", "cost of reserving", "85% with half the GPU", edge.half_reserved, EDGE.format("reserve")),
    Shown("figure 5.15", "run time of the handler", "100 to 200 times", edge.handler_times, EDGE.format("events")),
    Shown("figure 5.16", "turnaround of two kernels", "6 down to 1.15", edge.turnarounds, EDGE.format("events")),
    Shown("figure 5.17", "loads of a polling kernel", "-20%, 8 an interrupt", lambda: edge_gpu.loads_of("targeted"), EVENTS.format("counters")),
    Shown("figure 5.18", "instructions of it", "a curve", lambda: edge_gpu.instructions_of("targeted"), EVENTS.format("counters")),
)
NIC_CACHE = (
    Shown("figure 4", "keys of the first requests", "a curve", "a curve", NIC.format("patterns")),
    Shown("figure 5", "intervals of a key", "a curve", "a curve", NIC.format("patterns")),
    Shown("figure 6", "cumulative ratio of keys", "a curve", "a curve", NIC.format("patterns")),
    Shown("figure 7", "misses; A, LRU, 1/16", "about 60%", nic_misses, NIC.format("replacement")),
    Shown("figure 8", "small caches", "a curve", nic_misses, NIC.format("replacement short")),
    Shown("figure 9", "C without read-allocate", "over 10 points more", nic_allocate, NIC.format("allocate seeds long")),
    Shown("table 3", "LUTs, block memories", "60,314, 238", rtl.nic_cells, "`rtl/synth/run`", "RB"),
    Shown("table 4", "latencies", "9, 29, 87 us", nic_program.latencies, "bench/nic_cache/run", "B"),
    Shown("table 5", "rates, RTL simulation", "0.4 to 1.0 M hits/s", rtl.nic_rate, "`rtl/measure --nic`", "RB"),
    Shown("figure 13", "rate by mix; A, 1/16", "210 to 350 k/s", nic_rates, NIC.format("model")),
    Shown("figure 14", "latency gain; A, B, C, D", "2, 2, less, 3.5", nic_gains, NIC.format("hardware")),
    Shown("figure 15", "tags of 7 against 17 bits", "little more misses", nic_tags, NIC.format("tags")),
)
FPGA = (
    Shown("figure 3", "rate by packet size", "10 Gbit/s line rate", rtl.rates_by_size, RTL, "RB"),
    Shown("table 1", "rate, latency, power", "13.02 M/s, 3.5 to 4.5 us", rtl.rate_and_latency, RTL, "RBW"),
    Shown("figure 4", "power by rate", "about 50 W", "", "", "BW"),
)
PAPERS = {
    "memcachedgpu": ("MemcachedGPU (SoCC 2015)", 13, MEMCACHEDGPU),
    "rdma": ("Memcached over RDMA (ICPP 2011)", 6, RDMA),
    "dissertation": ("Hetherington's dissertation (2019)", 67, DISSERTATION),
    "nic-cache": ("NIC cache (JIP 2015)", 20, NIC_CACHE),
    "fpga": ("Line-rate memcached on an FPGA (HotCloud 2013)", 5, FPGA),
}


def lines_of(shown: tuple[Shown, ...]) -> str:
    lines = []
    for row in shown:
        ours = row.ours() if callable(row.ours) else row.ours
        lines.append((row.number, row.what, row.theirs, ours, row.state(), row.how, row.missing))
    return text_table(("", "what it shows", "the paper", "here", "state", "command", "missing"), lines)


def register() -> None:
    for name, (_, _, shown) in PAPERS.items():
        block(f"papers-{name}")(lambda shown=shown: lines_of(shown))


register()


@block("papers-count")
def count() -> str:
    lines, total = [], [0] * 5
    for title, all_of_them, shown in PAPERS.values():
        states = [row.state() for row in shown]
        cells = [all_of_them, len(shown), *(states.count(state) for state in ("yes", "part", "no"))]
        total = [a + b for a, b in zip(total, cells)]
        lines.append((title, *cells))
    lines.append(("all", *total))
    head = ("paper", "figures and tables", "show a measurement", "reproduced", "in part", "not")
    return text_table(head, lines)


@block("papers-missing")
def missing() -> str:
    used = "".join(row.missing for _, _, shown in PAPERS.values() for row in shown)
    lines = [(letter, note(text), used.count(letter)) for letter, text in MISSING.items()]
    return text_table(("", "what is missing", "rows"), lines)
