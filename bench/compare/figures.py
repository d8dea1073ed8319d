# SPDX-License-Identifier: Apache-2.0
"""The table that a run prints."""

from __future__ import annotations

import statistics

from ratios import SERVERS, median, ratios
from workloads import WORKLOADS, Workload

HEAD = (
    "workload",
    "CPU us/key",
    "ratio (spread)",
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


def line(workload: Workload, rows: list[dict]) -> tuple[str, ...]:
    """Medians of memcached's and warpcached's results, and the ratio of each round."""

    def pair(name: str, form: str) -> str:
        return " / ".join(form.format(median(rows, server, name)) for server in SERVERS)

    # If the generator itself was late for most of that time, the result shows the generator.
    late = [row for row in rows if (row["sent_late_p99_us"] or 0) > row["p99_us"] / 2]
    mark = LATE if len(late) > len(rows) / 2 else ""
    cpu = ratios(rows, "cpu_us_per_key")
    return (
        workload.what,
        pair("cpu_us_per_key", "{:.3f}"),
        f"{statistics.median(cpu):.2f} ({min(cpu):.2f}-{max(cpu):.2f})",
        f"{workload.goal:.2f}" if workload.goal else "",
        pair("requests_per_s", "{:,.0f}"),
        pair("p50_us", "{:.0f}"),
        pair("p99_us", "{:.0f}") + mark,
        pair("p999_us", "{:.0f}") + mark,
        pair("hit_ratio", "{:.3f}"),
        pair("resident_mib", "{:.0f}"),
    )


def text_table(rows: list[dict]) -> str:
    lines = [HEAD] + [line(workload, mine) for workload, mine in by_workload(rows)]
    widths = [max(len(cells[i]) for cells in lines) for i in range(len(HEAD))]
    return "\n".join(
        "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths)))
        for cells in lines
    )
