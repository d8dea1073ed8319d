# SPDX-License-Identifier: Apache-2.0
"""Tables and a plot of what was measured."""

from __future__ import annotations

import statistics
from pathlib import Path

from rounds import SERVERS, median, ratios
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
    """Medians of memcached's and warpcached's figures, and the ratio of each round."""

    def pair(name: str, form: str) -> str:
        return " / ".join(form.format(median(rows, server, name)) for server in SERVERS)

    # Where the generator itself was late for most of that time, the figure is its own.
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


def markdown_table(rows: list[dict]) -> str:
    lines = [HEAD, ("---",) * len(HEAD)]
    lines += [line(workload, mine) for workload, mine in by_workload(rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def plot(rows: list[dict], path: Path) -> None:
    """CPU time per key and p99 over memcached's: medians as bars, rounds as dots."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "warpcache"
    from matplotlib import pyplot

    names = [workload.what for workload, _ in by_workload(rows)]
    figure, panels = pyplot.subplots(1, 2, figsize=(11, 0.5 * len(names) + 1.2), sharey=True)
    for panel, (name, title) in zip(
        panels, (("cpu_us_per_key", "server CPU time per key"), ("p99_us", "99th percentile"))
    ):
        for y, (workload, mine) in enumerate(by_workload(rows)):
            found = ratios(mine, name)
            panel.barh(y, statistics.median(found), color="#4477aa", height=0.6)
            panel.plot(found, [y] * len(found), ".", color="black", markersize=4)
            if name == "cpu_us_per_key" and workload.goal:
                panel.plot([workload.goal] * 2, [y - 0.4, y + 0.4], color="#cc3311", linewidth=2)
        panel.axvline(1, color="gray", linewidth=1, linestyle=":")
        panel.set_title(f"{title}, warpcached / memcached", fontsize=10)
        panel.set_yticks(range(len(names)), names)
        panel.set_xlim(left=0)
    panels[0].invert_yaxis()
    figure.text(0.01, 0.01, "bar: median; dots: rounds; red: goal", fontsize=8)
    figure.tight_layout(rect=(0, 0.03, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
