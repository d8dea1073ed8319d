# SPDX-License-Identifier: Apache-2.0
"""Tables of nic-cache-sim (sim/nic_cache)."""

from __future__ import annotations

import sys

from rendering.markdown import percent, table
from rendering.registry import block, plot
from rendering.rows import REPO_ROOT, Rows, only, pick, rows, source

sys.path[1:1] = [str(REPO_ROOT / "sim" / "nic_cache")]

from experiments import PAPER_ENTRY_BITS, PARTS, RECORDS  # noqa: E402, F401 (the plots use them)

FILE = "nic_cache_sim"


def of(found: Rows, experiment: str) -> Rows:
    return [row for row in found if row["experiment"] == experiment and row["measure"] != "provenance"]


def runs(experiment: str, **wanted: object) -> Rows:
    return pick(of(rows(FILE), experiment), **wanted)


def from_experiments(*names: str) -> str:
    heads = [row for row in rows(FILE, measure="provenance") if row["experiment"] in names]
    return source(heads, FILE)


def miss(experiment: str, **wanted: object) -> float:
    return only(runs(experiment, **wanted))["miss_rate"]


def spread(values: list[float]) -> str:
    """From the least to the most, in percentage points."""
    low, high = 100 * min(values), 100 * max(values)
    return f"{low:.1f}" if f"{low:.1f}" == f"{high:.1f}" else f"{low:.1f} to {high:.1f}"


def without_allocate(experiment: str, workload: str) -> list[float]:
    """What leaving out read-allocate costs, for each size."""
    found = runs(experiment, workload=workload, replacement="lru")
    return [
        only(found, allocate="none", ratio=1 / part)["miss_rate"]
        - only(found, allocate="safe", ratio=1 / part)["miss_rate"]
        for part in PARTS
    ]


def gain(workload: str) -> float:
    found = runs("hardware", workload=workload)
    return max(row["improvement_as_printed"] for row in found)


@block("nic-cache-papers")
def against_paper() -> str:
    sixteenth = only(runs("replacement", workload="a", replacement="lru", ways=8, ratio=1 / 16))
    short = pick(runs("short", workload="a", replacement="lru", ways=8, ratio=1 / 16), call=0)
    d = [percent(miss("replacement", workload="d", replacement="lru", ways=8, ratio=1 / part)) for part in PARTS]
    low, high = sixteenth["throughput_as_printed"]
    lines = [
        ("figure 7 (b): A, LRU, 8 ways, size 1/16, GETs that miss", "around 60%", percent(sixteenth["miss_rate"])),
        ("the same, a quarter of the requests", "", percent(short[0]["miss_rate"]) if short else ""),
        ("figure 7: D, from 1/32 to 1/2", "a straight line", ", ".join(d)),
        ("figure 9: C without read-allocate, points more", "over 10", spread(without_allocate("allocate", "c"))),
        ("A likewise", "a few", spread(without_allocate("allocate", "a"))),
        ("B likewise", "a few", spread(without_allocate("allocate", "b"))),
        ("D likewise", "a few", spread(without_allocate("allocate", "d"))),
        ("figure 13 (d): A, 1/16, operations/s", "210,000 to 350,000", f"{low:,.0f} to {high:,.0f}"),
        ("figure 14: most for A, B", "about 2 times", f"{gain('a'):.2f}, {gain('b'):.2f}"),
        ("figure 14: most for C", "a little less", f"{gain('c'):.2f}"),
        ("figure 14: most for D", "3.5 times", f"{gain('d'):.2f}"),
    ]
    return (
        table(("2^20 requests", "the paper", "nic-cache-sim"), lines)
        + "\n\n"
        + from_experiments("replacement", "short", "allocate", "hardware")
    )


def seed_misses(experiment: str, **wanted: object) -> list[float]:
    return [row["miss_rate"] for row in runs(experiment, **wanted)]


@block("nic-cache-seeds")
def several_seeds() -> str:
    lines = []
    for workload in "abcd":
        for allocate, name in (("none", "without read-allocate"), ("safe", "with")):
            cells = (
                spread(seed_misses("seeds", workload=workload, allocate=allocate, ratio=1 / part)) for part in PARTS
            )
            lines.append((f"{workload.upper()} {name}", *cells))
    count = len(seed_misses("seeds", workload="c", allocate="none", ratio=1 / 2))
    head = (f"GETs that miss, %, {count} seeds; size:", *(f"1/{part}" for part in PARTS))
    return table(head, lines) + "\n\n" + from_experiments("seeds")


