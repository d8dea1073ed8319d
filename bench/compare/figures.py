# SPDX-License-Identifier: Apache-2.0
"""The table that a run prints."""

from __future__ import annotations

import statistics

from ratios import FLOOR, SERVERS, median, ratios
from workloads import WORKLOADS, Workload

HEAD = (
    "workload",
    "CPU us/key",
    "ratio (spread)",
    "goal",
    "of floor",
    "goal",
    "requests/s",
    "p50 us",
    "p99 us",
    "p99.9 us",
    "hits",
    "MiB",
)

LATE = " (late)"


def by_workload(rows: list[dict]) -> list[tuple[Workload, list[dict]]]:
    found = [(w, [row for row in rows if row["measure"] == w.name]) for w in WORKLOADS]
    return [(workload, mine) for workload, mine in found if mine]


def spread(found: list[float]) -> str:
    return f"{statistics.median(found):.2f} ({min(found):.2f}-{max(found):.2f})"


def line(workload: Workload, rows: list[dict]) -> tuple[str, ...]:
    """Medians of each server's results, and the ratio of each round."""
    floor = any(row["server"] == FLOOR for row in rows)

    def each(name: str, form: str) -> str:
        servers = (*SERVERS, FLOOR) if floor else SERVERS
        return " / ".join(form.format(median(rows, server, name)) for server in servers)

    # If the generator itself was late for most of that time, the result shows the generator.
    late = [row for row in rows if (row["sent_late_p99_us"] or 0) > row["p99_us"] / 2]
    mark = LATE if len(late) > len(rows) / 2 else ""
    cpu = ratios(rows, "cpu_us_per_key")
    of_floor = ratios(rows, "cpu_us_per_key", FLOOR)
    return (
        workload.what,
        each("cpu_us_per_key", "{:.3f}"),
        spread(cpu),
        f"{workload.goal:.2f}" if workload.goal else "",
        spread(of_floor) if floor else "",
        f"{workload.floor_goal:.2f}" if workload.floor_goal else "",
        each("requests_per_s", "{:,.0f}"),
        each("p50_us", "{:.0f}"),
        each("p99_us", "{:.0f}") + mark,
        each("p999_us", "{:.0f}") + mark,
        each("hit_ratio", "{:.3f}"),
        each("resident_mib", "{:.0f}"),
    )


def text_table(rows: list[dict]) -> str:
    lines = [HEAD] + [line(workload, mine) for workload, mine in by_workload(rows)]
    widths = [max(len(cells[i]) for cells in lines) for i in range(len(HEAD))]
    return "\n".join(
        "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths)))
        for cells in lines
    )
