# SPDX-License-Identifier: Apache-2.0
"""Tables of events on a GPU (bench/edge), beside the dissertation's values."""

from __future__ import annotations

import statistics

from rendering.markdown import percent, table, three
from rendering.registry import block
from rendering.rows import Rows, only, pick, rows, source

FILE = "edge"
FORMS = {
    "answer": "one thread that answers a word",
    "launch": "launch by the CPU",
    "persistent": "persistent workers",
    "graph": "graph launch by the GPU",
}
WAYS = {
    "launch": "launches",
    "launch-priority": "launches, stream with priority",
    "edge-p1": "events, P1",
    "edge-p1-reserved-16": "events, P1, 16 multiprocessors by shared memory",
    "edge-p1-green-16": "events, P1, 16 multiprocessors by a green context",
    "edge-p2": "events, P2, the convolution an event too",
}
PROGRAMS = {"compute": "arithmetic", "memory": "memory"}


def rendered(head: tuple[str, ...], lines: list[tuple], found: Rows) -> str:
    return table(head, lines) + "\n\n" + source(found, FILE)


@block("edge-latency")
def latency() -> str:
    found = rows(FILE, what="latency")
    lines = [(FORMS[row["form"]], row["blocks"], three(row["p50_us"]), three(row["p99_us"])) for row in found]
    return rendered(("from the doorbell to the completion, us", "blocks", "p50", "p99"), lines, found)


@block("edge-rate")
def rate() -> str:
    found = rows(FILE, what="rate")
    lines = [
        (FORMS[row["form"]], row["threads"], row["queues"], f"{row['events_per_s'] / 1e6:.2f}") for row in found
    ]
    return rendered(("", "threads", "queues", "M events/s"), lines, found)


def median(found: Rows, field: str, **wanted: object) -> float:
    return statistics.median(row[field] for row in pick(found, **wanted))


@block("edge-programs")
def programs() -> str:
    found = rows(FILE, what="beside_programs")
    lines = []
    for server in ("launch", "edge"):
        alone = median(found, "packets_per_s", program="none", server=server)
        for program in ("compute", "memory"):
            beside = median(found, "packets_per_s", program=program, server=server)
            free = median(found, "steps_per_s", program=program, server="none")
            steps = median(found, "steps_per_s", program=program, server=server)
            lines.append(
                (
                    f"{'launches' if server == 'launch' else 'events'}, {PROGRAMS[program]}",
                    f"{alone / 1e6:.1f}",
                    f"{beside / 1e6:.1f}",
                    percent(1 - beside / alone),
                    percent(1 - steps / free),
                )
            )
    head = ("server by, program; medians", "M packets/s alone", "beside", "server loses", "program loses")
    return rendered(head, lines, found)


def server_loss() -> str:
    """Figure 5.2: of the server's packets beside arithmetic; by launches, by events."""
    found = rows(FILE, what="beside_programs")
    lost = []
    for server in ("launch", "edge"):
        alone = median(found, "packets_per_s", program="none", server=server)
        lost.append(1 - median(found, "packets_per_s", program="compute", server=server) / alone)
    return f"{percent(-lost[0], 0)}, events {percent(-lost[1])}"


def product_times() -> str:
    """Figure 5.3: times of products, launches over persistent blocks."""
    found = rows(FILE, what="product")
    sizes = sorted({row["size"] for row in found})
    times = [only(found, way="launch", size=size)["us_each"] / only(found, way="persistent", size=size)["us_each"] for size in sizes]
    return f"{times[0]:.1f} times, {times[1]:.1f}"


def loads_of(way: str) -> str:
    """Figure 5.17: reads of L2 against polling, as ncu counts them."""
    found = rows(FILE, what="counters")
    return percent(only(found, way=way)["l2_reads"] / only(found, way="poll")["l2_reads"] - 1, 0)


def instructions_of(way: str) -> str:
    """Figure 5.18: likewise, instructions."""
    found = rows(FILE, what="counters")
    return percent(only(found, way=way)["instructions"] / only(found, way="poll")["instructions"] - 1, 0)


@block("edge-power")
def power() -> str:
    found = rows(FILE, what="product")
    lines = [
        (f"{row['way']}, {row['size']} x {row['size']}", three(row["us_each"]), f"{row['watts']:.0f}", three(row["mj_each"]))
        for row in found
    ]
    return rendered(("products of matrices", "us each", "W", "mJ each"), lines, found)


@block("edge-idle")
def idle() -> str:
    found = rows(FILE, what="idle")
    lines = [(row["way"], f"{row['watts']:.1f}") for row in found]
    return rendered(("workers that wait", "W"), lines, found)


@block("edge-convolution")
def convolution() -> str:
    found = rows(FILE, what="beside_convolution")
    lines = [
        (
            f"{WAYS[row['way']]}, {row['rate'] / 1e6:g} M/s",
            three(row["batch_us_alone"]),
            three(row["batch_us"]),
            three(row["lookups_slowdown"]),
            three(row["convolution_slowdown"]),
            three(row["antt"]),
        )
        for row in found
    ]
    head = ("look-ups by", "us alone", "us beside", "look-ups slower", "convolution slower", "ANTT")
    return rendered(head, lines, found)


@block("edge-reserved")
def reserved() -> str:
    found = rows(FILE, what="reserved")
    lines = [(row["multiprocessors"], three(row["convolution_slowdown"])) for row in found]
    return rendered(("multiprocessors kept for events", "convolution slower"), lines, found)


@block("edge-barriers")
def barriers() -> str:
    found = rows(FILE, what="barrier")
    delays = sorted({row["delay_us"] for row in found})
    lines = []
    for way in dict.fromkeys(row["way"] for row in found):
        shares = []
        for delay in delays:
            here = only(found, way=way, delay_us=delay)["loads_per_s"]
            shares.append(percent(here / only(found, way="poll", delay_us=delay)["loads_per_s"]))
        lines.append((way, *shares))
    return rendered(("loads against polling, an event every ... us", *(f"{delay:g}" for delay in delays)), lines, found)


@block("edge-counters")
def counters() -> str:
    found = rows(FILE, what="counters")
    polling = only(found, way="poll")
    lines = [
        (
            row["way"],
            f"{row['instructions'] / 1e6:,.0f}",
            percent(row["instructions"] / polling["instructions"]),
            f"{row['l2_reads'] / 1e6:,.1f}",
            percent(row["l2_reads"] / polling["l2_reads"]),
        )
        for row in found
    ]
    head = ("ncu, 300 ms", "M warp instructions", "of polling", "M reads of L2", "of polling")
    return rendered(head, lines, found)
