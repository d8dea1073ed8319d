# SPDX-License-Identifier: Apache-2.0
"""Tables and values of the CPU engine, from compare, growth, memory, instructions and isolation in bench/."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable

from rendering.markdown import note, per_second, table, text_table, three
from rendering.registry import block, plot, value
from rendering.rows import REPO_ROOT, Rows, only, pick, read, rows, source

sys.path[1:1] = [str(REPO_ROOT / "bench" / name) for name in ("compare", "growth", "tls")]

from loads import CONNECTIONS, LOADS  # noqa: E402
from ratios import FLOOR, SERVERS, median, ratios  # noqa: E402
from sweeps import SWEEPS  # noqa: E402
from workloads import WORKLOADS  # noqa: E402

BIG, SMALL = "compare", "compare_two_cores"
TITLES = {workload.name: workload.what for workload in WORKLOADS}


def ratio(found: Rows, name: str = "cpu_us_per_key") -> float:
    return statistics.median(ratios(found, name))


def spread(found: Rows, name: str = "cpu_us_per_key", base: str = SERVERS[0]) -> str:
    each = ratios(found, name, base)
    return f"{statistics.median(each):.2f} ({min(each):.2f}-{max(each):.2f})"


def pair(found: Rows, name: str, form: Callable[[float], str]) -> str:
    return " / ".join(form(median(found, server, name)) for server in SERVERS)


def busy(found: Rows) -> bool:
    """Whether other programs used the machine: then rates and latencies say nothing."""
    return any("load_average" in row for row in found)


def compare(name: str) -> str:
    lines, rates = [], not busy(rows(name))
    floor = bool(rows(name, server=FLOOR))
    for workload in WORKLOADS:
        found = rows(name, measure=workload.name)
        if not found:
            continue
        cells = [
            workload.what,
            pair(found, "cpu_us_per_key", three),
            spread(found),
            f"{workload.goal:.2f}" if workload.goal else "",
        ]
        if floor:
            if workload.floor_goal:
                cells += [three(median(found, FLOOR, "cpu_us_per_key")), spread(found, base=FLOOR)]
                cells.append(f"{workload.floor_goal:.2f}")
            else:
                cells += ["", "", ""]
        if rates:
            cells += [pair(found, "requests_per_s", per_second), pair(found, "p99_us", "{:.0f}".format)]
        lines.append((*cells, pair(found, "hit_ratio", "{:.2f}".format)))
    head = ["memcached / warpcached", "CPU us a key", "ratio (spread)", "goal", "hits"]
    head[4:4] = ["requests/s", "p99 us"] if rates else []
    head[4:4] = ["floor", "of the floor", "goal"] if floor else []
    return table(head, lines) + "\n\n" + source(rows(name), name)


@block("compare")
def compare_big() -> str:
    return compare(BIG)


@block("compare-two-cores")
def compare_small() -> str:
    return compare(SMALL)


@block("tls")
def tls() -> str:
    found = rows("tls")
    lines = []
    for load in LOADS:
        theirs, ours = (median(pick(found, measure=load.name), server, "cpu_us") for server in SERVERS)
        goal = f"{load.goal:.2f}" if load.goal else ""
        lines.append((load.name, three(theirs), three(ours), f"{ours / theirs:.2f}", goal))
    head = (f"TLS 1.3, {CONNECTIONS} connections", "CPU us a request, memcached", "warpcached", "ratio", "goal")
    return table(head, lines) + "\n\n" + source(found, "tls")


def growth_rows(name: str, measure: str) -> Rows:
    return rows(name, measure=measure)


def growth(name: str, measure: str) -> str:
    found, sweep = growth_rows(name, measure), next(sweep for sweep in SWEEPS if sweep.name == measure)
    lines, rates = [], not busy(found)
    for x in sorted({row["x"] for row in found}):
        mine = pick(found, x=x)
        cells = [f"{x:,}", *(three(median(mine, server, "cpu_us_per_key")) for server in SERVERS)]
        cells.append(spread(mine) if len(mine) > 2 else f"{ratio(mine):.2f}")
        lines.append([*cells, *(per_second(median(mine, server, "requests_per_s")) for server in SERVERS if rates)])
    head = [sweep.axis, "CPU us, memcached", "warpcached", "ratio"]
    head += ["requests/s, memcached", "warpcached"] if rates else []
    return table(head, lines) + "\n\n" + source(found, name)


def register_growth() -> None:
    for name, measure in (
        ("growth", "threads"),
        ("growth", "threads32"),
        ("growth", "items"),
        ("growth_two_cores", "zipf"),
        ("growth_two_cores", "connections"),
        ("growth_two_cores", "sizes"),
    ):
        block(f"growth-{measure}")(lambda name=name, measure=measure: growth(name, measure))


register_growth()


@block("hit-ratio")
def hit_ratio() -> str:
    found = rows("memory", measure="hit_ratio")
    lines = []
    for megabytes in sorted({row["megabytes"] for row in found}):
        for clients in (1, 4):
            mine = pick(found, megabytes=megabytes, clients=clients)
            values = [only(mine, server=server) for server in SERVERS]
            lines.append(
                (
                    megabytes,
                    clients,
                    *(f"{row['hit_ratio']:.4f}" for row in values),
                    *(f"{row['curr_items']:,}" for row in values),
                )
            )
    head = ("`-m`", "clients", "hit ratio, memcached", "warpcached", "items at the end, memcached", "warpcached")
    return table(head, lines) + "\n\n" + source(found, "memory")


@block("capacity")
def capacity() -> str:
    found = rows("memory", measure="capacity")
    lines = []
    for shape in dict.fromkeys(row["shape"] for row in found):
        theirs, ours = (only(found, shape=shape, server=server)["items_held"] for server in SERVERS)
        lines.append((shape, f"{theirs:,}", f"{ours:,}", f"{ours / theirs:.2f}"))
    head = ("items offered at `-m 64`", "memcached holds", "warpcached holds", "ratio")
    return table(head, lines) + "\n\n" + source(found, "memory")


@block("resident")
def resident() -> str:
    found = rows("memory", measure="resident")
    lines = []
    for megabytes, shape in dict.fromkeys((row["megabytes"], row["shape"]) for row in found):
        each = [only(found, megabytes=megabytes, shape=shape, server=server) for server in SERVERS]
        kib = [f"{row['peak_kib'] / 1024:.1f}" for row in each]
        lines.append((megabytes, shape, *kib, f"{each[1]['allowed_kib'] / 1024:.1f}"))
    head = ("`-m`", "full of", "peak MiB, memcached", "warpcached", "bound")
    return table(head, lines) + "\n\n" + source(found, "memory")


@block("resident-connections")
def resident_connections() -> str:
    found = rows("memory", measure="connections")
    lines = []
    for name, title in (
        ("before_kib", "full of items"),
        ("with_idle_kib", "and 2,000 idle connections"),
        ("with_busy_kib", "and 500 in the middle of a request"),
        ("allowed_kib", "bound"),
    ):
        each = [only(found, server=server) for server in SERVERS]
        assert all((row["idle"], row["busy"]) == (2000, 500) for row in each)
        theirs, ours = (f"{row[name] / 1024:.1f}" for row in each)
        lines.append((title, "" if name == "allowed_kib" else theirs, ours))
    head = ("resident MiB, `-m 64`", "memcached", "warpcached")
    return table(head, lines) + "\n\n" + source(found, "memory")


def last_instructions() -> dict:
    return [row for row in read("instructions") if row["measure"] == "instructions"][-1]


@block("instructions")
def instructions() -> str:
    found = last_instructions()
    lines = [(name, f"{count:,.0f}") for name, count in found["per_request"].items()]
    text = f"{found['compiler']}; parent commit {found['parent_commit']}; {found['date']}. Rows: "
    text += "[instructions.jsonl]({root}bench/results/instructions.jsonl)"
    return table(("load", "instructions a request"), lines) + "\n\n" + note(text)


@block("instructions-frames")
def instructions_of_frames() -> str:
    """A thread of frames: its own instructions, and those in DPDK's libraries."""
    found = [row for row in read("instructions") if row["measure"] == "instructions of frames"][-1]
    figures = found["per_request"]
    names = [name for name in figures if not name.endswith(", in DPDK")]
    lines = [(name, f"{figures[name]:.0f}", f"{figures[name + ', in DPDK']:.0f}") for name in names]
    text = f"`bench/instructions/run --frames`, {found['compiler']}, {found['date']}, "
    text += "[instructions.jsonl]({root}bench/results/instructions.jsonl)"
    return table(("load", "ours", "DPDK's"), lines) + "\n\n" + note(text)