@block("nic-cache-long")
def longer_runs() -> str:
    lines = []
    for experiment, requests in (("allocate", "2^20"), ("long", "2^24")):
        found = runs(experiment, workload="b", replacement="lru")
        cells = []
        for part in PARTS:
            pair = [only(found, allocate=allocate, ratio=1 / part)["miss_rate"] for allocate in ("none", "safe")]
            cells.append(f"{100 * (pair[0] - pair[1]):.1f}")
        lines.append((requests, *cells))
    head = ("B without read-allocate, points more; requests; size:", *(f"1/{part}" for part in PARTS))
    return table(head, lines) + "\n\n" + from_experiments("allocate", "long")


@block("nic-cache-policies")
def later_policies() -> str:
    lines = []
    for workload in "abcd":
        for policy in ("lru", "lfu", "sieve", "s3fifo", "two-generations"):
            means = []
            for part in PARTS:
                found = seed_misses("policies", workload=workload, replacement=policy, ratio=1 / part)
                means.append(percent(sum(found) / len(found)))
            lines.append((f"{workload.upper()}, `{policy}`", *means))
    head = ("GETs that miss, mean of 3 seeds; size:", *(f"1/{part}" for part in PARTS))
    return table(head, lines) + "\n\n" + from_experiments("policies")


@block("nic-cache-tags")
def tag_widths() -> str:
    found = runs("tags")
    lines = []
    for part in PARTS:
        kept = pick(found, call=0, ratio=1 / part)
        lines.append(
            (f"1/{part}", *(percent(only(kept, tag_bits=bits)["miss_rate"]) for bits in (17, 12, 7, 5, 3, 2, 1, 0)))
        )
    return (
        table(("rows kept; size; bits of a tag:", 17, 12, 7, 5, 3, 2, 1, 0), lines) + "\n\n" + from_experiments("tags")
    )


@block("nic-cache-sizes")
def varying_sizes() -> str:
    found = runs("sizes")
    sizes = sorted({row["slot_bytes"] for row in found})
    lines = []
    for workload in ("a", "d"):
        for storage in ("slots", "blocks"):
            mine = pick(found, workload=workload, storage=storage)
            cells = (percent(only(mine, slot_bytes=size)["miss_rate"]) for size in sizes)
            lines.append((f"{workload.upper()}, {storage}: GETs that miss", *cells))
    for storage in ("slots", "blocks"):
        mine = pick(found, workload="a", storage=storage)
        bits = (f"{only(mine, slot_bytes=size)['block_memory_bits'] / 1e6:.1f}" for size in sizes)
        lines.append((f"{storage}: Mbit of block memory", *bits))
    return table(("bytes of DRAM an entry", *sizes), lines) + "\n\n" + from_experiments("sizes")


@block("nic-cache-safe")
def safe_allocate() -> str:
    found = runs("safe")
    delays = sorted({row["reply_after"] for row in found})
    lines = []
    for workload in ("a", "b"):
        for policy, name, title in (
            ("unsafe", "stale", "old values"),
            ("safe", "stale", "old values"),
            ("safe", "killed_fills", "fills dropped"),
        ):
            mine = pick(found, workload=workload, allocate=policy)
            cells = (only(mine, reply_after=delay).get(name, 0) for delay in delays)
            lines.append((f"{workload.upper()}, `{policy}`: {title}", *cells))
    return table(("requests until the reply:", *delays), lines) + "\n\n" + from_experiments("safe")


def shown(*names: str):
    return lambda: [row for row in rows(FILE) if row["experiment"] in names]


for _name, _experiments, _function in (
    ("patterns", ("patterns",), "patterns"),
    ("replacement", ("replacement",), "replacement"),
    ("small", ("replacement", "short"), "small"),
    ("allocate", ("allocate",), "allocate"),
    ("throughput", ("model",), "throughput"),
    ("latency", ("hardware",), "latency"),
    ("tags", ("tags",), "tags"),
    ("extensions", ("safe", "sizes", "today"), "extensions"),
    ("interpretation", ("zipf", "length"), "interpretation"),
):
    plot(f"nic-cache-{_name}", shown(*_experiments), "nic_cache", _function)
