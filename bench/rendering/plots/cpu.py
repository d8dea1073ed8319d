# SPDX-License-Identifier: Apache-2.0
"""warpcached beside memcached: bars of the comparison, curves of the growth."""

from __future__ import annotations

import statistics

from ratios import SERVERS, ratios
from rendering.plots.canvas import panels, pyplot
from rendering.rows import Rows, pick, short_machine
from sweeps import SWEEPS
from workloads import WORKLOADS

COLORS = {"memcached": "tab:gray", "warpcached": "tab:orange"}


def compare(found: Rows):
    """CPU time of a key over memcached's: medians as bars, rounds as dots."""
    workloads = [workload for workload in WORKLOADS if pick(found, measure=workload.name)]
    figure, panel = pyplot.subplots(figsize=(7, 0.38 * len(workloads) + 1))
    for y, workload in enumerate(workloads):
        each = ratios(pick(found, measure=workload.name), "cpu_us_per_key")
        panel.barh(y, statistics.median(each), color="tab:orange", height=0.6)
        panel.plot(each, [y] * len(each), ".", color="black", markersize=4)
    panel.axvline(1, color="gray", linestyle=":")
    panel.text(1, -0.75, "memcached 1.6.45", ha="center", fontsize=8, color="gray")
    panel.set_yticks(range(len(workloads)), [workload.what for workload in workloads], fontsize=9)
    panel.set(xlim=(0, 1.15), xlabel="server CPU time of a key, memcached = 1 (dots: rounds)")
    panel.invert_yaxis()
    return figure


def curve(found: Rows, server: str) -> tuple[list[float], list[float]]:
    mine = pick(found, server=server)
    xs = sorted({row["x"] for row in mine})
    return xs, [statistics.median(row["cpu_us_per_key"] for row in pick(mine, x=x)) for x in xs]


def growth(found: Rows):
    """CPU time of a request by what grows; of the machine with most rounds where two were measured."""
    figure, all_panels = panels(len(SWEEPS), lines=2, width=3.4, height=2.7)
    for panel, sweep in zip(all_panels, SWEEPS):
        mine = pick(found, measure=sweep.name)
        machine = max(
            {row["machine"] for row in mine}, key=lambda name: max(r["round"] for r in mine if r["machine"] == name)
        )
        shown = pick(mine, machine=machine)
        for server in SERVERS:
            panel.plot(*curve(shown, server), "o-", ms=4, color=COLORS[server], label=server)
        if sweep.log_x:
            panel.set_xscale("log", base=2 if sweep.name.startswith("threads") else 10)
        if sweep.name == "sizes":
            panel.set_yscale("log")
        else:
            panel.set_ylim(bottom=0)
        panel.set_title(f"{sweep.title}\n{short_machine(machine)}", fontsize=8)
        panel.set_xlabel(sweep.axis, fontsize=8)
        panel.grid(alpha=0.3)
    all_panels[0].set_ylabel("server CPU us a request", fontsize=8)
    all_panels[0].legend(fontsize=7)
    return figure