@block("instructions-load")
def instructions_of_load() -> str:
    """A thread of the load generator that sends frames, without its port."""
    found = [row for row in read("instructions") if row["measure"] == "instructions of load"][-1]
    lines = [(name.replace(" by load", ""), f"{count:,.0f}") for name, count in found["per_request"].items()]
    text = f"`bench/instructions/run --load`, {found['compiler']}, {found['date']}, "
    text += "[instructions.jsonl]({root}bench/results/instructions.jsonl)"
    return table(("request", "instructions"), lines) + "\n\n" + note(text)


SCENARIOS = {
    "dumps-in-one-write": "32 dumps in one write",
    "dumps-100x30-unread": "100 connections with 30 unread dumps each",
    "dumps-400x30-unread": "400 connections, likewise",
    "dumps-udp-2600": "2,600 dumps in one datagram",
    "sizes-64": "64 `stats sizes`",
    "cachedump-20x10": "20 x 10 `stats cachedump`",
    "detail-dump-32": "32 `stats detail dump`",
    "memory-limit": "the memory limit up and down",
    "conns-10000": "`stats conns` with 10,000 connections",
    "mutated-200": "mutated requests on 200 connections",
    "stats-100x9000": "9,000 `stats` on each of 100 connections",
    "half-bodies": "half of a value, held on many connections",
    "stalled-readers": "readers of large values that do not read",
}
# Which rows are shown: the last commit's of a program.
ISOLATED = {
    "memcached": {"program": "memcached-1.6.45"},
    "warpcached": {"program": "warpcached"},
    "launches": {"program": "warpcached --engine=cuda"},
    "persistent": {"program": "warpcached --engine=cuda --gpu-mode=persistent"},
}


def isolation_rows(column: str, scenario: str) -> Rows:
    """Of the last commit that was measured; several rounds, where there are."""
    found = [row for row in read("isolation") if row["scenario"] == scenario and row["program"] == ISOLATED[column]["program"]]
    return [row for row in found if row["commit"] == found[-1]["commit"]]


def isolated(scenario: str, column: str, name: str = "longest_ms") -> str:
    found = isolation_rows(column, scenario)
    if not found:
        return ""
    if any(row.get(name) is None for row in found):
        return "no answer"
    worst = max(row[name] for row in found)
    mark = ">" if any(row.get("failed") for row in found) else ""
    return f"{mark}{worst:,.0f}" if worst >= 10 else f"{worst:.1f}"


@block("isolation")
def isolation() -> str:
    lines = [
        (
            title,
            isolated(name, "memcached"),
            isolated(name, "warpcached"),
            isolated(name, "warpcached", "p99_ms"),
            isolated(name, "launches"),
            isolated(name, "persistent"),
        )
        for name, title in SCENARIOS.items()
    ]
    head = ("ms", "memcached 1.6.45", "warpcached", "its p99", "GPU, launches", "GPU, persistent")
    shown = [row for column in ISOLATED for name in SCENARIOS for row in isolation_rows(column, name)]
    return table(head, lines) + "\n\n" + source(shown, "isolation")


@block("long-runs")
def long_runs() -> str:
    found = rows("reliability")
    lines = [(row["what"], f"`{row['command']}`", f"{row['commit']}, {row['date'][:10]}") for row in found]
    results = [f"- {row['what']}, {row['commit']}: {row['result']}." for row in found]
    link = "Rows, with machines: [reliability.jsonl]({root}bench/results/reliability.jsonl)"
    return "\n\n".join((text_table(("what", "command", "commit"), lines), "\n".join(map(note, results)), link))


@value("isolation-gpu-longest")
def isolation_gpu_longest() -> str:
    shown = [row for column in ("launches", "persistent") for name in SCENARIOS for row in isolation_rows(column, name)]
    return f"{max(row['longest_ms'] for row in shown if row.get('longest_ms')):.0f} ms"


@block("what-it-buys")
def what_it_buys() -> str:
    """README's table: the yardstick on the left."""
    lines = []
    for name in ("one", "get32", "mg32", "multiget", "set32", "udp"):
        found = rows(SMALL, measure=name)
        unit = " a key" if name == "multiget" else ""
        cells = (f"{median(found, server, 'cpu_us_per_key'):.2f} us" for server in SERVERS)
        lines.append((f"server CPU time{unit}: {TITLES[name]}", *cells, f"{ratio(found):.2f}"))
    paced = rows(BIG, measure="paced")
    late = [median(paced, server, "p99_us") for server in SERVERS]
    lines.append(
        ("p99 at 70% of the peak of memcached 1.6.18", *(f"{one:,.0f} us" for one in late), f"{late[1] / late[0]:.2f}")
    )
    for megabytes in (16, 64, 256):
        each = [
            only(rows("memory", measure="hit_ratio", megabytes=megabytes, clients=1), server=server)
            for server in SERVERS
        ]
        hits = [row["hit_ratio"] for row in each]
        lines.append((f"hit ratio, `-m {megabytes}`", *(f"{one:.3f}" for one in hits), f"{hits[1] / hits[0]:.2f}"))
    held = [
        only(rows("memory", measure="capacity", shape="16 B keys, 32 B values"), server=server)["items_held"]
        for server in SERVERS
    ]
    lines.append(("items of 16 + 32 bytes in `-m 64`", *(f"{one:,}" for one in held), f"{held[1] / held[0]:.2f}"))
    return table(("", *SERVERS, "ratio"), lines)


def missed(name: str) -> str:
    """The loads whose goal is missed, with ratio and goal."""
    found = [
        (one, ratio(rows(name, measure=one.name))) for one in WORKLOADS if one.goal and rows(name, measure=one.name)
    ]
    return "; ".join(f"{one.what} ({now:.2f}, goal {one.goal:.2f})" for one, now in found if now > one.goal) or "none"


@block("goals")
def goals() -> str:
    return note(f"- On two cores: {missed(SMALL)}.") + "\n" + note(f"- On 16 cores: {missed(BIG)}.")


plot("compare", lambda: rows(SMALL), "cpu", "compare")
plot("growth", lambda: rows("growth") + rows("growth_two_cores"), "cpu", "growth")
